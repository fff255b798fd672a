#!/usr/bin/env python3
"""soak.py MINUTES: every kind of hostile client and peer at once, on the same two daemons, while bystanders work: their p99 is
printed, before the attack and during it. Beside it the tests of
../hostile, and those of hostile clients, run again and again on daemons of their own. `make soak` runs it.

    bystanders (4, on two proxies) ─▶ answers compared, latencies noted          attackers: a process each, ATTACKS below
    tests/hostile, tests/conformance/test_hostile_clients.py                     a process each, in turn

It fails when a bystander is answered wrongly or not at all, a daemon ends, an attack did not take place, or one of the tests fails. The
latencies are only printed: on a machine with other work they say nothing."""

import multiprocessing
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "conformance"))
import servers
from dialog import show

SECONDS = float(sys.argv[1]) * 60
VALUE = b"v" * 100_000


# --- who must be served


class Bystander(threading.Thread):
    """Sets and gets its own key, compares every answer, and notes how long each pair took."""

    def __init__(self, address, number, size):
        super().__init__()
        self.address, self.key, self.size = address, b"bystander%d" % number, size
        self.latencies = []
        self.failure = None
        self.stopping = False
        self.start()

    def run(self):
        try:
            with servers.connect(self.address) as sock:
                lines = sock.makefile("rb")
                turn = 0
                while not self.stopping:
                    turn += 1
                    value = (b"%d." % turn * self.size)[:self.size]
                    begun = time.monotonic()
                    sock.sendall(b"set %s 0 0 %d\r\n%s\r\nget %s\r\n" % (self.key, len(value), value, self.key))
                    stored, head, data, end = lines.readline(), lines.readline(), lines.read(len(value) + 2), lines.readline()
                    self.latencies.append(time.monotonic() - begun)
                    assert (stored, end) == (b"STORED\r\n", b"END\r\n") and data == value + b"\r\n", show(stored + head + data[:50] + end)
                    time.sleep(0.001)
        except BaseException as failure:  # told to the main thread
            self.failure = failure

    def taken(self):
        latencies, self.latencies = self.latencies, []
        return latencies


def percentiles(latencies):
    ordered = sorted(latencies)
    at = {name: ordered[min(int(len(ordered) * part), len(ordered) - 1)] * 1e6 for name, part in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))}
    return f"{len(ordered)} pairs of set and get, " + ", ".join(f"{name} {figure:.0f} µs" for name, figure in at.items())


# --- who attacks: each a function of one turn


class Target:
    def __init__(self, server):
        self.tcp, self.unix = server.addresses[0], server.unix_address()
        self.shm, self.admin = str(server.backend_socket), server.admin_address


def say(sock, data):
    """As much of it as is taken: who attacks may be turned away at any moment."""
    try:
        sock.send(data)
    except (BlockingIOError, ConnectionError):
        pass


def many(address, count, request, hold):
    """So many connections that send this, read nothing, and stay for so long."""
    socks = []
    try:
        for _ in range(count):
            sock = servers.connect(address, 5)
            socks.append(sock)
            sock.setblocking(False)
            say(sock, request)
        time.sleep(hold)
    finally:
        for sock in socks:
            sock.close()


def answers_unread(target):
    servers.ask(target.tcp, b"set large 0 0 %d\r\n%s\r\n" % (len(VALUE), VALUE))
    many(target.tcp, 20, b"get large\r\n" * 1000, 1)


def uploads_that_stall(target):
    many(target.tcp, 40, b"set stall 0 0 1000000\r\n" + VALUE, 1.5)


def reports_without_end(target):
    many(target.tcp, 8, b"stats detail on\r\nstats detail dump\r\nstats conns\r\nstats items\r\n" * 100 + b"lru_crawler metadump all\r\n", 0.5)


def stats_of_the_backend(target):
    many(target.tcp, 4, b"stats\r\nstats slabs\r\nstats sizes\r\n" * 200, 0.5)


def connections_without_end(target):
    for address in (target.tcp, target.unix):
        many(address, 100, b"", 0)


def junk(target):
    rng = random.Random()
    many(target.tcp, 10, rng.randbytes(20_000), 0.1)
    many(target.unix, 10, b"\x80" + rng.randbytes(23) + b"a\r\nSTAT b\r\n" * 100, 0.1)


def long_lines(target):
    many(target.tcp, 10, b"get " + b"k" * 3_000_000, 0.3)


def shm_socket(target):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.settimeout(2)
    sock.connect(target.shm)
    return sock


def hello():
    """As wire/README.md has it: prefix, features, worker, window, reserved."""
    body = struct.pack("<QQII", 0, random.getrandbits(64), 16, 0)
    return struct.pack("<QHBBI", 0x3150574654455247, 1, 1, 0, 16 + len(body)) + body


