"""Clients from which nothing comes for a second are at rest in the proxy: a descriptor and a few bytes each. They notice nothing of it: their
protocol, their user and his rights, what they have begun, time limits, rows and ends are what they would be otherwise."""

import contextlib
import re
import signal
import socket
import struct
import time

import pytest

import binary
import servers
from binary import GET, GETQ, noop, packet
from configured import Configured
from servers import SLACK, SUT, Egret, ask, connect, figure_of, stats_of, wait_for
from test_users import USERS, WithUsers, login, sasl, written

pytestmark = pytest.mark.skipif(SUT != "egret", reason="memcached has no such state")
ADMIN = {"admin": "127.0.0.1:0"}
AT_REST = "egret_proxy_connections_at_rest"


@pytest.fixture(scope="module")
def egret():
    server = Egret(proxy=ADMIN)
    yield server
    server.check_alive()
    server.stop()


def at_rest(server, count, proxy=0):
    wait_for(lambda: figure_of(server.proxies[proxy], AT_REST) == count, f"{count} clients at rest", 30 * SLACK)


def say(sock, request, answer):
    sock.sendall(request)
    got = b""
    while len(got) < len(answer):
        piece = sock.recv(65536)
        assert piece, f"closed after {got!r}"
        got += piece
    assert got == answer


def is_listening(address):
    try:
        connect(address).close()
        return True
    except OSError:
        return False


def closed(*socks):
    for sock in socks:
        sock.close()


def test_each_goes_on_in_its_protocol(egret):
    ask(egret.address, b"set k 0 0 1\r\nx\r\n")
    text, meta, of_binary, silent = (connect(egret.address) for _ in range(4))
    of_unix = connect(egret.unix_address())
    hit = b"VALUE k 0 1\r\nx\r\nEND\r\n"
    for turn in range(3):
        say(text, b"get k\r\n", hit)
        say(meta, b"mg k v\r\nmn\r\n", b"VA 1\r\nx\r\nMN\r\n")
        of_binary.sendall(packet(GETQ, b"none") + packet(GET, b"k") + noop(opaque=turn))
        answered = b""
        while len(binary.answers(answered)[0]) < 2:
            answered += of_binary.recv(4096)
        assert [header[1] for header, _ in binary.answers(answered)[0]] == [GET, binary.NOOP]
        say(of_unix, b"get k\r\n", hit)
        at_rest(egret, 5)
    say(silent, b"get k\r\n", hit)  # it was at rest before its first word
    closed(text, meta, of_binary, silent, of_unix)
    at_rest(egret, 0)


def test_pieces_and_pipelines_wake_it(egret):
    with connect(egret.address) as sock:
        at_rest(egret, 1)
        value = b"v" * 300_000
        request = b"set big 7 0 300000\r\n" + value + b"\r\nget big\r\nset small 0 0 1 noreply\r\ny\r\nget small\r\n"
        for start in range(0, len(request), 50_000):
            sock.sendall(request[start:start + 50_000])
            time.sleep(0.01)
        say(sock, b"", b"STORED\r\nVALUE big 7 300000\r\n" + value + b"\r\nEND\r\nVALUE small 0 1\r\ny\r\nEND\r\n")
        at_rest(egret, 1)


def test_who_has_something_under_way_is_not_at_rest(egret):
    ask(egret.address, b"set big 0 0 900000\r\n" + b"x" * 900_000 + b"\r\n")
    half, in_value, watcher, reader, rests = (connect(egret.address) for _ in range(5))
    half.sendall(b"mn\r\nget bi")
    in_value.sendall(b"mn\r\nset v 0 0 600000\r\n" + b"v" * 300_000)
    watcher.sendall(b"watch mutations\r\n")
    reader.sendall(b"get big\r\n" * 30)
    at_rest(egret, 1)
    time.sleep(3)  # so long that they would be, too
    assert figure_of(egret.proxies[0], AT_REST) == 1
    say(half, b"", b"MN\r\n")
    say(half, b"g\r\n", b"VALUE big 0 900000\r\n" + b"x" * 900_000 + b"\r\nEND\r\n")
    say(in_value, b"", b"MN\r\n")
    say(in_value, b"v" * 300_000 + b"\r\n", b"STORED\r\n")
    say(reader, b"", (b"VALUE big 0 900000\r\n" + b"x" * 900_000 + b"\r\nEND\r\n") * 30)
    ask(egret.address, b"set seen 0 0 1\r\nx\r\n")
    told = b""
    while b"key=seen" not in told:
        told += watcher.recv(65536)
    assert told.startswith(b"OK\r\n")
    closed(watcher)
    at_rest(egret, 4)  # what they had begun is over
    closed(half, in_value, reader, rests)
    at_rest(egret, 0)


