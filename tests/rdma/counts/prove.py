#!/usr/bin/env python3
"""prove.py BUILD LIBRARY: counts, not times, prove the paradigm. Runs in a guest.

The release binaries as they are, under libegret_count_verbs.so (LIBRARY), which counts what they post from outside:

    client ── TCP ──▶ egret-proxy ══ WRITE, READ ══▶ egret-backend
                          │ counter file                 │ counter file
                          └───────── read_counts ────────┘  before and after each phase; the proxy's `stats egret` around both

A phase is so many gets, counted slice by slice. Every answer is compared. Then every verb must be accounted for: a WRITE is a request,
a want or a keep-alive, a WRITE_WITH_IMM a request that rings or a ring, a READ the fetch of a result, a counted fetch in vain or a second
READ, and what the backend posts is a delivery that was asked for, word that a lane has fallen asleep, or a keep-alive. README.md tells
what the options are for, and what is set aside.
"""
import collections, os, pathlib, re, sys, time

HERE = pathlib.Path(__file__).resolve().parent
BUILD, LIBRARY = map(pathlib.Path, sys.argv[1:3])
os.environ["EGRET_BUILD"] = str(BUILD)
os.environ.setdefault("EGRET_SLACK", "4")
sys.path[:0] = [str(HERE.parents[1] / "conformance"), str(HERE.parent / "interposer")]
import read_counts
import servers

ADDRESS = os.environ["EGRET_GUEST_ADDRESS"]
GETS = 10_000
BATCH = 16
FEW = 400    # gets of the other phases
SLICE = 160  # gets; a multiple of BATCH
KEYS = 100
FRAME_RECEIVES, GUESSED_LANES, WINDOW, WINDOW_OF_PROBE = 8, 16, 32, 2
MOST_IN_VAIN = 0.15  # fetches in vain, of a message: lanes aim at 0.1
MOST_POSTS = {"fetching": 2.15, "pushed": 2}  # of the client, of a message
# An emulated device takes longer than R allows and workers spin. So: lanes stay awake between two requests, and a worker
# fetches until the result is there, unless it has to wait for ten milliseconds.
AWAKE = {"lane_idle": "1s"}
FETCHING = {"spin": "10ms", "fetch_mode": "fetch"}
ALL_SLOTS = {"idle_window": 0}  # a session that grew while verbs are counted would register memory, and post its handshake
wrong = []


def check(what, seen, expected):
    """Silent if all is well. `expected` is a value, or says whether it likes one."""
    if expected(seen) if callable(expected) else seen == expected:
        return
    wrong.append(f"{what}: {seen}" + ("" if callable(expected) else f", expected {expected}"))
    print(f"  WRONG {wrong[-1]}", flush=True)


class Counted:
    """A daemon under the library."""

    def __init__(self, directory, name, options):
        self.file = directory / f"{name}.counts"
        # Yielding: two processors for two threads that poll, the emulated device and the client.
        argv = ["env", f"LD_PRELOAD={LIBRARY}", f"EGRET_COUNT_VERBS_FILE={self.file}", "EGRET_VERBS_YIELD=1", BUILD / name]
        for key, value in options.items():
            argv += ["--set", f"{key}={value}"]
        print("---", " ".join(map(str, argv[4:])).replace(f"{BUILD}/", ""), flush=True)
        self.daemon = servers.Daemon(argv, directory, name)

    def counts(self):
        return read_counts.snapshot(self.file)


