"""More clients than max_connections: refused at once or, without maxconns_fast, kept waiting until one leaves; as
memcached does either."""

import socket
import threading
import time

import pytest

from bystander import Bystander
from servers import SLACK, SUT, Memcached, Egret, ask, connect, stats_of, wait_for
from tls import Authority, TlsEgret, connect_tls, read_until

LIMIT = 50


@pytest.fixture
def start(tmp_path):
    """The oracle and the subject, both with this limit."""
    started = []

    def start_both(fast):
        word = "maxconns_fast" if fast else "no_maxconns_fast"
        oracle = Memcached("-o", word, "-c", LIMIT)
        started.append(oracle)
        started.append(Egret(proxy={"max_connections": LIMIT, "maxconns_fast": str(fast).lower()}) if SUT == "egret"
                       else Memcached("-o", word, "-c", LIMIT))
        return started
    yield start_both
    for server in started:
        server.stop()


def version(sock, timeout):
    """What it says, or nothing in that time."""
    sock.settimeout(timeout)
    try:
        sock.sendall(b"version\r\n")
        return sock.recv(100)
    except (TimeoutError, socket.timeout):
        return b""
    except (ConnectionResetError, BrokenPipeError):
        return b"reset"


def stats_on(sock):
    sock.settimeout(20 * SLACK)
    sock.sendall(b"stats\r\n")
    answer = read_until(sock, b"END\r\n").decode()
    return dict(line.split(" ", 2)[1:] for line in answer.splitlines() if line.startswith("STAT "))


def test_fast_refuses_and_counts(start):
    for server in start(fast=True):
        first = connect(server.address)
        assert version(first, 20 * SLACK)
        socks = [connect(server.address) for _ in range(LIMIT + 5)]
        heard = [version(sock, 20 * SLACK) for sock in socks]
        refused = sum(not line.startswith(b"VERSION") for line in heard)
        assert refused >= 5
        stats = stats_on(first)
        assert int(stats["rejected_connections"]) >= 5
        assert stats["accepting_conns"] == "1" and stats["listen_disabled_num"] == "0"
        for sock in socks:
            sock.close()
        wait_for(lambda: _is_welcome(server.address), "room for another")
        assert stats_of(server.address, b"settings")["maxconns_fast"] == "yes"
        first.close()


@pytest.mark.parametrize("fast, said", [(True, "are refused"), (False, "wait until one leaves (maxconns_fast is off)")])
def test_the_log_says_once_that_the_limit_is_reached(egret_only, start, fast, said):
    server = start(fast=fast)[1]
    socks = [connect(server.address) for _ in range(LIMIT + 5)]
    line = f"warning: {LIMIT} clients are connected, which is max_connections: further clients {said}"
    wait_for(lambda: line in server.proxies[0].log(), "the line")
    assert server.proxies[0].log().count("which is max_connections") == 1
    for sock in socks:
        sock.close()


def _is_welcome(address):
    with connect(address) as sock:
        return version(sock, 5).startswith(b"VERSION")


def test_slow_keeps_them_waiting_until_one_leaves(start):
    for server in start(fast=False):
        first = connect(server.address)
        assert version(first, 20 * SLACK)
        assert stats_on(first)["accepting_conns"] == "1"
        served, waiting = [], None
        while waiting is None:
            sock = connect(server.address)
            if version(sock, 0.5 * SLACK):
                served.append(sock)
                assert len(served) <= LIMIT
            else:
                waiting = sock
        assert len(served) >= LIMIT - 30  # memcached counts descriptors of its own, too
        wait_for(lambda: stats_on(first)["accepting_conns"] == "0", "no more to be accepted")
        stats = stats_on(first)
        assert "rejected_connections" not in stats
        assert int(stats["listen_disabled_num"]) >= 1
        assert len(served) + 1 <= int(stats["max_connections"]) == LIMIT
        served.pop().close()
        waiting.settimeout(20 * SLACK)
        assert waiting.recv(100).startswith(b"VERSION")  # the answer to what it said long ago
        if server.is_egret:  # memcached has room for it, and looks for the next one to refuse
            assert int(stats_on(first)["listen_disabled_num"]) >= 1
        assert stats_of_settings(first)["maxconns_fast"] == "no"
        for sock in served + [waiting]:
            sock.close()
        wait_for(lambda: stats_on(first)["accepting_conns"] == "1", "all to be accepted again")
        assert int(stats_on(first)["time_in_listen_disabled_us"]) > 0
        first.close()


def stats_of_settings(sock):
    sock.sendall(b"stats settings\r\n")
    answer = read_until(sock, b"END\r\n").decode()
    return dict(line.split(" ", 2)[1:] for line in answer.splitlines() if line.startswith("STAT "))


