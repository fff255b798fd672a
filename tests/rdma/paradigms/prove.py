#!/usr/bin/env python3
"""prove.py LIFE LIBRARY: every paradigm on real verbs, in a guest.

paradigms_life (LIFE) runs each id of the table under libegret_count_verbs.so (LIBRARY): every answer is compared, what the interposer
has counted must be what the fabrics say they have posted, and each op must have cost the verbs that its paper says. Then the server
process stands still, and is killed, under clients of another process.

EGRET_PARADIGMS_OPS: ops of each id (2,000). EGRET_PARADIGMS_IDS: these ids only.
"""
import collections, json, os, pathlib, re, signal, subprocess, sys, time

HERE = pathlib.Path(__file__).resolve().parent
LIFE, LIBRARY = map(pathlib.Path, sys.argv[1:3])
sys.path.insert(0, str(HERE.parent / "interposer"))
import read_counts

AT = f"{os.environ['EGRET_GUEST_ADDRESS']}:18515"
OPS = int(os.environ.get("EGRET_PARADIGMS_OPS", "2000"))
ONLY = os.environ.get("EGRET_PARADIGMS_IDS", "").split()
WORK = pathlib.Path("/dev/shm")  # counters are mapped, which /share cannot be
CLIENTS, SERVERS = 2, 2
VERBS = ("write", "read", "send", "cas", "faa", "recv")
LOST = 0.02  # of the ops on UC and UD: a guest that is held up for a tenth of a second loses them
wrong = []


def check(what, seen, expected):
    """Silent if all is well. `expected` is a value, or says whether it likes one."""
    if expected(seen) if callable(expected) else seen == expected:
        return
    wrong.append(f"{what}: {seen}" + ("" if callable(expected) else f", expected {expected}"))
    print(f"  WRONG {wrong[-1]}", flush=True)


def environment(name, **more):
    file = WORK / f"{name}.counts"
    file.unlink(missing_ok=True)
    return file, {**os.environ, "LD_PRELOAD": str(LIBRARY), "EGRET_COUNT_VERBS_FILE": str(file), "EGRET_VERBS_YIELD": "1", **more}


def total(counts):
    """The sum of these dictionaries of numbers."""
    out = collections.Counter()
    for each in counts:
        out.update({name: value for name, value in each.items() if isinstance(value, int)})
    return out


class Run:
    """What one process of paradigms_life has printed."""

    def __init__(self, name, result, file):
        self.name, self.status, self.said = name, result.returncode, result.stderr.strip()
        self.printed = json.loads(result.stdout) if result.stdout.strip() else {}
        self.nodes = self.printed.get("nodes", [])
        self.servers = [each for each in self.nodes if "ops" not in each]
        self.clients = [each for each in self.nodes if "ops" in each]
        self.seen = read_counts.snapshot(file)
        self.answers = total(self.clients)
        self.of_clients = total(each["of_ops"] for each in self.clients)
        self.of_servers = total(each["of_ops"] for each in self.servers)

    def check_counters(self):
        """The interposer counts what the fabrics say, for each type of pair and verb."""
        said = total([each["of_life"] for each in self.nodes] + [self.printed["besides"]])
        for kind in ("rc", "uc", "ud"):
            for verb in VERBS:
                name = f"{kind}_{verb}"
                check(f"{self.name}: {name} by the interposer", self.seen[name] + self.seen.get(f"{name}_with_imm", 0), said[name])
        check(f"{self.name}: doorbells by the interposer", self.seen["doorbells"], said["doorbells"])
        check(f"{self.name}: uncounted", self.seen["uncounted"], 0)
        check(f"{self.name}: registrations while ops were under way", sum(each["registered"] for each in self.nodes), 0)


def run(name, *arguments, **more):
    file, env = environment(name, **more)
    result = subprocess.run([LIFE, *map(str, arguments)], capture_output=True, text=True, env=env, timeout=60 + OPS / 50)
    return Run(name, result, file)


def of(counts, verb):
    return sum(counts[f"{kind}_{verb}"] for kind in ("rc", "uc", "ud"))