class Pair:
    """A backend and a proxy with one worker, and one client connection."""
    ports = iter(range(11311, 11411))
    last = None  # whose logs tell what went wrong

    def __init__(self, backend=None, proxy=None):
        Pair.last = self
        self.directory = servers.scratch_directory()
        at = f"rdma:{ADDRESS}:{next(self.ports)}"
        self.client_address = ("127.0.0.1", servers.free_port())
        self.backend = Counted(self.directory, "egret-backend", {"listen": at, "partitions": 1, **(backend or {})})
        self.proxy = Counted(self.directory, "egret-proxy", {
            "listen": "tcp:%s:%d" % self.client_address, "backends": at, "workers": 1, "op_timeout": "60s", **ALL_SLOTS, **(proxy or {})})
        servers.wait_for(self.serves, "the proxy to serve")
        self.socket = servers.connect(self.client_address)
        depths = set(re.findall(r"read depth (\d+)", self.proxy.daemon.log()))
        check("read depths in the proxy's log", len(depths), 1)
        self.read_depth = int(depths.pop())
        # The proxy does not know yet how many lanes its first session has. Its probes, which have come and gone, ask for little.
        for each, lanes in (self.backend, (backend or {}).get("partitions", 1)), (self.proxy, GUESSED_LANES):
            seen = each.counts()
            of_session, of_probe = (FRAME_RECEIVES + lanes * window for window in (WINDOW, WINDOW_OF_PROBE))
            posted = seen["recv"] - seen["recv_completions"]
            check(f"{each.daemon.name}: receives that are posted, {of_session} and {of_probe} for each probe", posted,
                  lambda count: count >= of_session and (count - of_session) % of_probe == 0)

    def serves(self):
        self.backend.daemon.check_alive()
        self.proxy.daemon.check_alive()
        try:
            return servers.ask(self.client_address, b"get nothing\r\n") == b"END\r\n"
        except OSError:
            return False

    def exchange(self, request, answer):
        self.socket.sendall(request)
        seen = b""
        while seen != answer:
            piece = self.socket.recv(1 << 20)
            seen += piece
            if not piece or not answer.startswith(seen):
                raise AssertionError(f"{request[:60]} was answered {seen[-200:]}, not {answer[:200]}")

    def own(self):
        """What the proxy counts of its lanes by itself, summed."""
        rows = servers.stats_of(self.client_address, b"egret")
        sums = collections.Counter()
        for name, value in rows.items():
            if ":lane:" in name and value.isdigit():
                sums[name.rsplit(":", 1)[1]] += int(value)
        return sums

    def stop(self):
        self.socket.close()
        for each in (self.proxy, self.backend):
            check(f"{each.daemon.name} ends", each.daemon.stop(), 0)
            seen = each.counts()
            check(f"{each.daemon.name}: what the library does not see, relaxed ordering",
                  [seen[name] for name in ("uncounted", "relaxed_ordering")], [0, 0])


class Phase:
    """What was posted for so many gets: the sum over slices."""

    def __init__(self, name, read_depth):
        self.name, self.read_depth = name, read_depth
        self.gets = self.most_reads = self.set_aside = 0
        self.own, self.proxy, self.backend = collections.Counter(), collections.Counter(), collections.Counter()

    def add(self, slice):
        self.gets += slice.gets
        self.most_reads = max(self.most_reads, slice.most_reads)
        for mine, its in ((self.own, slice.own), (self.proxy, slice.proxy), (self.backend, slice.backend)):
            mine.update(its)

    @property
    def posts_a_message(self):
        """Of the client, without keep-alives."""
        return (posts(self.proxy) - self.proxy["empty_write"]) / self.own["messages"]

    @property
    def in_vain(self):
        return self.own["refetches"] + self.own["torn"]

    def check(self, what, seen, expected):
        check(f"{self.name}: {what}", seen, expected)


def key_of(number, length):
    return f"key-{length}-{number % KEYS}".encode()


def value_of(number, length):
    return (b"%d." % (number % KEYS) * length)[:length]


def plant(pair, length):
    for number in range(KEYS):
        value = value_of(number, length)
        pair.exchange(b"set %s 0 0 %d\r\n%s\r\n" % (key_of(number, length), length, value), b"STORED\r\n")


def get(pair, gets, batch, length):
    requests = [b"get %s\r\n" % key_of(number, length) for number in range(KEYS)]
    answers = [b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key_of(number, length), length, value_of(number, length))
               for number in range(KEYS)]
    for first in range(0, gets, batch):
        numbers = [number % KEYS for number in range(first, min(first + batch, gets))]
        pair.exchange(b"".join(requests[n] for n in numbers), b"".join(answers[n] for n in numbers))