def test_rows_count_it_as_any_other(egret):
    with connect(egret.address) as sock, connect(egret.address) as asks:
        say(sock, b"mn\r\n", b"MN\r\n")
        before = stats_of(egret.address)
        at_rest(egret, 2)
        rows = stats_of(egret.address)
        assert rows["curr_connections"] == before["curr_connections"]
        assert int(rows["total_connections"]) == int(before["total_connections"]) + 1  # that of stats_of() itself
        host, port = sock.getsockname()
        conns = ask(egret.address, b"stats conns\r\n", end=b"END\r\n").decode()
        [fd] = re.findall(rf"STAT (\d+):addr tcp:{re.escape(host)}:{port}\r\n", conns)
        assert f"STAT {fd}:listen_addr tcp:{egret.address[0]}:{egret.address[1]}\r\n" in conns
        assert f"STAT {fd}:state conn_read\r\n" in conns
        assert int(re.search(rf"STAT {fd}:secs_since_last_cmd (\d+)", conns)[1]) >= 1
        say(asks, b"mn\r\n", b"MN\r\n")


def test_ends_are_noticed_and_told(egret):
    with connect(egret.address) as watcher:
        say(watcher, b"watch connevents\r\n", b"OK\r\n")
        orderly, reset, shut = (connect(egret.address) for _ in range(3))
        names = [sock.getsockname() for sock in (orderly, reset, shut)]
        at_rest(egret, 3)
        reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        shut.shutdown(socket.SHUT_WR)
        closed(orderly, reset)
        assert shut.recv(10) == b""
        at_rest(egret, 0)
        told = b""
        while told.count(b"conn_close") < 3:
            told += watcher.recv(65536)
        for (host, port), why in zip(names, (b"normal", b"error", b"normal")):
            assert told.count(b"rport=%d" % port) == 2, told  # it came, and it went
            assert re.search(rb"conn_close rip=%s rport=%d \S* ?reason=%s" % (re.escape(host.encode()), port, why), told), told
        closed(shut)


def test_many_at_rest_take_little_memory_and_all_are_served(egret):
    socks = [connect(egret.address) for _ in range(700)]
    for number, sock in enumerate(socks):
        say(sock, b"set many%d 0 0 1\r\nx\r\n" % number, b"STORED\r\n")
    at_rest(egret, len(socks))
    for number, sock in enumerate(socks):
        sock.sendall(b"get many%d\r\n" % number)
    for number, sock in enumerate(socks):
        answer = b"VALUE many%d 0 1\r\nx\r\nEND\r\n" % number
        say(sock, b"", answer)
    at_rest(egret, len(socks))
    closed(*socks)
    at_rest(egret, 0)
    wait_for(lambda: stats_of(egret.address)["curr_connections"] == "1", "all to be gone")


def test_time_limits_go_on():
    server = Egret(proxy=ADMIN | {"idle_timeout": "3s"})
    try:
        tcp, unix = connect(server.address), connect(server.unix_address())
        at_rest(server, 2)
        assert tcp.recv(10) == b""
        say(unix, b"mn\r\n", b"MN\r\n")
        assert stats_of(server.address)["idle_kicks"] == "1"
        closed(tcp, unix)
    finally:
        server.stop()


def test_a_stop_ends_it_at_once():
    server = Egret(proxy=ADMIN | {"drain": "1h"})
    with connect(server.address) as sock, connect(server.address) as late:
        at_rest(server, 2)
        late.sendall(b"mn\r\n")
        server.proxies[0].signal(signal.SIGTERM)
        say(late, b"", b"MN\r\n")
        assert sock.recv(10) == b"" and late.recv(10) == b""
    assert server.proxies[0].wait() == 0
    server.backend.stop()


