"""TLS on the proxy's listeners: whoever speaks it right is served as on any other listener, whoever does not is turned
away, and nobody else notices."""

import itertools
import os
import random
import re
import select
import signal
import socket
import ssl
import subprocess
import threading
import time

import pymemcache
import pytest

import tls
from bystander import Bystander
from servers import CONF, MEMCACHED, SLACK, SUT, Daemon, ask, connect, egret_binary, free_port, scratch_directory, stats_of, wait_for
from tls import Handshake, TlsEgret, ask_tls, client_context, connect_tls, read_until

pytestmark = pytest.mark.skipif(SUT != "egret", reason="needs egret-backend and egret-proxy")

TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
BOTH = pytest.mark.parametrize("version", [TLS12, TLS13], ids=["1.2", "1.3"])


_numbers = itertools.count()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return tls.Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def server(authority):
    """Asks nobody for a certificate."""
    egret = TlsEgret(*authority.issue("server"))
    yield egret
    egret.check_alive()
    egret.stop()


@pytest.fixture
def start(authority):
    """Starts more of them, with options of their own, for one test."""
    started = []

    def start_one(certificate=None, **proxy):
        started.append(TlsEgret(*(certificate or authority.issue(f"server{next(_numbers)}")), proxy=proxy))
        return started[-1]
    yield start_one
    for egret in started:
        egret.check_alive()
        egret.stop()


def errors_of(egret):
    stats = stats_of(egret.address)
    return int(stats["ssl_handshake_errors"]), int(stats["ssl_proto_errors"])


def log_says(egret, what):
    wait_for(lambda: re.search(what, egret.proxies[0].log(100_000)), f"the log to say {what!r}")


def is_closed(sock, timeout=10):
    """Waits for the server to close it, whatever it says before."""
    sock.settimeout(timeout * SLACK)
    try:
        while sock.recv(65536):
            pass
    except (ConnectionResetError, BrokenPipeError, ssl.SSLError):
        pass
    return True


class TlsBystander(Bystander):
    """A Bystander that speaks TLS."""

    def connect(self):
        return connect_tls(self.address)


@pytest.fixture
def others(server):
    """Two well-behaved clients of `server`, one over TLS, who must not notice what the test does."""
    with Bystander(server.address), TlsBystander(server.tls_address):
        yield


# Served as without it

@BOTH
def test_every_answer_is_that_of_a_plain_listener(server, version):
    requests = [b"get %s\r\n", b"set %s 5 0 3\r\nabc\r\n", b"get %s %s\r\n", b"append %s 0 0 2\r\nde\r\n", b"get %s\r\n",
                b"set %s 0 0 3 noreply\r\n123\r\n", b"incr %s 5\r\n", b"nonsense %s\r\n", b"delete %s\r\n", b"touch %s 0\r\n"]
    pipeline = b"".join(request.replace(b"%s", b"tls%d" % (n % 7)) for n in range(100) for request in requests)
    pipeline += b"version\r\n"
    heard = []
    for turn in range(2):
        ask(server.address, b"flush_all\r\n")
        if turn == 0:
            with connect(server.address) as sock:
                sock.sendall(pipeline)
                heard.append(read_until(sock, b"VERSION 1.6.45\r\n"))
        else:
            with connect_tls(server.tls_address, client_context(newest=version, oldest=version)) as sock:
                sock.sendall(pipeline)
                heard.append(read_until(sock, b"VERSION 1.6.45\r\n"))
    assert heard[0] == heard[1]
    assert heard[0].count(b"VALUE") > 100


@BOTH
def test_byte_by_byte(server, version):
    with connect_tls(server.tls_address, client_context(newest=version)) as sock:
        for byte in b"set bytewise 0 0 5\r\nhello\r\nget bytewise nothing\r\n":
            sock.sendall(bytes([byte]))
        assert read_until(sock, b"END\r\n") == b"STORED\r\nVALUE bytewise 0 5\r\nhello\r\nEND\r\n"