def run_slice(pair, name, gets, batch, length):
    slice = Phase(name, pair.read_depth)
    own, proxy, backend = pair.own(), pair.proxy.counts(), pair.backend.counts()
    get(pair, gets, batch, length)
    proxy_after, backend_after, own_after = pair.proxy.counts(), pair.backend.counts(), pair.own()
    slice.gets, slice.most_reads = gets, proxy_after["reads_under_way"]
    slice.own.update({key: own_after[key] - own[key] for key in own_after})
    slice.proxy.update(read_counts.difference(proxy_after, proxy))
    slice.backend.update(read_counts.difference(backend_after, backend))
    return slice


def run(pair, name, gets, batch=1, length=10, fetched=False):
    """`fetched`: only by fetching. A slice in which the worker had to sleep, and so asked for a delivery, is set aside and done
    again: the machine stood still for longer than a worker may spin. That is rare, or something is wrong."""
    plant(pair, length)
    get(pair, FEW if batch <= BATCH else batch, batch, length)  # a lane learns first
    phase = Phase(name, pair.read_depth)
    while phase.gets < gets:
        slice = run_slice(pair, name, min(max(SLICE, batch), gets - phase.gets), batch, length)
        check_every_verb(slice)
        if fetched and slice.own["wants"] > 0:
            phase.set_aside += 1
            if phase.set_aside > 2 + gets // SLICE:
                raise Busy(f"{name}: the worker had to wait for more than 10 ms in {phase.set_aside} slices")
            get(pair, batch, batch, length)  # a late delivery has been posted when this is answered
        else:
            phase.add(slice)
    if fetched:
        check_fetched(phase)
    return phase


def posts(counts):
    return sum(counts[name] for name in ("write", "write_with_imm", "read", "send", "send_with_imm", "cas", "faa", "other"))


def check_every_verb(done):
    """True of every slice, whatever the mode."""
    own, proxy, backend = done.own, done.proxy, done.backend
    done.check("WRITEs are messages that do not ring, wants and keep-alives", proxy["write"],
               own["messages"] - own["ringing_requests"] + own["wants"] + proxy["empty_write"])
    done.check("READs are fetches and second READs", proxy["read"], own["fetches"] + own["second_reads"])
    done.check("READs that begin within a slot are the second ones", proxy["off_page_read"], own["second_reads"])
    done.check("WRITEs with immediate are rings and messages that ring", proxy["write_with_imm"], own["rings"] + own["ringing_requests"])
    done.check("the proxy posts nothing else", tuple(proxy[name] for name in ("send", "send_with_imm", "cas", "faa", "other")), (0,) * 5)
    done.check("the backend's posts are deliveries and keep-alives", posts(backend), backend["write_with_imm"] + backend["empty_write"])
    if own["wants"] + own["asked"] == 0:
        done.check("no delivery without a want", backend["write_with_imm"], 0)
    for side, counts in (("proxy", proxy), ("backend", backend)):
        done.check(f"the {side} registers nothing", (counts["registrations"], counts["deregistrations"]), (0, 0))
        done.check(f"the {side}'s doorbells are at most its posts", counts["doorbells"], lambda seen: seen <= posts(counts))
        done.check(f"the {side}'s failed completions", counts["failed_completions"], 0)
    done.check("READs under way, of the negotiated depth", done.most_reads, lambda seen: seen <= done.read_depth)
    done.check("messages without a response in time", own["timeouts"], 0)


def check_fetched(done):
    """Each message is one WRITE and one READ that finds its result, besides second READs and the counted ones in vain; the backend is idle."""
    own, proxy, backend = done.own, done.proxy, done.backend
    done.check("wants, rings, deliveries", (own["wants"], own["rings"] + own["ringing_requests"], own["asked"], own["replies"]), (0, 0, 0, 0))
    done.check("WRITEs but keep-alives", proxy["write"] - proxy["empty_write"], own["messages"])
    done.check("READs but second ones and those in vain", proxy["read"] - proxy["off_page_read"] - done.in_vain, own["messages"])
    done.check("posts of the backend but keep-alives", posts(backend) - backend["empty_write"], 0)
    done.check("doorbells of the backend but keep-alives'", backend["doorbells"] - backend["empty_write"], 0)