# Section "counted verbs" of each paradigm, of gets that hit and of puts: (side, type and verb) -> how many. What is not named must be 0,
# but for RECVs. `a`: the answers' sums. Ranges where a walk decides.
def rpc(request, response):
    return lambda a: {("client", request): a["ops"] + a["retries"], ("server", response): a["ops"] + a["retries"]}


def datagram_rpc(request):
    """A request that is sent again may be answered twice, or once."""
    return lambda a: {("client", request): a["ops"] + a["retries"], ("server", "ud_send"): (a["ops"] - a["lost"], a["ops"] + a["retries"])}


def farm(reads):
    return lambda a: {("client", "rc_read"): (reads * a["gets"], reads * a["gets"] + a["retries"]),
                      ("client", "uc_write"): (a["puts"], a["puts"] + a["retries"]), ("server", "uc_write"): (a["puts"], a["puts"] + a["retries"])}


def is_within(expected):
    """A number, or the least and the most."""
    least, most = expected if isinstance(expected, tuple) else (expected, expected)
    return lambda seen: least <= seen <= most


COUNTS = {
    "raw-read": lambda a: {("client", "rc_read"): a["ops"]},
    "reply": rpc("rc_write", "rc_write"),
    "nessie-sd": rpc("rc_write", "rc_write"),
    "rfp": lambda a: {("client", "rc_write"): a["ops"], ("client", "rc_read"): a["ops"] + a["vain"]},
    "memc": rpc("rc_send", "rc_send"),
    "pilaf-vo": rpc("rc_send", "rc_send"),
    "herd": datagram_rpc("uc_write"),
    "seq-rpc": datagram_rpc("uc_write"),
    # By READs as many as a probe takes; between the least and the most of spec and store.
    "rfp-hybrid": lambda a: {("client", "rc_write"): a["ops"], ("client", "rc_read"): (a["reads"], a["reads"] + a["vain"]),
                             ("server", "rc_write"): (0, a["ops"] - a["reads"])},
    "pilaf": lambda a: {("client", "rc_read"): (2 * a["gets"], 6 * a["gets"] + a["retries"]), ("client", "rc_send"): a["puts"],
                        ("server", "rc_send"): a["puts"]},
    "pilaf-em": lambda a: {("client", "rc_read"): (2 * a["gets"], 4 * a["gets"] + a["retries"]),
                           ("client", "ud_send"): a["puts"] + a["retries"], ("server", "ud_send"): (a["puts"], a["puts"] + a["retries"])},
    "farm-em": farm(1),
    "farm-em-var": farm(2),
    "drtm-em": lambda a: {("client", "rc_read"): a["gets"], ("client", "rc_cas"): 2 * a["puts"]},
    "drtm": lambda a: {("client", "rc_read"): (a["gets"], a["gets"] + a["retries"]), ("client", "rc_write"): a["puts"],
                       ("client", "rc_cas"): (2 * a["puts"], 2 * a["puts"] + a["retries"])},
    # A get READs one or two index words and perhaps the entry; a put three or four of these, and swaps a word; more where two meet.
    "nessie": lambda a: {("client", "rc_read"): (a["gets"] + 2 * a["puts"], 3 * a["gets"] + 6 * a["puts"] + 8 * a["retries"]),
                         ("client", "rc_cas"): (a["puts"], 2 * a["puts"] + 2 * a["retries"]), ("client", "rc_write"): (0, a["puts"])},
    # One that is late is given up, and not asked for again.
    "seq-s0": lambda a: {("client", "ud_send"): a["ops"], ("server", "ud_send"): (a["ops"] - a["lost"], a["ops"])},
    "seq-faa": lambda a: {("client", "rc_faa"): a["ops"]},
}


def counted(one):
    if one.name not in COUNTS:
        check(f"{one.name}: a row of COUNTS", None, "its verbs")
        return
    expected = COUNTS[one.name](one.answers)
    # After a tenth of a second an RPC client asks by a WRITE of nothing whether the server is still there.
    one.of_clients["rc_write"] -= one.seen["empty_write"]
    for side, counts in (("client", one.of_clients), ("server", one.of_servers)):
        for kind in ("rc", "uc", "ud"):
            for verb in VERBS[:-1]:
                name = f"{kind}_{verb}"
                wanted = expected.get((side, name), 0)
                check(f"{one.name}: {name} of the {side}s (expected {wanted})", counts[name], is_within(wanted))


