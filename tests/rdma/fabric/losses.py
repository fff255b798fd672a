#!/usr/bin/env python3
"""losses.py BUILD LIBRARY: sessions between two guests whose wire loses, reorders and for a while swallows packets (netem). The backend is in
guest 1; they tell each other by files of /share how far they are."""
import os, pathlib, subprocess, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from under import *

SHARE = pathlib.Path("/share")
BACKEND = "rdma:10.9.0.2:11311"
PATIENCE = 60  # seconds, times EGRET_SLACK
DEVICE = next(name for name in os.listdir("/sys/class/net") if name.startswith("e"))
SECONDS_OF_HOLES = (0.6, 1.5)


def netem(*what):
    """What this guest sends meets that on its way; nothing: it arrives."""
    words = ["replace", "dev", DEVICE, "root", "netem", *what] if what else ["del", "dev", DEVICE, "root"]
    subprocess.run(["tc", "qdisc", *words], check=True)


def lost(proxy):
    return proxy.log(1 << 20).count("[session_lost]")


def prove_lossy():
    """Answers are right, and the session goes on, while packets are lost, twice there, and late."""
    proxy = start_proxy(BACKEND, {"ack_timeout": 18})
    check_served(proxy)
    for what in ("loss", "1%"), ("duplicate", "2%"), ("delay", "2ms", "1ms", "reorder", "20%"):
        netem(*what)
        check_served(proxy)
        netem()
        check(f"sessions lost for {' '.join(what)}", lost(proxy), 0)
    proxy.stop()


def increments(proxy, until):
    """Asks to count one more until then: how often it asked, and the errors among the answers."""
    asked, errors = 0, 0
    while not until():
        asked += 1
        errors += ask(proxy, b"incr count 1\r\n").startswith(b"SERVER_ERROR")
    return asked, errors


def prove_holes():
    """A hole that is shorter than what ack_timeout allows ends nothing, and what was sent into it is done once; a longer one ends the session, which
    comes back. Seven tries of 1.07 s; of 8 ms."""
    for timeout, survives in (18, True), (11, False):
        proxy = start_proxy(BACKEND, {"ack_timeout": timeout, "op_timeout": "3600s"})
        servers.wait_for(lambda: serves(proxy), "the proxy to serve", PATIENCE)
        for seconds in SECONDS_OF_HOLES:
            servers.wait_for(lambda: ask(proxy, b"set count 0 0 1\r\n0\r\n") == b"STORED\r\n", "a counter", PATIENCE)
            before = lost(proxy)
            # The hole is over by itself, whatever the ops in it do.
            hole = subprocess.Popen(["bash", "-c", f"tc qdisc replace dev {DEVICE} root netem loss 100%; sleep {seconds}; tc qdisc del dev {DEVICE} root"])
            asked, errors = increments(proxy, lambda: hole.poll() is not None)
            servers.wait_for(lambda: serves(proxy), "the proxy to serve again", PATIENCE)
            check(f"the session ends in a hole of {seconds} s with ack_timeout={timeout}", lost(proxy) > before, not survives)
            count = int(ask(proxy, b"get count\r\n", b"END\r\n").split(b"\r\n")[1])
            check(f"asked {asked} times with {errors} errors, counted {count}", asked - errors <= count <= asked, True)
        proxy.stop()


def backend_host():
    backend = start_backend(options={"ack_timeout": 18})
    servers.wait_for(lambda: "listening on" in backend.log(), "the backend to listen", PATIENCE)
    (SHARE / "listens").touch()
    servers.wait_for((SHARE / "done").exists, "the other guest", 20 * PATIENCE)
    backend.stop()


def proxy_host():
    servers.wait_for((SHARE / "listens").exists, "the other guest", PATIENCE)
    subprocess.run(["modprobe", "-d", os.environ["EGRET_GUEST_KERNEL"], "sch_netem"], check=True)
    try:
        run({"lossy": prove_lossy, "holes": prove_holes}, "EGRET_LOSSES_PARTS", "sessions outlived what the wire did to them, but for holes too long for them")
    finally:
        (SHARE / "done").touch()


backend_host() if os.environ["EGRET_GUEST_ID"] == "1" else proxy_host()
