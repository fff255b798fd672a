"""sessions: host. One worker has the session with a backend that is reached over a network; the others hand over to it."""

import random
import re
import signal
import time
import urllib.request

import pytest

from servers import SUT, EgretPool, connect, free_port, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="needs egret-backend and egret-proxy")

WORKERS = 4
KEYS = [b"key%d" % number for number in range(64)]


class HostPool(EgretPool):
    """Three members over TCP, and four workers."""

    def __init__(self, **proxy):
        super().__init__(backend={"admin": "127.0.0.1:0", "memory": "64MiB"}, proxy={"sessions": "host", "workers": str(WORKERS), **proxy})

    def address_of_backend(self, number):
        return self.backend_addresses.setdefault(number, f"tcp:127.0.0.1:{free_port()}")

    def sessions(self):
        """That each backend sees."""
        return [sessions_of(backend) for backend in self.backends]


@pytest.fixture
def pool():
    started = HostPool()
    yield started
    started.stop()


def sessions_of(backend):
    address = re.search(r"admin address: (\S+)", backend.log(1 << 20))[1]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        return int(re.search(r'^egret_backend_transport_sessions{transport="tcp"} (\d+)', answer.read().decode(), re.M)[1])


def clients(pool, count=2 * WORKERS):
    """Of all workers: connections are dealt in turn."""
    return [connect(pool.address) for _ in range(count)]


def call(client, request, end):
    client.sendall(request)
    answer = b""
    while not answer.endswith(end):
        piece = client.recv(65536)
        assert piece, f"closed after {answer!r}"
        answer += piece
    return answer


def test_a_healthy_start_warns_of_no_session():
    for _ in range(3):
        started = HostPool()
        try:
            for client in clients(started):
                call(client, b"get " + b" ".join(KEYS) + b"\r\n", b"END\r\n")
            assert "[no_session]" not in started.proxies[0].log(1 << 20)
        finally:
            started.stop()


def test_each_backend_has_one_session_and_all_workers_see_one_store(pool):
    assert pool.sessions() == [1, 1, 1]
    connections = clients(pool)
    large = bytes(random.Random(1).randbytes(300_000)).replace(b"\r", b"r")
    for number, key in enumerate(KEYS):
        writer = connections[number % len(connections)]
        value = large if number % 16 == 0 else key * (number + 1)
        assert call(writer, b"set %s 7 0 %d\r\n%s\r\n" % (key, len(value), value), b"\r\n") == b"STORED\r\n"
        for reader in connections:
            assert call(reader, b"get %s\r\n" % key, b"\r\nEND\r\n") == b"VALUE %s 7 %d\r\n%s\r\nEND\r\n" % (key, len(value), value)
    for client in connections:
        assert call(client, b"incr counter 1\r\n", b"\r\n") == b"NOT_FOUND\r\n"
    assert call(connections[0], b"set counter 0 0 1\r\n0\r\n", b"\r\n") == b"STORED\r\n"
    assert [call(client, b"incr counter 1\r\n", b"\r\n") for client in connections] == [b"%d\r\n" % (n + 1) for n in range(len(connections))]
    assert call(connections[1], b"flush_all\r\n", b"\r\n") == b"OK\r\n"
    assert all(call(client, b"mg %s v\r\n" % key, b"\r\n") == b"EN\r\n" for client in connections for key in KEYS[:8])
    assert pool.sessions() == [1, 1, 1]


def test_many_under_way_are_answered_in_order(pool):
    connections = clients(pool)
    for round_ in range(5):
        batch = b"".join(b"set k%d 0 0 8\r\n%08d\r\nget k%d\r\n" % (n, n + round_, n) for n in range(200))
        expected = b"".join(b"STORED\r\nVALUE k%d 0 8\r\n%08d\r\nEND\r\n" % (n, n + round_) for n in range(200))
        for client in connections:
            client.sendall(batch)
        for client in connections:
            answer = b""
            while len(answer) < len(expected):
                answer += client.recv(1 << 20)
            assert answer == expected


def test_a_backend_that_is_started_again_is_used_by_all_workers(pool):
    connections = clients(pool)
    for key in KEYS:
        assert call(connections[0], b"set %s 0 0 1\r\nx\r\n" % key, b"\r\n") == b"STORED\r\n"
    pool.kill_backend(1)

    batch = b"".join(b"mg %s k\r\n" % key for key in KEYS) + b"mn\r\n"

    def kinds():
        return [{line[:2] for line in call(client, batch, b"MN\r\n").splitlines()[:-1]} for client in connections]

    wait_for(lambda: all(seen == {b"HD", b"SE"} for seen in kinds()), "its keys to fail at every worker, and no others")
    pool.start_backend(1)
    wait_for(lambda: all(seen == {b"HD", b"EN"} for seen in kinds()), "it to be back at every worker, empty")
    wait_for(lambda: pool.sessions() == [1, 1, 1], "one session each")


def test_who_is_stopped_answers_what_it_has_read_first(pool):
    connections = clients(pool)
    batch = b"".join(b"set s%d 0 0 1\r\nx\r\n" % n for n in range(300))
    for client in connections:
        assert call(client, b"mn\r\n", b"\r\n") == b"MN\r\n"
        client.sendall(batch)
    pool.proxies[0].signal(signal.SIGTERM)
    for client in connections:
        answer = b""
        while piece := client.recv(1 << 20):
            answer += piece
        assert answer.replace(b"STORED\r\n", b"") == b"", "nothing but successes"
    assert pool.proxies[0].wait() == 0


def test_values_that_come_slowly_at_every_worker_are_all_stored_and_keep_nobody_waiting():
    """More than the worker with the session has memory for: it takes them from the other workers nevertheless."""
    pool = HostPool(large_value_memory="1MiB")
    try:
        call(connect(pool.address), b"set warm 0 0 300000\r\n" + b"w" * 300_000 + b"\r\n", b"\r\n")
        slow, others = clients(pool, WORKERS), clients(pool, WORKERS)
        for client in slow:
            client.sendall(b"set k 0 0 700000\r\n" + b"v" * 300_000)
        time.sleep(2.5)  # longer than an upload may rest while others wait for its room
        for client in others:
            assert call(client, b"get warm\r\n", b"END\r\n").startswith(b"VALUE warm 0 300000")
        for client in slow:
            assert call(client, b"v" * 400_000 + b"\r\n", b"\r\n") == b"STORED\r\n"
    finally:
        pool.stop()
