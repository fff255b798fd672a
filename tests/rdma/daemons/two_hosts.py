"""two_hosts.py BUILD: the backend on one host (guest 1), the proxy and its clients on the other (guest 0). The guests share
/share, by whose files they tell each other how far they are. Both exit 0, or something was wrong."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
os.environ.setdefault("EGRET_SLACK", "8")
import servers
from test_life import Load

BUILD = pathlib.Path(sys.argv[1])
SHARE = pathlib.Path("/share")
BACKEND = "rdma:10.9.0.2:11311"
STEP_SECONDS = 60
CUTS = range(2)


def say(word):
    print(f"{time.monotonic():.1f} {word}", flush=True)
    (SHARE / word).touch()


def hear(word):
    servers.wait_for((SHARE / word).exists, f"the other guest to say {word}", STEP_SECONDS)


# What this host sends to `address` goes nowhere. (A link that is taken down does it, too, but QEMU's wire then blocks its
# other end.)
def deafen(address):
    subprocess.run(["ip", "neigh", "replace", address, "lladdr", "02:00:00:00:00:99", "nud", "permanent", "dev", device()],
                   check=True)


def mend(address):
    subprocess.run(["ip", "neigh", "del", address, "dev", device()], check=True)


def device():
    return next(name for name in os.listdir("/sys/class/net") if name.startswith("e"))


def backend_host():
    """Starts, kills and cuts off the backend as the other host asks."""
    def start():
        return subprocess.Popen([BUILD / "egret-backend", "--set", "listen=rdma:*:11311", "--set", "partitions=2",
                                 "--set", "memory=128MiB"], stderr=open(SHARE / "backend.log", "a"))

    backend = start()
    say("started")
    hear("kill")
    backend.send_signal(signal.SIGKILL)
    backend.wait()
    say("killed")
    hear("again")
    backend = start()
    for turn in CUTS:
        hear(f"cut{turn}")
        deafen("10.9.0.1")
        say(f"silent{turn}")
        hear(f"mend{turn}")
        mend("10.9.0.1")
    hear("done")
    backend.terminate()
    assert backend.wait(20) == 0, "the backend did not end well"


def ask(request, end=b"\r\n"):
    return servers.ask(("127.0.0.1", 11211), request, end, timeout=30)


def wait_served():
    def served():
        try:
            return ask(b"set served 0 0 1\r\n1\r\n") == b"STORED\r\n"
        except OSError:
            return False

    servers.wait_for(served, "the proxy to serve", STEP_SECONDS, step=0.2)


def expect(request, answer):
    """A guest that is held up for half a second is a dead one to its peer: an error, and only that, is asked again."""
    for _ in range(5):
        with servers.connect(("127.0.0.1", 11211), 30) as sock:
            sock.sendall(request)
            data = b""
            while len(data) < len(answer) and b"SERVER_ERROR" not in data[-4096:]:
                more = sock.recv(1 << 20)
                assert more, f"closed after {data[-100:]}"
                data += more
        if data == answer:
            return
        assert b"SERVER_ERROR" in data[-4096:], f"{request[:60]} was answered {data[:100]} ... {data[-100:]}"
        wait_served()
    raise AssertionError(f"{request[:60]}: nothing but errors")


def check_traffic(turn):
    for size in (0, 10, 4000, 4096, 9000, 100_000, 1_000_000):
        value = (b"%d:%d." % (turn, size) * (size + 1))[:size]
        expect(b"set k%d 7 0 %d\r\n%s\r\n" % (size, size, value), b"STORED\r\n")
        expect(b"get k%d\r\n" % size, b"VALUE k%d 7 %d\r\n%s\r\nEND\r\n" % (size, size, value))
    expect(b"".join(b"set p%d 0 0 4\r\n%04d\r\n" % (n, n) for n in range(500)), b"STORED\r\n" * 500)
    expect(b"get " + b" ".join(b"p%d" % n for n in range(500)) + b"\r\n",
           b"".join(b"VALUE p%d 0 4\r\n%04d\r\n" % (n, n) for n in range(500)) + b"END\r\n")


# No time-out of ops: only the fabric can say that the other host is gone.
def start_proxy():
    return subprocess.Popen([BUILD / "egret-proxy", "--set", f"backends={BACKEND}", "--set", "op_timeout=3600s", "--set",
                             "qps_per_session=2"], stderr=open(SHARE / "proxy.log", "a"))


def wait_answered(loads):
    before = [load.answers for load in loads]
    servers.wait_for(lambda: all(load.answers > was + 10 for load, was in zip(loads, before)), "answers", STEP_SECONDS)


def proxy_host():
    hear("started")
    proxy = start_proxy()
    wait_served()
    check_traffic(1)
    loads = [Load(("127.0.0.1", 11211), f"load{number}") for number in range(2)]
    for load in loads:
        load.start()
    wait_answered(loads)
    say("kill")
    hear("killed")
    servers.wait_for(lambda: all(load.errors > 0 for load in loads), "everybody to be told", STEP_SECONDS)
    say("again")
    wait_answered(loads)
    proxy.send_signal(signal.SIGKILL)
    proxy.wait()
    proxy = start_proxy()
    wait_answered(loads)
    for load in loads:
        load.end()
    servers.wait_for(lambda: re.search(r"session \d+ closed", (SHARE / "backend.log").read_text()),
                     "the backend to take down the dead proxy's session", STEP_SECONDS)
    check_traffic(2)
    # The other host falls silent: no goodbye, no refusal. What is in flight fails, and idle sessions notice, too.
    for turn in CUTS:
        expect(b"set count 0 0 1\r\n0\r\n", b"STORED\r\n")
        say(f"cut{turn}")
        hear(f"silent{turn}")
        answers = []
        while not answers or not answers[-1].startswith(b"SERVER_ERROR"):
            answers.append(ask(b"incr count 1\r\n"))
        say(f"mend{turn}")
        wait_served()
        # What got no answer was done once or not at all, and is not sent again on the next session.
        count = int(ask(b"get count\r\n", b"END\r\n").split(b"\r\n")[1])
        assert len(answers) - 1 <= count <= len(answers), f"incr, asked {len(answers)} times, counted {count}"
        check_traffic(3 + turn)
    servers.wait_for(lambda: "does not answer" in (SHARE / "proxy.log").read_text(), "the proxy's log to say why")
    proxy.send_signal(signal.SIGTERM)
    assert proxy.wait(20) == 0, "the proxy did not end well"
    say("done")
    print("two hosts: served, backend killed under load, proxy killed under load, cut off twice, served")


try:
    (backend_host if os.environ["EGRET_GUEST_ID"] == "1" else proxy_host)()
except BaseException:
    for log in ("backend.log", "proxy.log"):
        if (SHARE / log).exists() and os.environ["EGRET_GUEST_ID"] == "0":
            print(f"--- {log}\n" + (SHARE / log).read_text()[-3000:])
    raise
