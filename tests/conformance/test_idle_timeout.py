"""Clients that have said nothing for idle_timeout are disconnected, and no others; and the timer is not there when it is off."""

import signal
import socket
import time

import pytest

from bystander import Bystander
from servers import SLACK, SUT, Egret, Memcached, ask, connect, stats_of, wait_for
from tls import Authority, TlsEgret, connect_tls, read_until

IDLE = 2  # seconds; memcached counts whole ones


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls")).issue("server")


@pytest.fixture(scope="module")
def idle_subject(certificate):
    server = (TlsEgret(*certificate, proxy={"idle_timeout": f"{IDLE}s"}) if SUT == "egret"
              else Memcached("-o", f"idle_timeout={IDLE}"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def idle_oracle():
    server = Memcached("-o", f"idle_timeout={IDLE}")
    yield server
    server.stop()


def is_closed(sock, within):
    """Whether the server closes it in that time."""
    sock.settimeout(within)
    try:
        return sock.recv(100) == b""
    except (TimeoutError, socket.timeout):
        return False
    except ConnectionResetError:
        return True


def kicks(server):
    return int(stats_of(server.address)["idle_kicks"])


def test_whoever_says_nothing_is_disconnected_and_counted(idle_oracle, idle_subject):
    for server in (idle_oracle, idle_subject):
        before = kicks(server)
        silent, spoke = connect(server.address), connect(server.address)
        spoke.sendall(b"version\r\n")
        assert spoke.recv(100).startswith(b"VERSION")
        assert not is_closed(silent, IDLE / 2), "too early"
        assert is_closed(silent, 30 * SLACK) and is_closed(spoke, 30 * SLACK)
        assert kicks(server) == before + 2
        silent.close()
        spoke.close()


def test_whoever_speaks_stays(idle_subject):
    before = kicks(idle_subject)
    with connect(idle_subject.address) as sock:
        for _ in range(5 * IDLE):
            time.sleep(IDLE / 4)
            sock.sendall(b"version\r\n")
            assert sock.recv(100).startswith(b"VERSION")
    assert kicks(idle_subject) == before


def test_unix_sockets_have_no_timeout(idle_subject):
    with connect(idle_subject.unix_address()) as sock:
        assert not is_closed(sock, 3 * IDLE)
        sock.settimeout(10)
        sock.sendall(b"version\r\n")
        assert sock.recv(100).startswith(b"VERSION")


def test_the_row_and_the_setting(idle_oracle, idle_subject, oracle, subject):
    for server in (idle_oracle, idle_subject):
        assert stats_of(server.address, b"settings")["idle_timeout"] == str(IDLE)
        assert "idle_kicks" in stats_of(server.address)
    for server in (oracle, subject):
        assert stats_of(server.address, b"settings")["idle_timeout"] == "0"
        assert "idle_kicks" not in stats_of(server.address)


def test_half_a_command_and_unread_answers_do_not_keep_a_connection(egret_only, idle_subject):
    ask(idle_subject.address, b"set big 0 0 900000\r\n" + b"x" * 900_000 + b"\r\n")
    half, unread = connect(idle_subject.address), connect(idle_subject.address)
    half.sendall(b"set half 0 0 100\r\nnot all")
    before = kicks(idle_subject)
    unread.sendall(b"get big\r\n" * 30)
    assert is_closed(half, 30 * SLACK)
    wait_for(lambda: kicks(idle_subject) == before + 2, "both to go")
    half.close()
    unread.close()


def test_a_client_that_takes_its_time_to_read_stays(egret_only, idle_subject):
    """It reads a little all the while, for longer than the timeout."""
    value = b"y" * 900_000
    ask(idle_subject.address, b"set slow 0 0 900000\r\n" + value + b"\r\n")
    with connect(idle_subject.address) as sock:
        sock.sendall(b"get slow\r\n" * 20)
        wanted = 20 * len(b"VALUE slow 0 900000\r\n\r\nEND\r\n" + value)
        got = 0
        until = time.monotonic() + 2.5 * IDLE
        while got < wanted:
            piece = sock.recv(min(600_000, wanted - got))
            assert piece, f"closed after {got} of {wanted}"
            got += len(piece)
            if time.monotonic() < until:
                time.sleep(IDLE / 8)


def test_whoever_waits_for_an_answer_is_not_idle(egret_only):
    server = Egret(proxy={"idle_timeout": "500ms", "op_timeout": "30s"})
    try:
        with connect(server.address) as sock:
            sock.sendall(b"set wait 0 0 2\r\nok\r\n")
            assert sock.recv(100) == b"STORED\r\n"
            server.backend.halt()
            sock.sendall(b"get wait\r\n")
            assert not is_closed(sock, 2)
            server.backend.signal(signal.SIGCONT)
            sock.settimeout(20 * SLACK)
            assert read_until(sock, b"END\r\n") == b"VALUE wait 0 2\r\nok\r\nEND\r\n"
            assert is_closed(sock, 20 * SLACK)
    finally:
        server.backend.signal(signal.SIGCONT)
        server.stop()


def test_over_tls(egret_only, idle_subject):
    before = kicks(idle_subject)
    with Bystander(idle_subject.address), connect_tls(idle_subject.tls_address) as sock:
        sock.sendall(b"version\r\n")
        read_until(sock, b"\r\n")
        assert is_closed(sock, 30 * SLACK)  # with a goodbye: else it would be an error
        wait_for(lambda: kicks(idle_subject) == before + 1, "it to be counted")


def test_a_reset_starts_the_count_anew(idle_subject):
    with connect(idle_subject.address) as sock:
        assert is_closed(sock, 30 * SLACK)
    wait_for(lambda: kicks(idle_subject) > 0, "it to be counted")
    assert ask(idle_subject.address, b"stats reset\r\n") == b"RESET\r\n"
    assert kicks(idle_subject) == 0


def test_without_it_nothing_wakes(egret_only, subject):
    socks = [connect(subject.address) for _ in range(50)]
    try:
        for sock in socks:
            sock.sendall(b"version\r\n")
            assert sock.recv(100)
        time.sleep(4 * SLACK)  # all have come to rest
        before = subject.proxies[0].wakeups()
        assert before is not None
        time.sleep(3)
        assert subject.proxies[0].wakeups() == before
    finally:
        for sock in socks:
            sock.close()