COLUMNS = {  # of the table
    "gets": lambda p: p.gets,
    "messages": lambda p: p.own["messages"],
    "WRITE/op": lambda p: f"{(p.proxy['write'] - p.proxy['empty_write']) / p.gets:.3f}",
    "READ/op": lambda p: f"{p.proxy['read'] / p.gets:.3f}",
    "in vain": lambda p: p.in_vain,
    "less these": lambda p: f"{(p.proxy['write'] - p.proxy['empty_write'] + p.proxy['read'] - p.in_vain) / p.gets:.3f}",
    "2nd READ": lambda p: p.proxy["off_page_read"],
    "want": lambda p: p.own["wants"],
    "asked": lambda p: p.own["asked"],
    "rings": lambda p: p.proxy["write_with_imm"],
    "posts/msg": lambda p: f"{p.posts_a_message:.3f}",
    "doorbell": lambda p: p.proxy["doorbells"],
    "under way": lambda p: f"{p.most_reads}/{p.read_depth}",
    "| backend posts": lambda p: posts(p.backend) - p.backend["empty_write"],
    "keep-alive": lambda p: p.backend["empty_write"],
    "| set aside": lambda p: p.set_aside,
}


def print_table(phases):
    width = max(len(phase.name) for phase in phases)
    print("\n" + "  ".join([" " * width, *COLUMNS]))
    for phase in phases:
        print("  ".join([f"{phase.name:{width}}", *(f"{str(of(phase)):>{len(name)}}" for name, of in COLUMNS.items())]))
    print("Verbs, doorbells and READs under way are the library's counts, messages, fetches in vain and wants the proxy's own.\n")


