"""Clients that mean harm or know no better: the others are served all the while, and memory stays bounded."""

import socket
import struct
import threading
import time

import pytest

from bystander import Bystander
from dialog import Case, converse
from servers import SLACK, Egret, Memcached, SUT, ask, connect, stats_of, wait_for

MIB = 1 << 20
BIG = 900_000
# What one daemon may hold beyond its size at rest, whatever its clients do.
MEMORY_BOUND = 256 * MIB
# And when they are gone, a few seconds later.
KEPT = 48 * MIB


@pytest.fixture(scope="module", autouse=True)
def big_value(subject):
    ((answer, _),) = converse(subject.address, [Case(b"set big 0 0 %d\r\n" % BIG + b"b" * BIG + b"\r\n")])
    assert answer == b"STORED\r\n"


def front(subject):
    """The daemon that holds the client connections."""
    return subject.proxies[0] if subject.is_egret else subject.daemon


def assert_bounded(subject, at_rest, what):
    for daemon, before in at_rest.items():
        grown = daemon.rss_bytes() - before
        assert grown < MEMORY_BOUND * SLACK, f"{daemon.name} grew by {grown / MIB:.0f} MiB: {what}"


def memory_at_rest(subject):
    return {daemon: daemon.rss_bytes() for daemon in subject.daemons()}


def connections(subject):
    return int(stats_of(subject.address)["curr_connections"])


def drop(sock, with_reset):
    if with_reset:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


UNFINISHED = [b"g", b"get", b"get big", b"get big\r", b"set half 0 0 100\r\nabc", b"set half 0 0 1000000\r\n" + b"h" * 30_000,
              b"set half 0 0 3\r\nabc", b"get big\r\n" * 5, b"get big big big big\r\nget b", b"incr n 1\r\nincr n", b"", b"\r", b"stats\r\nstats\r\nst",
              b"set half 0 0 3 noreply\r\nabc\r\nset half 0 0 30", b"gat 0 big\r\nga", b"delete half\r\ndele"]