def test_a_crowd_passes_through_a_slow_door(egret_only, start):
    """200 clients at a limit of 50: each is served in the end, none is refused. Fifty that stay hold the door shut at first."""
    server = start(fast=False)[1]
    failures = []
    inside = [connect(server.address) for _ in range(LIMIT)]
    for sock in inside:
        sock.sendall(b"version\r\n")
        read_until(sock, b"\r\n")

    def visit(number):
        try:
            for turn in range(5):
                with connect(server.address, timeout=60) as sock:
                    value = b"%d" % (number * 10 + turn)
                    sock.sendall(b"set door%d 0 0 %d\r\n%s\r\nget door%d\r\n" % (number, len(value), value, number))
                    wanted = b"STORED\r\nVALUE door%d 0 %d\r\n%s\r\nEND\r\n" % (number, len(value), value)
                    assert read_until(sock, b"END\r\n") == wanted
        except BaseException as failure:  # told to the test's thread
            failures.append((number, failure))

    threads = [threading.Thread(target=visit, args=(number,)) for number in range(200)]
    for thread in threads:
        thread.start()
    wait_for(lambda: stats_on(inside[0])["accepting_conns"] == "0", "the door to be shut")
    for sock in inside:
        sock.close()
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]
    stats = stats_of(server.address)
    assert int(stats["listen_disabled_num"]) > 0 and int(stats["total_connections"]) >= 1000


def test_whoever_is_in_does_not_notice(egret_only, start):
    server = start(fast=False)[1]
    with Bystander(server.address):
        socks = [connect(server.address) for _ in range(LIMIT * 2)]
        time.sleep(0.5)
        for sock in socks:
            sock.close()


def test_the_door_costs_nothing_while_it_is_shut(egret_only, start):
    server = start(fast=False)[1]
    first = connect(server.address)
    others = [connect(server.address) for _ in range(LIMIT + 5)]
    wait_for(lambda: stats_on(first)["accepting_conns"] == "0", "the door to be shut")

    def is_still():
        before = server.proxies[0].wakeups()
        time.sleep(2)
        return before is not None and server.proxies[0].wakeups() == before
    wait_for(is_still, "the proxy to sleep for two seconds: what was begun before the door was shut may end")
    for sock in others + [first]:
        sock.close()


def test_over_tls_they_are_just_closed(egret_only, tmp_path):
    certificate = Authority(tmp_path / "tls").issue("server")
    server = TlsEgret(*certificate, proxy={"max_connections": LIMIT})
    try:
        socks = [connect_tls(server.tls_address) for _ in range(LIMIT)]
        with connect(server.tls_address) as late:
            late.settimeout(20 * SLACK)
            try:
                assert late.recv(100) == b""
            except ConnectionResetError:
                pass
        for sock in socks:
            sock.close()
        wait_for(lambda: ask(server.address, b"version\r\n").startswith(b"VERSION"), "room")
    finally:
        server.stop()


def test_stats_conns_is_memcacheds(start):
    """One row of each name, with values of the same form, for a listener, an idle client, one inside a value, the asker."""
    shapes = []
    for server in start(fast=True):
        idle, value, asker = (connect(server.address) for _ in range(3))
        value.sendall(b"set conns 0 0 6\r\n")
        for sock in (asker, idle):
            assert version(sock, 20 * SLACK)

        def rows():
            asker.sendall(b"stats conns\r\n")
            found = {}
            for line in read_until(asker, b"END\r\n").decode().splitlines()[:-1]:
                word, name, text = line.split(" ", 2)  # memcached's address of a client that has just left is "<AF 0>"
                assert word == "STAT"
                number, name = name.split(":")
                found.setdefault(int(number), {})[name] = text
            return found

        def by_peer(sock):
            end = "tcp:%s:%d" % sock.getsockname()
            return next(row for row in rows().values() if row["addr"] == end)

        wait_for(lambda: by_peer(value)["state"] == "conn_nread", "the value to be awaited")
        port = "tcp:%s:%d" % server.address
        listener = next(row for row in rows().values() if row["state"] == "conn_listening" and row["addr"] == port)
        assert by_peer(asker)["state"] == "conn_parse_cmd"
        assert by_peer(idle)["state"] in ("conn_read", "conn_waiting", "conn_new_cmd")
        assert by_peer(idle)["listen_addr"] == port
        time.sleep(1.2)
        assert int(by_peer(value)["secs_since_last_cmd"]) >= 1 and by_peer(asker)["secs_since_last_cmd"] == "0"
        assert list(rows()) == sorted(rows())
        shapes.append([sorted(listener), sorted(by_peer(idle))])
        for sock in (idle, value):
            sock.close()
        wait_for(lambda: len(rows()) <= 4, "those that left to be gone")
        asker.close()
    assert shapes[0] == shapes[1]


def test_stats_conns_while_clients_come_and_go(egret_only, subject):
    stop = threading.Event()

    def come_and_go():
        while not stop.is_set():
            with connect(subject.address) as sock:
                sock.sendall(b"set passing 0 0 2\r\nok\r\n")
                sock.recv(100)

    threads = [threading.Thread(target=come_and_go) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(200):
            answer = ask(subject.address, b"stats conns\r\n", end=b"END\r\n").decode()
            assert all(line.startswith("STAT ") for line in answer.splitlines()[:-1])
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_stats_conns_of_a_unix_socket(egret_only, subject):
    with connect(subject.unix_address()) as sock:
        sock.sendall(b"stats conns\r\n")
        rows = read_until(sock, b"END\r\n").decode()
    assert f":addr unix:{subject.unix_address()}\r\n" in rows
    assert ":addr unix:<AF 1>\r\n" in rows and f":listen_addr unix:{subject.unix_address()}\r\n" in rows
