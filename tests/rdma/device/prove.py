#!/usr/bin/env python3
"""prove.py BUILD LIBRARY: what sessions share of a device, what making and ending them holds up, and what becomes of them when it is
taken away. Runs in a guest; EGRET_DEVICE_PARTS="set_up removal" runs these only."""
import datetime, os, pathlib, re, subprocess, sys, threading, time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "fabric"))
from under import *

PATIENCE = 15  # seconds, times EGRET_SLACK


def client_of(proxy):
    return servers.connect(("127.0.0.1", int(proxy.options["listen"][0].rsplit(":", 1)[1])), PATIENCE)


def say(sock, request):
    sock.sendall(request)
    return sock.recv(4096)


# --- set_up: a worker goes on while a session of its own is made, or ended

SLOW_MS = 200
# The set-up thread makes the sessions of both backends one after the other: either row, twice, adds up to less than an attempt to connect may take.
SLOW = (("create_qp", "reg_mr", "alloc_pd", "create_cq"), ("destroy_qp", "dereg_mr", "query_qp", "modify_qp"))


def key_of_first_backend(sock):
    """Of two backends the second is down: a key whose get is answered."""
    for number in range(100):
        key = b"key%d" % number
        if say(sock, b"get %s\r\n" % key) == b"END\r\n":
            return key
    raise AssertionError("every key belongs to the backend that is down")


def prove_set_up():
    """While the worker's session with one backend is set up and ended by a device that takes its time, ops of its session with another
    one are answered: at least one within each slow call, by counts that are read before and after each op."""
    for kinds in SLOW:
        first, second = start_backend("rdma:*:11311"), start_backend("rdma:*:11312")
        backends = [f"rdma:{ADDRESS}:{port}" for port in (11311, 11312)]
        proxy = start_proxy(backends[0], {"backends": backends, "idle_window": 0, "eject_share": 0}, slow=",".join(f"{kind}:1+:{SLOW_MS}" for kind in kinds))
        servers.wait_for(lambda: proxy.log().count("[session_open]") == 2, "both sessions", PATIENCE)
        second.daemon.kill()
        answered = {}  # by the number of the slow call: ops that were sent and answered within it
        with client_of(proxy) as sock:
            servers.wait_for(lambda: "[session_lost]" in proxy.log(), "the session to be lost", PATIENCE)
            key = key_of_first_backend(sock)
            second = start_backend("rdma:*:11312")
            begun_before = proxy.counts()["slow_begun"]

            def is_back():
                before = proxy.counts()
                check("an op of the other session", say(sock, b"get %s\r\n" % key), b"END\r\n")
                after = proxy.counts()
                if before["slow_begun"] > before["slow_ended"] and after["slow_ended"] == before["slow_ended"]:
                    answered[before["slow_begun"]] = answered.get(before["slow_begun"], 0) + 1
                return proxy.log().count("[session_open]") == 3
            servers.wait_for(is_back, "the session to be back", PATIENCE)
        made = range(begun_before + 1, proxy.counts()["slow_ended"] + 1)
        print(f"{' '.join(kinds)}: {len(made)} slow calls, ops answered within each: {[answered.get(each, 0) for each in made]}", flush=True)
        check("there were slow calls", len(made) >= 4, True)
        # The first of them may have been over before the first op, and the last one have begun after the last op.
        check("calls within which no op was answered", [each for each in made[1:-1] if each not in answered], [])
        for each in proxy, first, second:
            each.stop()


# --- shared: few queues, one channel


def while_asked_now_and_then(proxy, *daemons, gets=40):
    """What each daemon's library counts while a client asks again and again, everybody having gone to sleep each time."""
    with client_of(proxy) as sock:
        for number in range(5 + gets):
            if number == 5:  # how the handshakes' frames were waited for shows once more
                before = [each.counts() for each in daemons]
            check("the answer", say(sock, b"get key%d\r\n" % number), b"END\r\n")
            time.sleep(0.03)
    return [read_counts.difference(each.counts(), start) for each, start in zip(daemons, before)]


def has_now(daemon, *kinds):
    """Of queue_pairs, completion_queues, completion_channels: how many there are."""
    counts = daemon.counts()
    return tuple(counts[kind] - counts[f"{kind}_destroyed"] for kind in kinds)


def descriptors(daemon):
    """The daemon itself: `env` has become it."""
    return len(os.listdir(f"/proc/{daemon.daemon.process.pid}/fd"))


def wait_until_has(daemon, kinds, most):
    """has_now() of these kinds, of the first just so many, of the others at most; or what there was instead."""
    seen = []

    def is_so():
        seen[:] = [has_now(daemon, *kinds)]
        return seen[0][0] == most[0] and all(has <= bound for has, bound in zip(seen[0], most))
    try:
        servers.wait_for(is_so, "what it has", PATIENCE)
    except TimeoutError:
        check(f"{daemon.daemon.name} has {kinds}, at most", seen[0], most)