def test_ten_thousand_connections_dropped_mid_command(subject):
    at_rest = memory_at_rest(subject)
    files = front(subject).open_files()
    before = connections(subject)
    with Bystander(subject.address):
        for wave in range(10):
            socks = [connect(subject.address) for _ in range(1000)]
            for number, sock in enumerate(socks):
                sock.sendall(UNFINISHED[(number + wave) % len(UNFINISHED)])
            for number, sock in enumerate(socks):
                drop(sock, with_reset=(number // len(UNFINISHED)) % 2)
    wait_for(lambda: connections(subject) <= before, "all connections to be gone")
    wait_for(lambda: front(subject).open_files() <= files + 2, "all descriptors to be closed")
    if subject.is_egret:
        wait_for(lambda: all(daemon.rss_bytes() - was < KEPT for daemon, was in at_rest.items()),
                 "the memory of 10,000 connections to be given back")
    assert_bounded(subject, at_rest, "10,000 dropped connections")
    assert converse(subject.address, [Case(b"get half nothing\r\n")])[0][0].endswith(b"END\r\n")


def test_a_client_that_never_reads(subject):
    """Twenty clients ask for 72 GB and read none of it."""
    at_rest = memory_at_rest(subject)
    greedy = []
    try:
        with Bystander(subject.address) as bystander:
            for _ in range(20):
                sock = connect(subject.address)
                sock.setblocking(False)
                greedy.append(sock)
                asked = memoryview(b"get big\r\n" * 4000)
                try:
                    while len(asked):
                        asked = asked[sock.send(asked):]
                except BlockingIOError:
                    pass  # the server has stopped reading from us, as it should
            turns = bystander.turns
            wait_for(lambda: bystander.failure or bystander.turns > turns + 300, "the bystander to be served", 60)
            assert_bounded(subject, at_rest, "20 clients never read")
    finally:
        for sock in greedy:
            sock.close()
    wait_for(lambda: connections(subject) <= 3, "the greedy connections to be gone")
    assert_bounded(subject, at_rest, "after clients that never read")


def test_a_client_that_reads_late_still_gets_everything(subject):
    with connect(subject.address, timeout=60) as sock, Bystander(subject.address):
        count = 60
        sock.sendall(b"get big\r\n" * count)
        time.sleep(1)
        wanted = b"VALUE big 0 %d\r\n" % BIG + b"b" * BIG + b"\r\nEND\r\n"
        for number in range(count):
            answer = bytearray()
            while len(answer) < len(wanted):
                piece = sock.recv(min(50_000, len(wanted) - len(answer)))
                assert piece, f"closed in answer {number}"
                answer += piece
            assert answer == wanted, f"answer {number}"
            if number % 10 == 0:
                time.sleep(0.05)


@pytest.mark.parametrize("start", [b"x", b"set ", b"get ", b"gets k k k ", b"get" + b" " * 50, b"gat 0 "])
def test_a_line_without_end(subject, start):
    """Whether the server closes or takes it all, it does not keep it all."""
    at_rest = memory_at_rest(subject)
    with connect(subject.address, timeout=10) as sock, Bystander(subject.address):
        piece = b"".join(b"%0200d " % number for number in range(1000))
        sent = 0
        try:
            sock.sendall(start)
            while sent < 400 * MIB:
                sock.sendall(piece)
                sent += len(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass  # closed: the usual answer
        except TimeoutError:
            pass  # no longer read from: bounded as well
        if SUT == "egret":  # memcached keeps a get line of any length
            assert_bounded(subject, at_rest, f"a line of {sent / MIB:.0f} MiB without end")


def test_a_long_line_without_end_leaves_no_connection_behind(subject):
    """Those bytes that come after the verdict, in the same read, are not waited for: twenty such clients end."""
    def open_now():
        return int(stats_of(subject.address)["curr_connections"])
    before = open_now()
    for _ in range(20):
        with connect(subject.address, timeout=10) as sock:
            try:
                sock.sendall(b"a" * (4 * MIB))
                while sock.recv(1000):
                    pass
            except (BrokenPipeError, ConnectionResetError):
                pass  # closed, and not a time-out
    wait_for(lambda: open_now() <= before, "the connections to end", timeout=5)


def test_a_set_whose_length_lies(subject):
    """Two gigabytes are announced and 300 MB sent: all of it is thrown away as it comes."""
    at_rest = memory_at_rest(subject)
    with connect(subject.address) as sock, Bystander(subject.address):
        sock.sendall(b"set liar 0 0 2147483645\r\n")
        for _ in range(300):
            sock.sendall(b"l" * 1_000_000)
        assert_bounded(subject, at_rest, "300 MB of a set too large")
    assert converse(subject.address, [Case(b"get liar\r\n")])[0][0] == b"END\r\n"


def test_hundreds_of_large_sets_that_never_end(subject):
    """Each lacks its last byte. The proxy may wait, or refuse, but neither hoard nor make others wait."""
    at_rest = memory_at_rest(subject)
    socks = []
    before = stats_of(subject.address)
    try:
        with Bystander(subject.address) as bystander:
            for number in range(400):
                sock = connect(subject.address)
                sock.setblocking(False)
                socks.append(sock)
                head = b"set endless%d 0 0 1000000\r\n" % number
                data = memoryview(head + b"e" * 999_999)
                try:
                    while len(data):
                        data = data[sock.send(data):]
                except BlockingIOError:
                    pass
            turns = bystander.turns
            wait_for(lambda: bystander.failure or bystander.turns > turns + 100, "the bystander to be served", 60)
            if SUT == "egret":
                proxy = front(subject)
                grown = proxy.rss_bytes() - at_rest[proxy]
                assert grown < MEMORY_BOUND * SLACK, f"the proxy grew by {grown / MIB:.0f} MiB over 400 unfinished sets"
    finally:
        for sock in socks:
            sock.close()
    wait_for(lambda: connections(subject) <= 3, "the connections to be gone")
    assert stats_of(subject.address)["curr_items"] == before["curr_items"] or SUT == "memcached"


def test_a_flood_of_pipelined_commands(subject):
    """A million small commands on one connection, unread until all are sent."""
    at_rest = memory_at_rest(subject)
    count = 1_000_000
    with connect(subject.address, timeout=60) as sock, Bystander(subject.address):
        done = threading.Event()

        def send():
            try:
                for _ in range(count // 1000):
                    sock.sendall(b"get nothing\r\n" * 1000)
            finally:
                done.set()

        sender = threading.Thread(target=send)
        sender.start()
        done.wait(3)  # by now the server has stopped reading, since we do not
        assert_bounded(subject, at_rest, "a flood of commands")
        left = count * len(b"END\r\n")
        while left:
            piece = sock.recv(1 << 20)
            assert piece, f"closed with {left} bytes to come"
            left -= len(piece)
        sender.join()


def refused_line(address):
    with connect(address) as sock:
        try:
            sock.sendall(b"version\r\n")
            answer = b""
            while not answer.endswith(b"\n"):
                piece = sock.recv(1000)
                if not piece:
                    break
                answer += piece
            return answer
        except ConnectionResetError:
            return answer


def test_more_connections_than_allowed():
    """Those beyond the limit get memcached's line and are closed; when others leave, new ones are welcome."""
    limit = 100
    oracle = Memcached("-c", limit)
    subject = Egret(proxy={"max_connections": limit}) if SUT == "egret" else Memcached("-c", limit)
    heard = []
    try:
        for server in (oracle, subject):
            socks = [connect(server.address) for _ in range(limit + 60)]
            served = refused = 0
            lines = set()
            for sock in socks:
                answer = b""
                try:
                    sock.sendall(b"version\r\n")
                except (BrokenPipeError, ConnectionResetError):
                    pass
                try:
                    while not answer.endswith(b"\n") and (piece := sock.recv(1000)):
                        answer += piece
                except ConnectionResetError:
                    pass
                if answer.startswith(b"VERSION"):
                    served += 1
                else:
                    refused += 1
                    lines.add(answer)
            for sock in socks:
                sock.close()
            assert served >= limit - 30, f"only {served} of {limit} were served"
            assert refused >= 60, f"{served} were served with max_connections {limit}"
            heard.append(lines)
            wait_for(lambda: refused_line(server.address).startswith(b"VERSION"), "new connections to be served")
            wait_for(lambda: int(stats_of(server.address)["curr_connections"]) < 20, "the count to fall")
            for _ in range(300):
                assert ask(server.address, b"version\r\n").startswith(b"VERSION")
        assert heard[1] <= heard[0] | {b""}, f"memcached refuses with {heard[0]}, the subject with {heard[1]}"
    finally:
        oracle.stop()
        subject.stop()