def test_records_cut_at_every_byte(server):
    """What a record holds is served when all of it is there."""
    with connect(server.tls_address) as sock:
        hand = Handshake().finish(sock)
        for byte in hand.seal(b"set cut 0 0 5\r\nhello\r\nget cut\r\n"):
            sock.sendall(bytes([byte]))
        hand.incoming.write(sock.recv(65536))
        answer = b""
        while not answer.endswith(b"END\r\n"):
            try:
                answer += hand.tls.read(65536)
            except ssl.SSLWantReadError:
                hand.incoming.write(sock.recv(65536))
        assert answer == b"STORED\r\nVALUE cut 0 5\r\nhello\r\nEND\r\n"


def test_many_records_at_once(server):
    """More than a read takes, in records that are larger and smaller than the proxy's buffers, sent in one piece."""
    values = {b"rec%d" % n: random.Random(n).randbytes(n * 997 % 40_000) for n in range(60)}
    with connect(server.tls_address) as sock:
        hand = Handshake().finish(sock)
        sealed = b"".join(hand.seal(b"set %s 0 0 %d noreply\r\n%s\r\n" % (key, len(value), value))
                          for key, value in values.items())
        sock.sendall(sealed + hand.seal(b"version\r\n"))
        answer = b""
        while not answer.endswith(b"\r\n"):
            hand.incoming.write(sock.recv(65536))
            try:
                answer += hand.tls.read(65536)
            except ssl.SSLWantReadError:
                pass
        assert answer == b"VERSION 1.6.45\r\n"
    for key, value in values.items():
        assert ask(server.address, b"get %s\r\n" % key, end=b"END\r\n") == b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(value), value)