def frames_without_end(target):
    for _ in range(50):
        with shm_socket(target) as sock:
            for frame in (b"x", os.urandom(100), hello(), hello(), os.urandom(500)):
                say(sock, frame)


def silent_peers(target):
    socks = []
    try:
        for _ in range(80):
            socks.append(shm_socket(target))
        time.sleep(1)
    finally:
        for sock in socks:
            sock.close()


def sessions_without_end(target):
    for _ in range(20):
        with shm_socket(target) as sock:
            say(sock, hello())
            _, descriptors, _, _ = socket.recv_fds(sock, 600, 16)
            for descriptor in descriptors:
                os.close(descriptor)


def lingering_descriptors(target):
    """A socket whose close waits, sent to the backend and to the proxy."""
    listener = socket.create_server(("127.0.0.1", 0))
    for kind, path in ((socket.SOCK_SEQPACKET, target.shm), (socket.SOCK_STREAM, target.unix)):
        sender = socket.create_connection(listener.getsockname())
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 5))
        sender.setblocking(False)
        try:
            while True:
                sender.send(bytes(1 << 16))
        except BlockingIOError:
            pass
        with socket.socket(socket.AF_UNIX, kind) as sock:
            sock.settimeout(2)
            sock.connect(path)
            try:
                socket.send_fds(sock, [b"get x\r\n"], [sender.fileno()])
            except (PermissionError, ConnectionError):  # a kernel that refuses such descriptors for the daemon; too late
                pass
        # Not closed here: what lingers is the daemon's.
        sender.detach()
    rest, _ = listener.accept()
    rest.close()
    listener.close()


def slow_readers_of_metrics(target):
    many(target.admin, 40, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n", 1)


ATTACKS = [answers_unread, uploads_that_stall, reports_without_end, stats_of_the_backend, connections_without_end, junk, long_lines,
           frames_without_end, silent_peers, sessions_without_end, lingering_descriptors, slow_readers_of_metrics]


def attack_again_and_again(attack, target, turns):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            attack(target)
            turns.value += 1
        except OSError:  # turned away before it was through
            time.sleep(0.05)


# --- the tests, on daemons of their own


class Tests(threading.Thread):
    def __init__(self, file):
        super().__init__()
        self.file, self.runs, self.failure, self.process, self.stopping = file, 0, None, None, False
        self.start()

    def run(self):
        while not self.stopping and self.failure is None:
            argv = ["/usr/bin/python3", "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", str(self.file)]
            done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "EGRET_SLACK": "10", "SUT": "egret"})
            self.runs += 1
            if done.returncode != 0:
                self.failure = done.stdout[-4000:]


def main():
    server = servers.Egret(start=False, backend={"memory": "512MiB"}, proxies=2)
    port = servers.free_port()
    server.proxy_options["admin"] = f"127.0.0.1:{port}"
    server.admin_address = ("127.0.0.1", port)
    server.start_backend()
    server.add_proxy()
    server.proxy_options["admin"] = ""
    server.add_proxy()
    bystanders = [Bystander(server.addresses[number % 2], number, size) for number, size in enumerate((100, 100, 3000, 3000))]
    attackers, tests = [], []

    def watch(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.2)
            server.check_alive()
            for bystander in bystanders:
                assert bystander.failure is None, f"{bystander.key.decode()}: {bystander.failure!r}"
            for each in tests:
                assert each.failure is None, f"{each.file}:\n{each.failure}"

    try:
        watch(max(SECONDS / 20, 3))
        print("before:", percentiles(sum((bystander.taken() for bystander in bystanders), [])), flush=True)
        for attack in ATTACKS:
            turns = multiprocessing.Value("Q", 0)
            process = multiprocessing.Process(target=attack_again_and_again, args=(attack, Target(server), turns), daemon=True)
            process.start()
            attackers.append((attack.__name__, process, turns))
        if SECONDS >= 300:
            tests += [Tests(file) for file in sorted([*(HERE.parent / "hostile").glob("test_*.py"), HERE.parent / "conformance" / "test_hostile_clients.py"])]
        watch(SECONDS)
        print("during:", percentiles(sum((bystander.taken() for bystander in bystanders), [])), flush=True)
    finally:
        for each in tests:
            each.stopping = True
        for _, process, _ in attackers:
            process.kill()
            process.join()
        for bystander in bystanders:
            bystander.stopping = True
        for thread in bystanders + tests:
            thread.join()
    print("attacks:", ", ".join(f"{name} {turns.value}" for name, _, turns in attackers))
    print("tests beside them:", ", ".join(f"{each.file.name} {each.runs}" for each in tests) or "none in a soak this short")
    watch(0.5)
    idle = [name for name, _, turns in attackers if turns.value == 0]
    assert not idle, f"these attacks did not take place: {idle}"
    for daemon in reversed(server.daemons()):
        assert daemon.stop() == 0, daemon.log()
    server.stop()


if __name__ == "__main__":
    main()