def prove_fetching():
    pair = Pair(backend={"partitions": 1, **AWAKE}, proxy=FETCHING)
    single = run(pair, "one by one", GETS, fetched=True)
    single.check("a message for each op", single.own["messages"], GETS)
    single.check("second READs", single.proxy["off_page_read"], 0)
    if single.in_vain > MOST_IN_VAIN * GETS:
        raise Busy(f"{single.name}: {single.in_vain} of {GETS} fetches were in vain")
    single.check("posts of a message", single.posts_a_message, lambda seen: seen <= MOST_POSTS["fetching"])
    batched = run(pair, f"{BATCH} in a write", GETS, batch=BATCH, fetched=True)
    batched.check("second READs", batched.proxy["off_page_read"], 0)
    for name in ("write", "read", "doorbells"):
        batched.check(f"{name} an op", batched.proxy[name] / GETS, lambda seen: 0 < seen <= 0.35)
    long = run(pair, "3,000 B values", FEW, length=3000, fetched=True)
    # F begins at its least, and has learned the length after few messages.
    long.check("second READs", long.proxy["off_page_read"], lambda seen: seen <= FEW // 10)
    pair.stop()
    return [single, batched, long]


def prove_defaults():
    """The shipped options, which make an emulated device ring and deliver: every such verb is accounted for, too."""
    pair = Pair(backend={"partitions": 2})
    large = run(pair, "16 KiB values", 60, length=16 << 10)
    # 4 KiB slots: the get brings a part, four chunks the rest, of which the last is smaller.
    large.check("messages", large.own["messages"], 5 * large.gets)
    large.check("second READs", large.proxy["off_page_read"], lambda seen: seen <= large.gets)
    many = run(pair, "200 of 3,000 B in a write", FEW, batch=200, length=3000)
    pair.stop()
    return [large, many]


def prove_depth():
    """Two lanes share the queue pair, and have twice as many messages under way as it may have READs."""
    pair = Pair(backend={"partitions": 2, **AWAKE}, proxy=FETCHING)
    many = run(pair, "the same, fetched", FEW, batch=200, length=3000)
    many.check("READs under way come near the negotiated depth", many.most_reads, lambda seen: seen >= many.read_depth // 2)
    pair.stop()
    return [many]


def check_pushed(done, most_told):
    """Each message asked with the request, so it is one post on either side; beside them the backend may tell that a lane sleeps, and the
    proxy may ring for a message that was on its way then."""
    own, proxy, backend = done.own, done.proxy, done.backend
    done.check("messages that ask", own["asked"], own["messages"])
    done.check("wants, and READs", (own["wants"], proxy["read"]), (0, 0))
    done.check("results that came by pushes", own["replies"], own["messages"])
    done.check("posts of a message", done.posts_a_message, lambda seen: seen <= MOST_POSTS["pushed"])
    done.check("posts of the backend but keep-alives", posts(backend) - backend["empty_write"] - own["messages"],
               lambda seen: 0 <= seen <= most_told)


def prove_reply():
    """So that the backend's posts can be other than 0. By an option; and, shipped, since the backend has CPU to spare and says so."""
    pair = Pair(backend={"partitions": 1, **AWAKE}, proxy={"fetch_mode": "reply"})
    set_so = run(pair, "reply, by option", FEW)
    check_pushed(set_so, most_told=FEW // 20)
    pair.stop()
    pair = Pair(backend={"partitions": 1, **AWAKE, "push_below_load": 100})
    cheap = run(pair, "reply, for it is cheap", FEW)
    check_pushed(cheap, most_told=FEW // 20)
    pair.stop()
    return [set_so, cheap]


def prove_asleep():
    """Shipped options: the lane sleeps before each request, which rings and asks for the push."""
    pair = Pair(backend={"partitions": 1, "lane_idle": "1ms", "push_below_load": 0})
    plant(pair, 10)
    for _ in range(30):  # the lane learns after how long a pause it sleeps
        time.sleep(0.02)
        get(pair, 1, 1, 10)
    slice = Phase("one in 20 ms", pair.read_depth)
    for number in range(100):
        time.sleep(0.02)
        slice.add(run_slice(pair, slice.name, 1, 1, 10))
    check_every_verb(slice)
    slice.check("messages that ring by themselves", slice.own["ringing_requests"], lambda seen: seen >= 0.95 * slice.own["messages"])
    slice.check("messages that ask", slice.own["asked"], lambda seen: seen >= 0.95 * slice.own["messages"])
    slice.check("posts of a message", slice.posts_a_message, lambda seen: seen <= MOST_POSTS["pushed"])
    slice.check("posts of the backend, of a message", (posts(slice.backend) - slice.backend["empty_write"]) / slice.own["messages"],
                lambda seen: 0.9 <= seen <= 1.1)
    pair.stop()
    return [slice]


class Busy(Exception):
    """What may be the machine's fault."""


def standstills(seconds=3.0):
    """How often a process that does nothing but look at the clock missed more than 5 ms of it."""
    end = time.monotonic() + seconds
    count, last = 0, time.monotonic()
    while last < end:
        now = time.monotonic()
        count += now - last > 0.005
        last = now
    return count


def end_of_busy(reason):
    """Skipped, if the machine does stand still when the daemons do nothing."""
    count = standstills()
    if count > 30 and not wrong:
        print(f"skipped: {reason}, and the machine is busy with other things: it stood still {count} times in 3 s")
        sys.exit(77)
    print(f"FAILED: {reason}, though the machine stood still only {count} times in 3 s" if not wrong else f"FAILED: {wrong}")
    sys.exit(1)


try:
    phases = prove_fetching() + prove_defaults() + prove_depth() + prove_reply() + prove_asleep()
except Busy as busy:
    Pair.last.stop()
    end_of_busy(str(busy))
except BaseException:
    for each in (Pair.last.proxy, Pair.last.backend):
        print(f"--- {each.daemon.name}'s log\n{each.daemon.log()}")
    raise
print_table(phases)
print(f"{len(wrong)} wrong" + "".join(f"\n  {each}" for each in wrong))
sys.exit(1 if wrong else 0)
