"""Daemons that die, by kill -9 and by signals that ask: what the other daemon, the other proxies and the clients see."""

import os
import random
import re
import signal
import socket
import threading
import time

import pytest

from bystander import Bystander
from dialog import Case, converse, show
from servers import SLACK, SUT, Egret, ask, connect, start_subject, stats_of, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="needs two daemons")

MIB = 1 << 20
KILLS = 100


@pytest.fixture
def two_proxies():
    server = start_subject(proxies=2)
    yield server
    server.stop()


def says(address, request, wanted, within=20.0):
    """Waits until a fresh connection's answer to the request is the wanted one."""
    def answers():
        try:
            return ask(address, request, end=wanted[-5:], timeout=3) == wanted
        except OSError:
            return False
    wait_for(answers, f"{request!r} to be answered {wanted!r}", within)


def leave_alone(address):
    """What the backend holds, by another proxy's word."""
    stats = stats_of(address)
    return {name: int(stats[name]) for name in ("bytes", "curr_items")}


def test_a_proxy_killed_in_the_middle_of_a_chunked_set_a_hundred_times(two_proxies):
    """The backend's memory, items, descriptors come back; clients of the other proxy notice nothing."""
    server = two_proxies
    victim, steady = 0, 1
    rng = random.Random(11)

    def kill_once(number):
        sock = connect(server.addresses[victim])
        sock.setblocking(False)
        key = b"chunked%d" % (number % 5)
        length = 1_000_000
        data = memoryview(b"set %s 0 0 %d\r\n" % (key, length) + b"c" * length + b"\r\n" + b"get %s\r\n" % key)
        # Every third time the value lacks its end; else the whole is under way when the proxy dies.
        stop = len(data) if number % 3 else rng.randrange(1000, length)
        sent = 0
        end = time.monotonic() + 5
        while sent < stop and time.monotonic() < end:
            try:
                sent += sock.send(data[sent:stop])
            except BlockingIOError:
                time.sleep(0.0002)
                if rng.random() < 0.05:
                    break
        time.sleep(rng.random() * 0.004)
        server.proxies[victim].kill()
        sock.close()
        server.start_proxy(victim)
        assert server.wait_ready(victim)

    def clean():
        converse(server.addresses[steady], [Case(b"".join(b"delete chunked%d\r\n" % n for n in range(5)) + b"delete bystander\r\n")])

    with Bystander(server.addresses[steady]):
        for number in range(5):  # whatever is allocated once is allocated now
            kill_once(number)
    clean()
    held = leave_alone(server.addresses[steady])
    files = server.backend.open_files()
    memory = server.backend.rss_bytes()
    with Bystander(server.addresses[steady]) as bystander:
        for number in range(KILLS):
            kill_once(number)
            assert bystander.failure is None, f"after {number + 1} kills: {bystander.failure!r}"
    server.check_alive()
    clean()
    wait_for(lambda: leave_alone(server.addresses[steady])["curr_items"] <= held["curr_items"], "the items to be as before")
    assert leave_alone(server.addresses[steady]) == held
    wait_for(lambda: server.backend.open_files() <= files, "the sessions' descriptors to be closed")
    grown = server.backend.rss_bytes() - memory
    assert grown < 24 * MIB * SLACK, f"the backend grew by {grown / MIB:.1f} MiB over {KILLS} killed proxies"


def test_a_killed_proxy_comes_back_to_the_same_items(two_proxies):
    server = two_proxies
    converse(server.addresses[0], [Case(b"set kept 4 0 5\r\nvalue\r\n")])
    server.proxies[0].kill()
    assert ask(server.addresses[1], b"get kept\r\n", end=b"END\r\n") == b"VALUE kept 4 5\r\nvalue\r\nEND\r\n"
    server.start_proxy(0)  # its Unix socket's file is still there
    assert server.wait_ready(0)
    for address in (server.addresses[0], server.unix_address(0)):
        assert ask(address, b"get kept\r\n", end=b"END\r\n") == b"VALUE kept 4 5\r\nvalue\r\nEND\r\n"