def test_users_and_their_rights_go_on_and_follow_a_reload(tmp_path):
    path = written(tmp_path / "users.yaml", USERS)
    server = WithUsers(path, **ADMIN)
    refused = b"CLIENT_ERROR not allowed\r\n"
    try:
        reader, writer, everything, stranger = (connect(server.address) for _ in range(4))
        of_binary = connect(server.address)
        say(reader, login("reader"), b"STORED\r\n")
        say(writer, login("writer"), b"STORED\r\n")
        say(everything, login("all"), b"STORED\r\n")
        of_binary.sendall(sasl("reader"))
        assert of_binary.recv(4096)[6:8] == b"\0\0"
        at_rest(server, 5)
        say(reader, b"set shop:1 0 0 1\r\nx\r\nget shop:1\r\n", refused + b"END\r\n")
        say(writer, b"set shop:1 0 0 1\r\nx\r\nget shop:1\r\n", b"STORED\r\n" + refused)
        say(everything, b"get shop:1\r\n", b"VALUE shop:1 0 1\r\nx\r\nEND\r\n")
        say(stranger, b"get shop:1\r\n", b"CLIENT_ERROR unauthenticated\r\n")
        of_binary.sendall(packet(GET, b"cart:1"))
        assert struct.unpack(">H", of_binary.recv(4096)[6:8])[0] == 0x20  # not his prefix
        at_rest(server, 5)
        written(path, USERS | {"all": "rights: [write]", "reader": "rights: [write]"})
        server.proxies[0].signal(signal.SIGHUP)
        wait_for(lambda: "reloaded: " in server.proxies[0].log(1 << 20), "the reload")
        say(everything, b"get shop:1\r\n", refused)
        say(reader, b"get shop:1\r\n", refused)
        closed(reader, writer, everything, stranger, of_binary)
    finally:
        server.stop()


def users_of(tmp_path):
    users = tmp_path / "users"
    users.write_text("anna:secret\n")
    users.chmod(0o600)
    return users


@contextlib.contextmanager
def configured_proxy(tmp_path, **options):
    """The proxy, which a test may reload, and its address."""
    server = Egret(proxies=0)
    address = ("127.0.0.1", servers.free_port())
    proxy = Configured(tmp_path, "egret-proxy",
                       {"listen": "tcp:%s:%d" % address, "backends": server.backend_address, **ADMIN, **options})
    try:
        wait_for(lambda: is_listening(address), "the proxy to listen")
        yield proxy, address
    finally:
        proxy.daemon.stop()
        server.stop()


def test_guesses_are_remembered(tmp_path):
    """On one connection no more may be guessed than auth_guesses, however long it is quiet between."""
    users = users_of(tmp_path)
    with configured_proxy(tmp_path, auth_file=users, auth_guesses=2, auth_guess_interval="1h") as (proxy, address):
        with connect(address) as guesser, connect(address) as other:
            for number in range(2):
                say(guesser, b"set auth 0 0 7\r\nuser%d x\r\n" % number, b"CLIENT_ERROR authentication failure\r\n")
            wait_for(lambda: figure_of(proxy.daemon, AT_REST) == 1, "the other one to rest")
            time.sleep(2.5)
            guesser.sendall(b"set auth 0 0 7\r\nuser3 x\r\n")
            guesser.settimeout(3)
            with pytest.raises(TimeoutError):
                guesser.recv(100)
            say(other, b"set auth 0 0 11\r\nanna secret\r\n", b"STORED\r\n")


def test_who_connected_before_passwords_were_asked_for_stays_as_he_was(tmp_path):
    users = users_of(tmp_path)
    with configured_proxy(tmp_path) as (proxy, address):
        asked = b"set auth 0 0 11\r\nanna secret\r\n"
        with connect(address) as before, connect(address) as quiet:
            say(before, b"mn\r\n", b"MN\r\n")
            wait_for(lambda: figure_of(proxy.daemon, AT_REST) == 2, "both to rest")
            proxy.changed(auth_file=users)
            for _ in range(2):
                say(before, b"mn\r\n", b"MN\r\n")
                time.sleep(2.5)
            say(quiet, b"mn\r\n", b"MN\r\n")
            with connect(address) as after:
                say(after, b"get k\r\n", b"CLIENT_ERROR unauthenticated\r\n")
                say(after, asked, b"STORED\r\n")
                wait_for(lambda: figure_of(proxy.daemon, AT_REST) == 1, "the new one to rest")
                say(after, b"mn\r\n", b"MN\r\n")
