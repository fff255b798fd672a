"""two_hosts.py BUILD: the backend on one host (guest 1), the proxy and its clients on the other (guest 0). The guests share
/share, by whose files they tell each other how far they are. Both exit 0, or something was wrong."""

import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
os.environ.setdefault("EGRET_SLACK", "8")
import servers

BUILD = pathlib.Path(sys.argv[1])
SHARE = pathlib.Path("/share")
BACKEND = "rdma:10.9.0.2:11311"
STEP_SECONDS = 120


def say(word):
    (SHARE / word).touch()


def hear(word):
    servers.wait_for((SHARE / word).exists, f"the other guest to say {word}", STEP_SECONDS)


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
    hear("cut")
    device = next(name for name in os.listdir("/sys/class/net") if name.startswith("e"))
    subprocess.run(["ip", "link", "set", device, "down"], check=True)
    hear("mend")
    subprocess.run(["ip", "link", "set", device, "up"], check=True)
    hear("done")
    backend.terminate()
    assert backend.wait(20) == 0, "the backend did not end well"


def ask(request, end=b"\r\n"):
    return servers.ask(("127.0.0.1", 11211), request, end, timeout=60)


def wait_served():
    def served():
        try:
            return ask(b"set served 0 0 1\r\n1\r\n") == b"STORED\r\n"
        except OSError:
            return False

    servers.wait_for(served, "the proxy to serve", STEP_SECONDS, step=0.2)


def check_traffic(turn):
    for size in (0, 10, 4000, 4096, 9000, 100_000, 1_000_000):
        value = (b"%d:%d." % (turn, size) * (size + 1))[:size]
        assert ask(b"set k%d 7 0 %d\r\n%s\r\n" % (size, size, value)) == b"STORED\r\n"
        assert ask(b"get k%d\r\n" % size, b"END\r\n") == b"VALUE k%d 7 %d\r\n%s\r\nEND\r\n" % (size, size, value)
    with servers.connect(("127.0.0.1", 11211), 60) as sock:
        sock.sendall(b"".join(b"set p%d 0 0 4 noreply\r\n%04d\r\n" % (n, n) for n in range(500)))
        sock.sendall(b"get " + b" ".join(b"p%d" % n for n in range(500)) + b"\r\n")
        data = b""
        while not data.endswith(b"END\r\n"):
            data += sock.recv(65536)
        assert data == b"".join(b"VALUE p%d 0 4\r\n%04d\r\n" % (n, n) for n in range(500)) + b"END\r\n"


def proxy_host():
    hear("started")
    # No time-out of ops: only the fabric can say that the other host is gone.
    proxy = subprocess.Popen([BUILD / "egret-proxy", "--set", f"backends={BACKEND}", "--set", "op_timeout=3600s", "--set",
                              "qps_per_session=2"], stderr=open(SHARE / "proxy.log", "a"))
    wait_served()
    check_traffic(1)
    say("kill")
    hear("killed")
    assert ask(b"get p1\r\n").startswith(b"SERVER_ERROR")
    say("again")
    wait_served()
    check_traffic(2)
    # The other host falls silent: no goodbye, no refusal. What is in flight fails, and idle sessions notice, too.
    say("cut")
    servers.wait_for(lambda: ask(b"get p1\r\n").startswith(b"SERVER_ERROR"), "the silence to be noticed", STEP_SECONDS)
    say("mend")
    wait_served()
    check_traffic(3)
    servers.wait_for(lambda: "does not answer" in (SHARE / "proxy.log").read_text(), "the proxy's log to say why")
    proxy.send_signal(signal.SIGTERM)
    assert proxy.wait(20) == 0, "the proxy did not end well"
    say("done")
    print("two hosts: served, killed, served, cut off, served")


try:
    (backend_host if os.environ["EGRET_GUEST_ID"] == "1" else proxy_host)()
except BaseException:
    for log in ("backend.log", "proxy.log"):
        if (SHARE / log).exists() and os.environ["EGRET_GUEST_ID"] == "0":
            print(f"--- {log}\n" + (SHARE / log).read_text()[-3000:])
    raise
