"""What the parts of prove.py share: paradigms_life run under the interposer, what it has printed, and what was wrong with it."""
import collections, json, os, pathlib, re, subprocess, sys, time

HERE = pathlib.Path(__file__).resolve().parent
LIFE, LIBRARY, BENCH = map(pathlib.Path, sys.argv[1:4])
sys.path.insert(0, str(HERE.parent / "interposer"))
import read_counts

ADDRESS = os.environ["EGRET_GUEST_ADDRESS"]
AT = f"{ADDRESS}:18515"
OPS = int(os.environ.get("EGRET_PARADIGMS_OPS", "2000"))
WORK = pathlib.Path("/dev/shm")  # counters are mapped, which /share cannot be
KINDS = ("rc", "uc", "ud")
VERBS = ("write", "read", "send", "cas", "faa", "recv")
PATIENCE = 100 + OPS / 50  # seconds
wrong = []
Marks = collections.namedtuple("Marks", "as_paper default")


def marks_by_id():
    """id -> the marks that its row carries."""
    lines = subprocess.run([LIFE, "--ids"], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = (line.split() for line in lines)
    return {name: Marks(as_paper.split(","), default.split(",")) for name, as_paper, default in rows}


MARKS = marks_by_id()
IDS = os.environ.get("EGRET_PARADIGMS_IDS", "").split() or list(MARKS)


def check(what, seen, expected):
    """Silent if all is well. `expected` is a value, or says whether it likes one."""
    if expected(seen) if callable(expected) else seen == expected:
        return
    wrong.append(f"{what}: {seen}" + ("" if callable(expected) else f", expected {expected}"))
    print(f"  WRONG {wrong[-1]}", flush=True)


def at_least(least):
    return lambda seen: seen >= least


def is_within(expected):
    """A number, or the least and the most."""
    least, most = expected if isinstance(expected, tuple) else (expected, expected)
    return lambda seen: least <= seen <= most


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
        self.servers = [each for each in self.nodes if "walked_gets" in each]
        self.clients = [each for each in self.nodes if "walked_gets" not in each]
        self.seen = collections.Counter(read_counts.snapshot(file) if file.exists() else {})
        self.answers = total(self.clients)
        self.walked = total(self.servers)
        self.of_clients = total(each["of_ops"] for each in self.clients)
        self.of_servers = total(each["of_ops"] for each in self.servers)

    def check_ended(self):
        check(f"{self.name}: status", (self.status, self.said), (0, ""))
        if self.status == 0:
            check(f"{self.name}: not available", self.printed.get("not_available"), "")
        return self.status == 0 and len(self.nodes) > 0

    def check_right(self):
        """Every op is answered, and rightly."""
        if not self.check_ended():
            return False
        check(f"{self.name}: first wrong answer", {each["first_wrong"] for each in self.clients}, {""})
        for kind in ("wrong", "failed", "full", "unanswered"):
            check(f"{self.name}: {kind}", self.answers[kind], 0)
        return True

    def check_counters(self):
        """The interposer counts what the fabrics say, for each type of pair and verb."""
        said = total([each["of_life"] for each in self.nodes] + [self.printed["besides"]])
        for kind in KINDS:
            for verb in VERBS:
                name = f"{kind}_{verb}"
                check(f"{self.name}: {name} by the interposer", self.seen[name] + self.seen.get(f"{name}_with_imm", 0), said[name])
        check(f"{self.name}: doorbells by the interposer", self.seen["doorbells"], said["doorbells"])
        check(f"{self.name}: uncounted", self.seen["uncounted"], 0)
        check(f"{self.name}: registrations while ops were under way", sum(each["registered"] for each in self.nodes), 0)

    def reads_per_get(self):
        """By a walk over the loaded store."""
        return self.walked["walked_steps"] / max(1, self.walked["walked_gets"])


def run_once(name, *arguments, **more):
    file, env = environment(name.split()[0], **more)
    result = subprocess.run([LIFE, *map(str, arguments)], capture_output=True, text=True, env=env, timeout=PATIENCE)
    return Run(name, result, file)


def run(name, *arguments, **more):
    """`name` begins with the id; what follows says which run it is. Both sides are in one process."""
    arguments = ("--loop", AT, "--only", name.split()[0], *arguments)
    one = run_once(name, *arguments, **more)
    if re.search("the other side (does not answer|is gone)$", one.said):
        print(f"{name}: the control connection was not made: once more", flush=True)  # a guest that was held up
        one = run_once(name, *arguments, **more)
    return one


class Pair:
    """A listening process and a connecting one, or several of these."""

    def __init__(self, name, *arguments, at=AT, run="pair"):
        """`run`: of several at a time of one id, which one."""
        self.name, self.at, self.run, self.connections = name, at, run, 0
        self.file, env = environment(f"{name}.{run}.listening")
        self.listening = subprocess.Popen([LIFE, "--listen", at, "--only", name, *map(str, arguments)], stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True, env=env)
        warned = self.listening.stderr.readline()
        check(f"{name}: it says what listening means", "whoever connects with the token can read and write" in warned, True)
        self.token = re.search(r"--token (\w+)", self.listening.stderr.readline())[1]

    def connect(self, *arguments, token=None):
        self.connections += 1
        self.connected_file, env = environment(f"{self.name}.{self.run}.connecting{self.connections}")
        self.connected = subprocess.Popen([LIFE, "--connect", self.at, "--token", token or self.token, *map(str, arguments)],
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        return self.connected

    def ended(self, process, file=None):
        out, said = process.communicate(timeout=60)
        return Run(self.name, subprocess.CompletedProcess([], process.returncode, out, said), file or self.connected_file)

    def kill(self):
        self.listening.kill()
        self.listening.communicate()


def wait_until(holds, seconds=10):
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()