@BOTH
def test_input_that_waits_inside_is_not_forgotten(server, version):
    """Commands beyond the proxy's buffer, held back because there are too many: when their turn comes, nothing more
    arrives that would make anybody look."""
    for size in range(60_000, 90_000, 1000):
        with connect(server.tls_address) as sock:
            hand = Handshake(client_context(newest=version)).finish(sock)
            line = b"get" + b" a" * 1000 + b"\r\n"
            # The first record is a small one, so that the buffer ends inside another.
            sealed = hand.seal(line * 3) + hand.seal(line * (size // len(line) - 3) + b"get b\r\nversion\r\n")
            server.proxies[0].signal(signal.SIGSTOP)  # so that all of it is there when it looks
            try:
                sock.sendall(sealed)
            finally:
                server.proxies[0].signal(signal.SIGCONT)
            answer = b""
            while not answer.endswith(b"VERSION 1.6.45\r\n"):
                try:
                    answer += hand.tls.read(65536)
                except ssl.SSLWantReadError:
                    hand.incoming.write(sock.recv(65536))
            assert answer == b"END\r\n" * (size // len(line) + 1) + b"VERSION 1.6.45\r\n"


@BOTH
def test_values_of_all_sizes(server, version):
    with connect_tls(server.tls_address, client_context(newest=version)) as sock:
        for size in [0, 1, 4095, 4096, 16_383, 16_384, 16_385, 65_536, 300_000, 1_048_000]:
            value = random.Random(size).randbytes(size)
            sock.sendall(b"set sized 0 0 %d\r\n%s\r\nget sized\r\n" % (size, value))
            assert read_until(sock, b"END\r\n") == b"STORED\r\nVALUE sized 0 %d\r\n%s\r\nEND\r\n" % (size, value)


def test_a_value_of_100_mib_both_ways_while_others_are_served(authority):
    egret = TlsEgret(*authority.issue("huge"), proxy={"workers": 1, "large_value_memory": "512MiB"},
                     backend={"partitions": 1, "memory": "1GiB", "item_size_max": "128MiB"})
    try:
        value = random.Random(7).randbytes(100 << 20)
        with TlsBystander(egret.tls_address), connect_tls(egret.tls_address, timeout=60) as sock:
            sock.sendall(b"set huge 0 0 %d\r\n" % len(value))
            sock.sendall(value)
            sock.sendall(b"\r\n")
            assert read_until(sock, b"\r\n") == b"STORED\r\n"
            sock.sendall(b"get huge\r\n")
            time.sleep(0.3)  # a reader that lets the proxy's output run full
            assert read_until(sock, b"\r\nEND\r\n") == b"VALUE huge 0 %d\r\n%s\r\nEND\r\n" % (len(value), value)
    finally:
        egret.stop()


def test_a_client_that_reads_slowly(server):
    """Output waits, is offered again from where it now lies, and arrives whole."""
    values = [random.Random(n).randbytes(200_000 + n) for n in range(20)]
    with connect_tls(server.tls_address) as sock:
        for n, value in enumerate(values):
            sock.sendall(b"set slow%d 0 0 %d\r\n%s\r\n" % (n, len(value), value))
        assert read_until(sock, b"STORED\r\n" * 20)
        sock.sendall(b"".join(b"get slow%d\r\nget nothing%d\r\n" % (n, n) for n in range(20)) * 3)
        wanted = b"".join(b"VALUE slow%d 0 %d\r\n%s\r\nEND\r\nEND\r\n" % (n, len(value), value) for n, value in enumerate(values)) * 3
        heard = bytearray()
        while len(heard) < len(wanted):
            piece = sock.recv(50_000)
            assert piece
            heard += piece
            if len(heard) % 7 == 0:
                time.sleep(0.001)
        assert heard == wanted


def test_many_clients_at_once(server):
    socks = [connect_tls(server.tls_address) for _ in range(200)]
    try:
        for turn in range(5):
            for n, sock in enumerate(socks):
                sock.sendall(b"set many%d 0 0 3\r\n%03d\r\nget many%d\r\n" % (n, n, n))
            for n, sock in enumerate(socks):
                assert read_until(sock, b"END\r\n") == b"STORED\r\nVALUE many%d 0 3\r\n%03d\r\nEND\r\n" % (n, n), turn
    finally:
        for sock in socks:
            sock.close()


def test_pymemcache(server, authority):
    client = pymemcache.Client(server.tls_address, tls_context=client_context(authority), default_noreply=False, timeout=20 * SLACK)
    assert client.set("pm", b"x" * 500_000) is True
    assert client.get("pm") == b"x" * 500_000
    assert client.set_many({"pm1": b"1", "pm2": b"2"}) == []
    assert client.get_many(["pm1", "pm2", "pm3"]) == {"pm1": b"1", "pm2": b"2"}
    value, number = client.gets("pm1")
    assert client.cas("pm1", b"3", number) is True and client.incr("pm1", 2) == 5
    assert client.delete("pm1") is True and client.touch("pm1") is False
    client.quit()


# Goodbyes

@BOTH
def test_quit_is_answered_by_a_goodbye(server, version):
    with connect_tls(server.tls_address, client_context(newest=version)) as sock:
        sock.sendall(b"version\r\nquit\r\n")
        assert read_until(sock, b"\r\n")
        assert sock.recv(100) == b""  # an end without a goodbye would be an error


@BOTH
def test_a_client_that_says_goodbye_hears_all_answers(server, version):
    value = random.Random(5).randbytes(700_000)
    ask(server.address, b"set bye 0 0 %d\r\n%s\r\n" % (len(value), value))
    with connect(server.tls_address) as sock:
        hand = Handshake(client_context(newest=version)).finish(sock)
        last = hand.seal(b"get bye\r\n" * 5)
        try:
            hand.tls.unwrap()
        except ssl.SSLWantReadError:
            pass
        sock.sendall(last + hand.outgoing.read())
        sealed = b""
        while piece := sock.recv(1 << 20):
            sealed += piece
    # Python's TLS reads no more after its own goodbye; that all of it came is seen by its size, and the end is clean.
    assert len(sealed) > 5 * 700_000


def test_a_client_that_closes_its_side_without_goodbye_hears_all_answers(server):
    with connect_tls(server.tls_address) as sock:
        sock.sendall(b"set half 0 0 2\r\nok\r\nget half\r\n" * 50)
        socket.socket.shutdown(sock, socket.SHUT_WR)
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
        assert answer == b"STORED\r\nVALUE half 0 2\r\nok\r\nEND\r\n" * 50


@BOTH
def test_what_was_sent_is_answered_when_the_proxy_stops(start, version):
    """In one record or in many; as many as can be answered in the time that a stop may take, also in a sanitizer build."""
    for records in (1, 600):
        egret = start()
        with connect(egret.tls_address) as sock:
            hand = Handshake(client_context(newest=version)).finish(sock)
            request = b"set last 0 0 2\r\nok\r\nget last\r\n"
            sealed = b"".join(hand.seal(request * (600 // records)) for _ in range(records))
            egret.proxies[0].signal(signal.SIGSTOP)  # so that all of it is there when it is told to stop
            sock.sendall(sealed)
            egret.proxies[0].signal(signal.SIGTERM)
            egret.proxies[0].signal(signal.SIGCONT)
            answer = b""
            while piece := sock.recv(65536):
                hand.incoming.write(piece)
                try:
                    while piece := hand.tls.read(65536):
                        answer += piece
                except ssl.SSLWantReadError:
                    pass
            assert answer == b"STORED\r\nVALUE last 0 2\r\nok\r\nEND\r\n" * 600
        assert egret.proxies[0].wait() == 0
        egret.start_proxy(0)


# Handshakes

@BOTH
def test_a_handshake_byte_by_byte(server, others, version):
    with connect(server.tls_address) as sock:
        def dribble(data):
            for byte in data:
                sock.sendall(bytes([byte]))
                time.sleep(0.001)
        hand = Handshake(client_context(newest=version)).finish(sock, send=dribble)
        sock.sendall(hand.seal(b"version\r\n"))
        hand.incoming.write(sock.recv(65536))
        wait_for(lambda: hand.tls.pending() or select.select([sock], [], [], 0.1)[0] or True, "the answer")
        answer = b""
        while not answer:
            try:
                answer = hand.tls.read(100)
            except ssl.SSLWantReadError:
                hand.incoming.write(sock.recv(65536))
        assert answer == b"VERSION 1.6.45\r\n"


def test_whoever_stops_in_the_handshake_is_closed_in_time_and_others_are_served(start):
    egret = start(idle_timeout="1s")
    with Bystander(egret.address), TlsBystander(egret.tls_address):
        stopped = [connect(egret.tls_address) for _ in range(30)]
        for n, sock in enumerate(stopped):
            hello = Handshake().next_flight()
            sock.sendall(hello[:n * len(hello) // 29])  # nothing, a part, all of it
        for sock in stopped:
            assert is_closed(sock)
            sock.close()
        # One that goes on and on, but too slowly.
        with connect(egret.tls_address) as slow:
            began = time.monotonic()
            try:
                for byte in Handshake().next_flight():
                    slow.sendall(bytes([byte]))
                    time.sleep(0.05)
                    assert time.monotonic() - began < 20 * SLACK
            except (ConnectionResetError, BrokenPipeError):
                pass
            assert is_closed(slow)
    wait_for(lambda: errors_of(egret) == (31, 0), "31 handshake errors")
    log_says(egret, r"tls: handshake with client tcp:127\.0\.0\.1:\d+ failed: it took too long")
    assert stats_of(egret.address)["idle_kicks"] == "0"


def test_plaintext_on_a_tls_port(server, others):
    before = errors_of(server)
    for said in [b"get a\r\n", b"version\r\n", b"set a 0 0 5\r\nhello\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x80" + b"\0" * 23]:
        with connect(server.tls_address) as sock:
            sock.sendall(said + b"quit\r\n" * 10)
            assert is_closed(sock)
    assert errors_of(server) == (before[0] + 5, before[1])
    log_says(server, r"tls: handshake with client tcp:127\.0\.0\.1:\d+ failed: it does not speak TLS")


def test_a_hello_on_a_plain_port(server, others):
    with connect(server.address) as sock:
        hello = Handshake().next_flight()
        sock.sendall(hello)
        sock.shutdown(socket.SHUT_WR)
        assert is_closed(sock)
    with pytest.raises((ssl.SSLError, OSError)), connect(server.address, timeout=2) as raw:
        raw.sendall(hello + b"\r\n")  # now the line is whole, and its answer no TLS
        client_context().wrap_socket(raw)


def test_random_bytes_instead_of_a_handshake(server, others):
    rng = random.Random(20)
    before = errors_of(server)
    for _ in range(100):
        with connect(server.tls_address) as sock:
            hello = bytearray(Handshake().next_flight())
            if rng.random() < 0.5:
                for _ in range(rng.randrange(1, 5)):
                    hello[rng.randrange(len(hello))] = rng.randrange(256)
            else:
                hello = rng.randbytes(rng.randrange(1, 3000))
            sock.sendall(hello)
            try:
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has been turned away already
            assert is_closed(sock)
    assert errors_of(server)[0] > before[0] + 40
    assert errors_of(server)[1] == before[1]


@BOTH
def test_random_bytes_after_the_handshake(server, others, version):
    rng = random.Random(21)
    before = errors_of(server)
    for turn in range(60):
        with connect(server.tls_address) as sock:
            hand = Handshake(client_context(newest=version)).finish(sock)
            sealed = bytearray(hand.seal(b"set r 0 0 5\r\nhello\r\n" * 20))
            if turn % 3 == 0:  # a record that was changed
                sealed[rng.randrange(5, len(sealed))] ^= 1 + rng.randrange(255)
            elif turn % 3 == 1:  # no record at all
                sealed = b"get a\r\n" + rng.randbytes(3000)
            else:  # the right record, twice
                sealed = sealed + sealed
            sock.sendall(sealed)
            assert is_closed(sock)
    wait_for(lambda: errors_of(server) == (before[0], before[1] + 60), "60 protocol errors")
    log_says(server, r"tls: connection with client tcp:127\.0\.0\.1:\d+ failed: ")


def test_random_bytes_inside(server, others):
    """Protected as it should be, but no command."""
    rng = random.Random(22)
    for _ in range(30):
        with connect_tls(server.tls_address) as sock:
            try:
                sock.sendall(rng.randbytes(rng.randrange(1, 100_000)))
                socket.socket.shutdown(sock, socket.SHUT_WR)
            except (OSError, ssl.SSLError):
                pass
            assert is_closed(sock)


def test_connections_that_break_leave_nothing_behind(server, others):
    files = server.proxies[0].open_files()
    value = random.Random(3).randbytes(900_000)
    ask(server.address, b"set broken 0 0 %d\r\n%s\r\n" % (len(value), value))
    for turn in range(60):
        sock = connect(server.tls_address)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # reset, not closed
        if turn % 3 == 0:
            sock.sendall(Handshake().next_flight())
        else:
            hand = Handshake().finish(sock)
            sock.sendall(hand.seal(b"get broken\r\n" * 20)[:None if turn % 3 == 1 else -5])
            if turn % 2:
                sock.recv(1000)
        sock.close()
    wait_for(lambda: server.proxies[0].open_files() <= files + 2, "the proxy to close them all")


@BOTH
def test_sessions_are_resumed(server, version):
    context = client_context(newest=version)
    with connect_tls(server.tls_address, context) as sock:
        sock.sendall(b"version\r\n")
        assert read_until(sock, b"\r\n") and not sock.session_reused
        session = sock.session
    with connect_tls(server.tls_address, context, session=session) as sock:
        sock.sendall(b"version\r\n")
        assert read_until(sock, b"\r\n") and sock.session_reused


def test_new_sessions_are_counted_with_the_session_cache(start):
    egret = start(tls_session_cache="true")
    context = client_context(newest=TLS12)
    context.options |= ssl.OP_NO_TICKET
    with connect_tls(egret.tls_address, context) as sock:
        session = sock.session
    # The client is through a moment before the worker counts it.
    wait_for(lambda: stats_of(egret.address)["ssl_new_sessions"] == "1", "the session to be counted")
    with connect_tls(egret.tls_address, context, session=session) as sock:
        assert sock.session_reused
    assert stats_of(egret.address)["ssl_new_sessions"] == "1"


def test_renegotiation_is_refused_and_costs_no_handshake(start):
    egret = start(tls_session_cache="true")
    host, port = egret.tls_address
    with Bystander(egret.address), TlsBystander(egret.tls_address):
        for _ in range(10):
            client = subprocess.Popen(["openssl", "s_client", "-connect", f"{host}:{port}", "-tls1_2", "-legacy_renegotiation"],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            client.stdin.write(b"version\n")
            client.stdin.flush()
            said = b""
            while b"VERSION" not in said:
                piece = os.read(client.stdout.fileno(), 65536)
                assert piece, said
                said += piece
            client.stdin.write(b"R\n")  # to s_client: renegotiate
            client.stdin.flush()
            said, _ = client.communicate(timeout=20 * SLACK)
            assert b"RENEGOTIATING" in said and b"no renegotiation" in said, said
        assert stats_of(egret.address)["ssl_new_sessions"] == "11"  # the bystander's, and one for each


def test_a_flood_of_new_keys_does_not_keep_others_waiting(start):
    """KeyUpdate is a record that brings no bytes, and costs as much as many that do."""
    egret = start(workers=1)
    host, port = egret.tls_address
    floods = [subprocess.Popen(["openssl", "s_client", "-connect", f"{host}:{port}", "-tls1_3"], stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
    stop = threading.Event()

    def flood(client):
        try:
            while not stop.is_set():
                client.stdin.write(b"K\n" * 1000)  # to s_client: new keys, and the peer's as well
        except BrokenPipeError:
            pass

    threads = [threading.Thread(target=flood, args=(client,)) for client in floods]
    for thread in threads:
        thread.start()
    try:
        end = time.monotonic() + 60 * SLACK  # a hang's bound: alone it takes less than a second
        with connect(egret.address) as sock:
            for turn in range(1000):
                sock.sendall(b"get flood\r\n")
                assert read_until(sock, b"END\r\n")
                assert time.monotonic() < end, f"{turn} turns in 60 s"
    finally:
        stop.set()
        for client in floods:
            client.kill()
            client.wait()
        for thread in threads:
            thread.join()


# Versions, ciphers, certificates

def is_refused(egret, context):
    """Whether a client with this context gets no answer. (In TLS 1.3 the client is through before the server has said so.)"""
    try:
        return not ask_tls(egret.tls_address, b"version\r\n", context=context).startswith(b"VERSION")
    except (ssl.SSLError, ConnectionResetError, BrokenPipeError):
        return True


def test_the_oldest_version(server, start):
    old = client_context(newest=ssl.TLSVersion.TLSv1_1, oldest=ssl.TLSVersion.TLSv1)
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    assert is_refused(server, old)
    assert not is_refused(server, client_context(newest=TLS12))
    strict = start(tls_min_version="1.3")
    assert is_refused(strict, client_context(newest=TLS12))
    assert not is_refused(strict, client_context())
    log_says(strict, "unsupported protocol")
    lax = start(tls_min_version="1.0", tls_ciphers="DEFAULT:@SECLEVEL=0")
    assert not is_refused(lax, old)


def test_ciphers(start):
    egret = start(tls_ciphers="ECDHE-ECDSA-AES256-GCM-SHA384")
    with connect_tls(egret.tls_address, client_context(newest=TLS12)) as sock:
        assert sock.cipher()[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
    other = client_context(newest=TLS12)
    other.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    assert is_refused(egret, other)
    log_says(egret, "no shared cipher")


@BOTH
def test_client_certificates(start, authority, tmp_path, version):
    good = authority.issue("client")
    expired = authority.issue("expired-client", begins=-7200, ends=-3600)
    stranger = tls.Authority(tmp_path / "other", "stranger").issue("client")
    context = {name: client_context(certificate=certificate, newest=version)
               for name, certificate in [("good", good), ("expired", expired), ("stranger", stranger), ("none", None)]}
    for verify, welcome in [("none", ["good", "expired", "stranger", "none"]), ("request", ["good", "none"]),
                            ("require", ["good"]), ("once", ["good"])]:
        egret = start(tls_ca_certificate=authority.path, tls_verify=verify)
        with Bystander(egret.address):
            assert [name for name in context if not is_refused(egret, context[name])] == welcome, verify
        assert errors_of(egret) == (4 - len(welcome), 0)
        if verify == "require":
            log_says(egret, "its certificate is refused: certificate has expired")
            log_says(egret, "its certificate is refused: unable to get local issuer certificate")
            log_says(egret, "peer did not return a certificate")


def test_the_server_shows_its_certificate(server, authority, tmp_path):
    assert ask_tls(server.tls_address, b"version\r\n", context=client_context(authority)).startswith(b"VERSION")
    stranger = tls.Authority(tmp_path / "other", "stranger")
    with pytest.raises(ssl.SSLCertVerificationError):
        connect_tls(server.tls_address, client_context(stranger))


def test_an_expired_server_certificate_is_warned_of(start, authority):
    egret = start(authority.issue("expired-server", begins=-7200, ends=-3600))
    log_says(egret, "warning: .*tls_certificate: the certificate expired on ")
    assert not is_refused(egret, client_context())
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate has expired"):
        connect_tls(egret.tls_address, client_context(authority))


# Reading the files anew

def serial_of(address):
    with connect_tls(address) as sock:
        from cryptography import x509
        return x509.load_der_x509_certificate(sock.getpeercert(binary_form=True)).serial_number


def test_certificates_are_read_anew_on_sighup(start, authority):
    certificate, key = authority.issue("reloaded", serial=1001)
    egret = start((certificate, key))
    with connect_tls(egret.tls_address) as early, Bystander(egret.address), TlsBystander(egret.tls_address):
        assert serial_of(egret.tls_address) == 1001
        authority.issue("reloaded", serial=1002)
        egret.proxies[0].signal(signal.SIGHUP)
        log_says(egret, "tls: certificates read anew: serial number 03EA, valid until")
        assert serial_of(egret.tls_address) == 1002
        # A bad file of any kind leaves all as it was, and is one line.
        good = certificate.read_bytes(), key.read_bytes()
        bad = [(b"junk", good[1], "tls_certificate: .*: no certificate found in it"), (good[0], b"", "tls_key: "),
               (authority.pem, good[1], "tls_key: .*: the key belongs to another certificate")]
        for new_certificate, new_key, complaint in bad:
            certificate.write_bytes(new_certificate)
            key.write_bytes(new_key)
            lines = egret.proxies[0].log(100_000).count("\n")
            egret.proxies[0].signal(signal.SIGHUP)
            log_says(egret, "reload refused, everything stays as it was: .*" + complaint)
            assert egret.proxies[0].log(100_000).count("\n") == lines + 1
            assert serial_of(egret.tls_address) == 1002
        key.unlink()
        egret.proxies[0].signal(signal.SIGHUP)
        log_says(egret, "reload refused, everything stays as it was: .*tls_key: .*: No such file or directory")
        assert serial_of(egret.tls_address) == 1002
        authority.issue("reloaded", serial=1003)
        egret.proxies[0].signal(signal.SIGHUP)
        wait_for(lambda: serial_of(egret.tls_address) == 1003, "the newest certificate")
        early.sendall(b"version\r\n")
        assert read_until(early, b"\r\n") == b"VERSION 1.6.45\r\n"
    assert int(stats_of(egret.address)["time_since_server_cert_refresh"]) < 60


def test_who_may_sign_clients_is_read_anew_too(start, authority, tmp_path):
    ca = tmp_path / "clients.pem"
    ca.write_bytes(authority.pem)
    egret = start(tls_ca_certificate=ca, tls_verify="require")
    client = client_context(certificate=authority.issue("client"))
    assert not is_refused(egret, client)
    ca.write_bytes(tls.Authority(tmp_path / "other", "stranger").pem)
    egret.proxies[0].signal(signal.SIGHUP)
    wait_for(lambda: is_refused(egret, client), "the client to be a stranger")


def test_sighup_without_tls_changes_nothing(subject):
    subject.proxies[0].signal(signal.SIGHUP)
    assert ask(subject.address, b"version\r\n").startswith(b"VERSION")


# What is said of it

def test_what_is_wrong_at_the_start_is_one_line(authority, tmp_path):
    certificate, key = authority.issue("checked")
    _, other_key = authority.issue("other")
    good = {"listen": "tls:127.0.0.1:1", "tls_certificate": certificate, "tls_key": key}
    for change, line in [({"tls_certificate": ""}, "tls_certificate: "),
                         ({"tls_certificate": "/no/such"}, 'tls_certificate: "/no/such": No such file or directory'),
                         ({"tls_key": other_key}, "the key belongs to another certificate"), ({"tls_ciphers": "NONSUCH"}, "tls_ciphers: "),
                         ({"tls_verify": "require"}, "tls_verify: needs a tls_ca_certificate"),
                         ({"tls_verify": "perhaps"}, "tls_verify: "), ({"tls_min_version": "1.4"}, "tls_min_version: ")]:
        argv = [egret_binary("egret-proxy"), "--config", CONF / "egret-proxy.yaml", "--check-config"]
        for name, value in {**good, **change}.items():
            argv += ["--set", f"{name}={value}"]
        run = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=30 * SLACK, check=False)
        assert run.returncode == 1 and run.stderr.count("\n") == 1 and line in run.stderr, (change, run)


def tls_rows(rows):
    return {name: value for name, value in rows.items() if name.startswith("ssl_")}


def test_rows_are_memcacheds(start, authority):
    """Of `stats settings`, and the names of those of `stats`."""
    certificate = authority.issue("rows")
    directory = scratch_directory()
    for oracle_options, options in [
            ([], {}),
            (["ssl_verify_mode=2", f"ssl_ca_cert={authority.path}", "ssl_ciphers=ECDHE+AESGCM", "ssl_min_version=3", "ssl_session_cache"],
             {"tls_verify": "require", "tls_ca_certificate": authority.path, "tls_ciphers": "ECDHE+AESGCM",
              "tls_min_version": "1.3", "tls_session_cache": "true"})]:
        plain, secure = free_port(), free_port()
        given = ",".join([f"ssl_chain_cert={certificate[0]}", f"ssl_key={certificate[1]}", *oracle_options])
        oracle = Daemon([MEMCACHED, "-u", "root", "-U", 0, "-p", secure, "-Z", "-o", given, "-l",
                         f"notls:127.0.0.1:{plain},127.0.0.1:{secure}"], directory, "memcached")
        try:
            egret = start(certificate, **options)
            wait_for(lambda: oracle.is_alive() and _answers(plain), "memcached to answer")
            wanted = tls_rows(stats_of(("127.0.0.1", plain), b"settings"))
            assert wanted["ssl_enabled"] == "yes"
            assert tls_rows(stats_of(egret.address, b"settings")) == wanted
            names = tls_rows(stats_of(("127.0.0.1", plain))).keys() | {"ssl_proto_errors"}  # which is 1.6.45's
            assert tls_rows(stats_of(egret.address)).keys() == names
            assert "time_since_server_cert_refresh" in stats_of(egret.address)
        finally:
            oracle.stop()


def _answers(port):
    try:
        return ask(("127.0.0.1", port), b"version\r\n")
    except OSError:
        return False


def test_stats_over_tls_and_its_connections(server):
    with connect_tls(server.tls_address) as sock:
        sock.sendall(b"stats conns\r\n")
        rows = read_until(sock, b"END\r\n").decode()
        host, port = sock.getsockname()
        fd = re.search(rf"STAT (\d+):addr tcp:{host}:{port}\r\n", rows)[1]
        assert f"STAT {fd}:listen_addr tcp:127.0.0.1:{server.tls_address[1]}\r\n" in rows
        assert f"STAT {fd}:state conn_parse_cmd\r\n" in rows


def test_an_idle_client_costs_no_wakeup(start):
    """Once handshakes are over nothing is timed: not one thread of the proxy so much as wakes."""
    egret = start()
    socks = [connect_tls(egret.tls_address) for _ in range(20)]
    try:
        for sock in socks:
            sock.sendall(b"version\r\n")
            read_until(sock, b"\r\n")
        time.sleep(12 * SLACK)  # as long as a handshake may take, and a little
        before = egret.proxies[0].wakeups()
        time.sleep(3)
        assert egret.proxies[0].wakeups() == before
    finally:
        for sock in socks:
            sock.close()