class Loader:
    """A client that never gives up its connection: each answer is right, or a SERVER_ERROR line."""

    def __init__(self, address, number):
        self.sock = connect(address, timeout=30)
        self.lines = self.sock.makefile("rb")
        self.key = b"load%d" % number
        self.size = (10, 3000, 5000, 200_000)[number % 4]
        self.errors = 0
        self.hits = 0
        self.failure = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _work(self):
        try:
            turn = 0
            while not self.stopping.is_set():
                turn += 1
                value = (b"%d." % turn) * (self.size // 4)
                self.sock.sendall(b"set %s 0 0 %d\r\n%s\r\nget %s\r\n" % (self.key, len(value), value, self.key))
                self._hear_set()
                self._hear_get(value)
        except BaseException as failure:  # told to the test's thread
            self.failure = failure

    def _line(self):
        line = self.lines.readline()
        assert line, "the connection was closed"
        return line

    def _hear_set(self):
        line = self._line()
        if line.startswith(b"SERVER_ERROR "):
            self.errors += 1
        else:
            assert line == b"STORED\r\n", show(line)

    def _hear_get(self, value):
        line = self._line()
        if line.startswith(b"SERVER_ERROR "):
            self.errors += 1
        elif line != b"END\r\n":
            head = re.fullmatch(rb"VALUE (\S+) 0 (\d+)\r\n", line)
            assert head and head[1] == self.key, show(line)
            data = self.lines.read(int(head[2]))
            assert self.lines.read(2) == b"\r\n"
            # A set that was answered with an error may have taken effect or not: the value is this turn's or an older one.
            unit = data.split(b".", 1)[0] + b"."
            assert data == unit * (len(data) // len(unit)), f"mixed value {show(data)}"
            assert int(unit[:-1]) <= int(value.split(b".", 1)[0])
            self.hits += 1
            assert self._line() == b"END\r\n"

    def stop(self):
        self.stopping.set()
        self.thread.join(60 * SLACK)
        self.sock.close()
        assert self.failure is None, f"{self.key}: {self.failure!r}"


def test_a_backend_killed_under_load():
    """Clients hear SERVER_ERROR on connections that stay open, and are served again when the backend is back."""
    server = start_subject()
    loaders = [Loader(server.address, number) for number in range(8)]
    try:
        for _ in range(3):
            wait_for(lambda: all(loader.hits > 10 or loader.failure for loader in loaders), "load")
            server.kill_backend()
            for loader in loaders:
                loader.errors = 0
            wait_for(lambda: all(loader.errors > 0 or loader.failure for loader in loaders), "every client to hear an error")
            ((answer, _),) = converse(server.address, [Case(b"set <k> 0 0 3\r\nabc\r\nget <k>\r\nversion\r\nset <k> 0 0 9000\r\n" + b"v" * 9000
                                                            + b"\r\nincr <k> 1\r\ndelete <k>\r\nget <k> <l> <m>\r\nverbosity 0\r\n")])
            lines = answer.split(b"\r\n")
            errors = [line.startswith(b"SERVER_ERROR ") for line in lines]
            assert errors == [True, True, False, True, True, True, True, False, False], show(answer)
            server.start_backend()
            for loader in loaders:
                loader.hits = 0
            wait_for(lambda: all(loader.hits > 10 or loader.failure for loader in loaders), "every client to be served again", 30)
    finally:
        failures = []
        for loader in loaders:
            try:
                loader.stop()
            except AssertionError as failure:
                failures.append(str(failure))
        alive = server.proxies[0].is_alive()
        log = server.proxies[0].log()
        server.stop()
    assert alive, log
    assert not failures, failures


def test_a_backend_asked_to_end_and_started_again():
    server = start_subject()
    try:
        converse(server.address, [Case(b"set gone 0 0 1\r\na\r\n")])
        assert server.backend.stop() == 0
        with connect(server.address) as sock:
            sock.sendall(b"get gone\r\n")
            assert sock.recv(1000).startswith(b"SERVER_ERROR ")
            server.start_backend()
            says(server.address, b"get gone\r\n", b"END\r\n")
            sock.sendall(b"set gone 0 0 1\r\nb\r\nget gone\r\n")
            answer = b""
            while not answer.endswith(b"END\r\n"):
                piece = sock.recv(1000)
                assert piece
                answer += piece
            assert answer == b"STORED\r\nVALUE gone 0 1\r\nb\r\nEND\r\n"
    finally:
        server.stop()


def test_a_proxy_without_clients_finds_the_backend_that_comes_later():
    server = start_subject(start=False)
    try:
        server.add_proxy(ready=False)
        wait_for(lambda: "listening on unix" in server.proxies[0].log(), "the proxy to listen")
        server.start_backend()
        wait_for(lambda: "worker 0: session with" in server.proxies[0].log(), "a session that no client asked for")
    finally:
        server.stop()


def test_the_proxy_started_before_the_backend():
    server = start_subject(start=False)
    try:
        server.add_proxy(ready=False)

        def listens():
            try:
                return ask(server.address, b"version\r\n").startswith(b"VERSION")
            except OSError:
                return False
        wait_for(listens, "the proxy to listen")
        assert ask(server.address, b"get early\r\n").startswith(b"SERVER_ERROR ")
        assert ask(server.address, b"set early 0 0 3\r\nabc\r\n").startswith(b"SERVER_ERROR ")
        server.start_backend()
        assert server.wait_ready(0)
        assert ask(server.address, b"set early 0 0 3\r\nabc\r\n") == b"STORED\r\n"
    finally:
        server.stop()


# SIGTERM and SIGINT: with status 0, and soon. `drain` is an hour here, and the bound of a hang much less: a daemon that waits for
# clients who have nothing to be answered does not end in time.
def ends(daemon, number):
    daemon.signal(number)
    status = daemon.process.wait(30 * SLACK)
    assert status == 0, f"{daemon.name} ended with status {status}; its log:\n{daemon.log()}"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("order", ["proxy first", "backend first"])
def test_signals_end_both_daemons(number, order):
    server = start_subject(proxy={"drain": "1h"})
    socks = [connect(server.address) for _ in range(200)]
    try:
        for sock in socks[:100]:
            sock.sendall(b"set signal 0 0 10\r\nabc")  # unfinished: nobody waits for it
        daemons = [server.proxies[0], server.backend]
        for daemon in daemons if order == "proxy first" else reversed(daemons):
            ends(daemon, number)
    finally:
        for sock in socks:
            sock.close()
        server.stop()


def test_the_proxy_answers_what_is_in_flight_before_it_ends():
    """Whatever was answered is answered whole, in order; the connection then ends cleanly at an answer's end."""
    for size, clients, count in ((10, 20, 20), (5000, 20, 20), (300_000, 5, 4)):
        server = start_subject()
        try:
            value = b"v" * size
            ((stored, _),) = converse(server.address, [Case(b"set flight 0 0 %d\r\n%s\r\n" % (size, value))])
            assert stored == b"STORED\r\n", (size, stored)
            whole = b"VALUE flight 0 %d\r\n%s\r\nEND\r\n" % (size, value)
            socks = []
            for _ in range(clients):
                sock = connect(server.address)
                sock.sendall(b"get flight\r\n" * count)
                first = sock.recv(1)
                assert first == b"V", f"values of {size}: {first + sock.recv(100)!r}"
                socks.append(sock)
            server.proxies[0].signal(signal.SIGTERM)
            for sock in socks:
                answer = bytearray(b"V")
                while piece := sock.recv(1 << 20):
                    answer += piece
                sock.close()
                count = len(answer) // len(whole)
                assert count >= 1 and answer == whole * count, f"{count} whole answers, then {show(bytes(answer[count * len(whole):]))}"
            assert server.proxies[0].wait() == 0
        finally:
            server.stop()


def test_a_single_request_in_flight_is_answered():
    """One request per connection, all read by the proxy before the signal: all are answered."""
    server = start_subject()
    try:
        socks = [connect(server.address) for _ in range(50)]
        for number, sock in enumerate(socks):
            sock.sendall(b"set flight%d 0 0 1\r\na\r\n" % number)
        for sock in socks:
            assert sock.recv(100) == b"STORED\r\n"
        for number, sock in enumerate(socks):
            sock.sendall(b"get flight%d\r\n" % number)
        answers = []
        first = socks[-1].recv(100)  # by now the others are answered or under way
        time.sleep(0.05)
        server.proxies[0].signal(signal.SIGTERM)
        for number, sock in enumerate(socks):
            answer = first if number == 49 else b""
            while piece := sock.recv(100):
                answer += piece
            answers.append(answer)
        assert answers == [b"VALUE flight%d 0 1\r\na\r\nEND\r\n" % number for number in range(50)]
        assert server.proxies[0].wait() == 0
    finally:
        server.stop()


def test_a_pipeline_that_was_sent_before_the_signal_is_answered_to_its_end():
    """Also what the proxy had not read yet when it was told to stop."""
    count = 30_000
    server = start_subject()
    try:
        socks = [connect(server.address) for _ in range(4)]
        for sock in socks:
            sock.sendall(b"get none\r\n" * count)  # returns when all of it is in the socket or read
        server.proxies[0].signal(signal.SIGTERM)
        for sock in socks:
            answer = bytearray()
            while piece := sock.recv(1 << 20):
                answer += piece
            assert answer == b"END\r\n" * count, f"{len(answer) // 5} answers of {count}"
        assert server.proxies[0].wait() == 0
    finally:
        server.stop()


def succession():
    """A proxy that is told to stop while a request is in flight, and one that takes its place before it has. True: it did come before."""
    server = start_subject()
    try:
        path = server.unix_address()
        slow = connect(server.address)
        server.backend.signal(signal.SIGSTOP)
        slow.sendall(b"get none\r\n")  # in flight until the old proxy's patience ends
        time.sleep(0.05)
        old = server.proxies[0]
        old.signal(signal.SIGTERM)
        wait_for(lambda: not os.path.exists(path), "the old proxy to stop listening")
        server.start_proxy(0)
        wait_for(lambda: os.path.exists(path), "the new proxy to listen")
        overlapped = old.is_alive()
        assert old.wait() == 0
        server.backend.signal(signal.SIGCONT)
        assert server.wait_ready(0)
        assert ask(path, b"version\r\n").startswith(b"VERSION")
        slow.close()
        return overlapped
    finally:
        server.backend.signal(signal.SIGCONT)
        server.stop()


def test_a_proxy_that_ends_leaves_the_socket_of_its_successor_alone():
    """The old one still answers a client when the new one has bound the same Unix socket; on a busy host, not at the first try."""
    assert any(succession() for _ in range(10)), "the old proxy always ended before the new one listened"


def test_sockets_left_behind_do_not_hinder_a_new_start():
    """kill -9 leaves the socket files; both daemons start again on the same names."""
    server = start_subject()
    try:
        server.backend.kill()
        server.proxies[0].kill()
        assert os.path.exists(server.backend_socket) or not str(server.backend_socket).startswith("/")
        server.start_backend()
        server.start_proxy(0)
        assert server.wait_ready(0)
        assert ask(server.unix_address(), b"version\r\n").startswith(b"VERSION")
    finally:
        server.stop()


def test_a_stranger_on_the_backends_socket(two_proxies):
    """Junk, silence and sudden ends on the socket where proxies connect: the backend and its proxies carry on."""
    server = two_proxies
    rng = random.Random(5)
    files = server.backend.open_files()
    with Bystander(server.address):
        silent = []
        for number in range(200):
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM if number % 2 else socket.SOCK_SEQPACKET)
            sock.settimeout(2)
            try:
                sock.connect(str(server.backend_socket))
                if number % 10 < 8:
                    sock.send(rng.randbytes(rng.choice([1, 15, 16, 17, 64, 4000])))
            except OSError:
                pass
            if number % 10 == 9:
                silent.append(sock)
            else:
                sock.close()
        server.check_alive()
        for sock in silent:
            sock.close()
    wait_for(lambda: server.backend.open_files() <= files, "the strangers' descriptors to be closed")
    server.check_alive()