def prove(name):
    began = time.monotonic()
    arguments = ("--loop", AT, "--only", name, "--ops", OPS // CLIENTS, "--servers", SERVERS, "--clients", CLIENTS, "--window", 4)
    one = run(name, *arguments)
    if one.said.endswith("the other side does not answer"):
        print(f"{name}: the control connection was not made: once more", flush=True)  # a guest that was held up
        one = run(name, *arguments)
    check(f"{name}: status", (one.status, one.said), (0, ""))
    if one.status != 0 or not one.nodes:
        check(f"{name}: available", one.printed.get("not_available"), "")
        return one
    answers = one.answers
    check(f"{name}: answers", answers["ops"], OPS)
    check(f"{name}: first wrong answer", {each["first_wrong"] for each in one.clients}, {""})
    check(f"{name}: wrong", answers["wrong"], 0)
    check(f"{name}: failed", answers["failed"], 0)
    check(f"{name}: lost", answers["lost"], lambda lost: lost <= LOST * OPS)
    numbers = [number for each in one.clients for number in each["numbers"]]
    check(f"{name}: numbers given twice", len(numbers) - len(set(numbers)), 0)
    one.check_counters()
    counted(one)
    used = {verb: count for verb, count in (total([one.of_clients, one.of_servers])).items() if count and verb[:3] in ("rc_", "uc_", "ud_")}
    print(f"{name}: {answers['ops']} ops, {answers['retries']} retries, {answers['vain']} in vain, {answers['lost']} lost; {used}; "
          f"{time.monotonic() - began:.1f} s", flush=True)
    return one


# What detects it when a READ takes place in pieces, with what is torn, and what it is protected by: retries, and no wrong answer.
TORN = {
    "pilaf": "read:8:down:200:every 7",
    "pilaf-em": "read:8:up:200:every 7",
    "farm-em": "read:8:up:200:every 7",
}


def torn():
    """READs take place piece by piece, while the server changes what they read."""
    for name, plan in TORN.items():
        one = run(name, "--loop", AT, "--only", name, "--ops", OPS // CLIENTS, "--clients", CLIENTS, "--window", 4, "--keys", 20,
                  EGRET_VERBS_TEAR=plan)
        check(f"{name}, {plan}: status", (one.status, one.said), (0, ""))
        check(f"{name}, {plan}: wrong", one.answers["wrong"], 0)
        check(f"{name}, {plan}: retries", one.answers["retries"], lambda seen: seen > 0)
        check(f"{name}, {plan}: torn", one.seen["torn"], lambda seen: seen > 0)
        print(f"{name}, torn {plan}: {one.seen['torn']} torn, {one.answers['retries']} retries, {one.answers['wrong']} wrong", flush=True)


class Pair:
    """A listening process and a connecting one."""

    def __init__(self, name, *arguments):
        self.name = name
        self.file, env = environment(f"{name}.listening")
        self.listening = subprocess.Popen([LIFE, "--listen", AT, "--only", name, *map(str, arguments)], stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True, env=env)
        warned = self.listening.stderr.readline()
        check(f"{name}: it says what listening means", "whoever connects with the token can read and write" in warned, True)
        self.token = re.search(r"--token (\w+)", self.listening.stderr.readline())[1]

    def connect(self, token):
        self.connected_file, env = environment(f"{self.name}.connecting")
        self.connected = subprocess.Popen([LIFE, "--connect", AT, "--token", token], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                          text=True, env=env)
        return self

    def ended(self, process, file):
        out, said = process.communicate(timeout=60)
        return Run(self.name, subprocess.CompletedProcess([], process.returncode, out, said), file)

    def wait_for(self, counters, more):
        """Until so many more of these than now, or for ten seconds: how many there were."""
        def count():
            seen = read_counts.snapshot(self.connected_file)
            return sum(seen[name] for name in counters)
        for _ in range(100):  # until the library has made its file
            if self.connected_file.exists() and self.connected_file.stat().st_size > 0:
                break
            time.sleep(0.1)
        first = count()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and count() - first < more:
            time.sleep(0.05)
        return count() - first


def wrong_token():
    pair = Pair("raw-read").connect("0" * 32)
    connecting, listening = pair.ended(pair.connected, pair.connected_file), pair.ended(pair.listening, pair.file)
    check("wrong token, connecting", (connecting.status, connecting.said), (1, "paradigms_life: refused by the listening side: wrong token"))
    check("wrong token, listening", listening.status, 1)
    check("wrong token, listening", listening.said, lambda said: re.fullmatch(r"paradigms_life: [\d.]+ is refused: wrong token", said))
    check("memory that the stranger could have reached", listening.seen["remote_readable"] + listening.seen["remote_writable"], 0)
    print("wrong token: refused on both sides")


def two_processes():
    pair = Pair("raw-read", "--ops", 200)
    pair.connect(pair.token)
    for process, file, nodes in ((pair.connected, pair.connected_file, "clients"), (pair.listening, pair.file, "servers")):
        one = pair.ended(process, file)
        check(f"two processes, {nodes}: status", (one.status, one.said), (0, ""))
        check(f"two processes, {nodes}", len(getattr(one, nodes)), 1)
        one.check_counters()
    print("two processes: ended as one does")


def nobody_listens():
    one = run("nobody", "--connect", AT, "--token", "0")
    check("nobody listens", (one.status, one.said), (1, "paradigms_life: nobody listens there, or the listener has all its clients"))


def stands_still(name):
    """The server process stands still: one-sided ops go on."""
    pair = Pair(name, "--ops", 1_000_000, "--pause", 5, "--gets", 100)
    pair.connect(pair.token)
    check(f"{name}: completions before", pair.wait_for(["send_completions"], 60), lambda seen: seen >= 60)
    pair.listening.send_signal(signal.SIGSTOP)
    time.sleep(0.3)  # what was under way comes to its end
    served = pair.wait_for(["send_completions"], 40)
    check(f"{name}: completions while the server stands still", served, lambda seen: seen >= 40)
    pair.listening.send_signal(signal.SIGCONT)
    check(f"{name}: completions after", pair.wait_for(["send_completions"], 60), lambda seen: seen >= 60)
    print(f"{name}: {served} completions while the server stood still")
    dies(name, "failed", pair)


def dies(name, ends_as, pair=None):
    """The server process is killed: every op that is begun ends, and none is answered wrongly."""
    if pair is None:
        pair = Pair(name, "--ops", 1_000_000, "--pause", 5, "--gets", 100)
        pair.connect(pair.token)
        check(f"{name}: verbs before", pair.wait_for(["doorbells"], 60), lambda seen: seen >= 60)
    pair.listening.kill()
    pair.listening.communicate()
    one = pair.ended(pair.connected, pair.connected_file)
    check(f"{name}: after kill -9", (one.status, one.said), (1, "paradigms_life: the other side is gone"))
    check(f"{name}: wrong", one.answers["wrong"], 0)
    check(f"{name}: never answered", one.answers["unanswered"], 0)
    check(f"{name}: ops that are {ends_as}", one.answers[ends_as], lambda seen: seen >= 1)
    print(f"{name}: after kill -9 {one.answers[ends_as]} {ends_as}, the longest op {one.answers['longest_ms']} ms", flush=True)


ids = ONLY or subprocess.run([LIFE, "--ids"], capture_output=True, text=True, check=True).stdout.split()
began = time.monotonic()
for each in ids:
    prove(each)
torn()
wrong_token()
two_processes()
nobody_listens()
stands_still("raw-read")
for each, ends_as in (("reply", "failed"), ("pilaf", "failed"), ("herd", "lost")):
    dies(each, ends_as)
print(f"{len(ids)} paradigms, {time.monotonic() - began:.0f} s; {len(wrong)} wrong" + "".join(f"\n  {each}" for each in wrong))
sys.exit(1 if wrong else 0)