def prove_shared():
    """64 sessions of one worker with one partition share a channel or two and a few completion queues on either side; a sleep takes one system call, and one for each channel."""
    ports, hosts = range(11311, 11327), [ADDRESS, "10.9.0.11", "10.9.0.12", "10.9.0.13"]
    for host in hosts[1:]:
        ip("addr", "add", f"{host}/24", "dev", LINK)
    backend = start_backend([f"rdma:*:{port}" for port in ports], {"sessions_per_peer": 200})
    servers.wait_for(lambda: backend.log().count("listening on") == len(ports), "the backend to listen", PATIENCE)
    open_before = descriptors(backend)
    backends = [f"rdma:{host}:{port}" for host in hosts for port in ports]
    proxy = start_proxy(options={"backends": backends, "idle_window": 0, "window": 2, "eject_share": 0})
    servers.wait_for(lambda: proxy.log(1 << 20).count("[session_open]") == len(backends), "all sessions", PATIENCE)
    for name, daemon in ("backend", backend), ("proxy", proxy):
        # A probe of a backend that had no session yet has a queue and a channel of its own.
        wait_until_has(daemon, ("queue_pairs", "completion_channels"), (len(backends), 1))
        queues, = has_now(daemon, "completion_queues")
        # Four have room for them all; attempts that did not become sessions may have taken room at the same time.
        check(f"the {name}'s completion queues ({queues})", queues <= 8, True)
    # One that tells the control thread; beside those of the device, its events, the queues and the set-up threads.
    taken = descriptors(backend) - open_before
    check(f"the backend's descriptors ({taken}) for {len(backends)} sessions", taken <= len(backends) + 12, True)
    for name, seen in zip(("backend", "proxy"), while_asked_now_and_then(proxy, backend, proxy)):
        print(f"{name}, 40 gets, one after the other:", {each: seen[each] for each in ("sleeps", "event_reads", "completion_events", "arms", "polls")}, flush=True)
        check(f"the {name} slept", seen["sleeps"] >= 20, True)
        check(f"system calls of the {name} for a sleep", seen["sleeps"] + seen["event_reads"] <= 2 * seen["sleeps"], True)
        check(f"arms of the {name} for a sleep", seen["arms"] <= seen["sleeps"] + seen["completion_events"], True)
    proxy.stop()
    wait_until_has(backend, ("queue_pairs", "completion_queues", "completion_channels"), (0, 1, 1))
    backend.stop()


# --- removal: the device is taken away, and comes back

def rdma(*arguments):
    return subprocess.Popen(["rdma", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ms_of_a_command():
    """How long it takes to start one here, beside the load."""
    since = datetime.datetime.now()
    rdma("-V").communicate()
    return (datetime.datetime.now() - since).total_seconds() * 1000


def ms_until(event, daemon, since):
    """From a moment to the last line of the daemon's log that tells of such an event, in ms."""
    lines = [line for line in daemon.log().splitlines() if f"[{event}]" in line]
    at = datetime.datetime.fromisoformat(re.match(r"\S+ \S+", lines[-1])[0])
    return (at - since).total_seconds() * 1000


def prove_removal():
    """Under load: sessions end, both daemons let go of the device, so that it can go, and use it when it is back."""
    backend = start_backend(f"rdma:{ADDRESS}:11311")
    proxy = start_proxy(options={"workers": 2})
    servers.wait_for(lambda: serves(proxy), "the proxy to serve", PATIENCE)
    for turn in range(2):
        stopping = threading.Event()

        def load():
            while not stopping.is_set():
                serves(proxy)
        clients = [threading.Thread(target=load) for _ in range(4)]
        for each in clients:
            each.start()
        time.sleep(0.5)
        lost = proxy.log().count("[session_lost]")
        idle_ms = min(ms_of_a_command() for _ in range(3))
        since = datetime.datetime.now()
        deleting = rdma("link", "delete", "rxe0")
        try:
            output, _ = deleting.communicate(timeout=PATIENCE * servers.SLACK)
            check(f"the device is removed, turn {turn}", (deleting.returncode, output), (0, ""))
        except subprocess.TimeoutExpired:
            holders = subprocess.run("ls -l /proc/[0-9]*/fd 2>/dev/null | grep -B99 -E 'uverbs' | grep -E 'uverbs|/proc'", shell=True, capture_output=True, text=True)
            raise AssertionError(f"the device is still there; who has it open:\n{holders.stdout}\n{backend.log()}\n{proxy.log()}")
        servers.wait_for(lambda: proxy.log().count("[session_lost]") > lost, "the proxy's sessions to end", PATIENCE)
        servers.wait_for(lambda: "the RDMA device is gone" in backend.log(), "the backend's log to say why", PATIENCE)
        print(f"removal, turn {turn}: the last session has ended {ms_until('session_lost', proxy, since):.0f} ms after the command began, "
              f"as the proxy says, and {ms_until('session_closed', backend, since):.0f} ms, as the backend says; "
              f"a command that does nothing takes {idle_ms:.0f} ms", flush=True)
        backend.daemon.check_alive()
        proxy.daemon.check_alive()
        added = rdma("link", "add", "rxe0", "type", "rxe", "netdev", LINK)
        check("it is back", (added.communicate(timeout=PATIENCE * servers.SLACK)[0], added.returncode), ("", 0))
        # Connections are dealt to the workers in turn, and each has a session to get back.
        servers.wait_for(lambda: all(serves(proxy) for _ in range(8)), "the proxy to serve over the device that is back", PATIENCE)
        stopping.set()
        for each in clients:
            each.join()
        check_served(proxy)
    proxy.stop()
    backend.stop()


PARTS = {"set_up": prove_set_up, "shared": prove_shared, "removal": prove_removal}
run(PARTS, "EGRET_DEVICE_PARTS", "sessions share what a thread has of a device, hold up nobody, and let go of it")
