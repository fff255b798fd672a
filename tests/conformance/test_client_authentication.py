"""Clients that prove who they are: memcached's ASCII authentication (a first `set` with user and password) against `memcached -Y`, and
SASL PLAIN in the binary protocol against `memcached -S` with a database of its own. The subject has one file for both."""

import functools
import os
import re
import signal
import socket
import struct
import subprocess

import pytest

from binary import (DELETE, FLUSH, GET, GETK, GETKQ, INCREMENT, NOOP, QUIT, SASL_AUTH, SASL_LIST_MECHS, SASL_STEP, SET, SETQ, STAT, TOUCH, VERSION,
                    comparable, count,
                    noop, packet, store, touch, wire_length)
from dialog import Case, compare, converse
from newer_memcached import AUTHENTICATION_BUGS, AUTHENTICATION_NEW_BUGS, AUTHENTICATION_ROWS
from servers import MEMCACHED_WITH_SASL, ORACLE_IS_OLD, SUT, Egret, Memcached, ask, wait_for

USERS = {"anna": "secret", "dora": "two words", "bert": "pass:word", "c": "d", "long" * 20: "password" * 12}
SASL_ONLY = "SASL is memcached's own; the subject of SUT=memcached is the oracle's twin"


@pytest.fixture(scope="module")
def users_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("auth") / "users"
    path.write_text("".join(f"{user}:{password}\n" for user, password in USERS.items()))
    path.chmod(0o600)
    return path


def started(server):
    yield server
    for daemon in server.daemons():
        daemon.check_alive()
    server.stop()


@pytest.fixture(scope="module")
def oracle(users_file):
    yield from started(AsciiMemcached("-Y", users_file))


@pytest.fixture(scope="module")
def subject(users_file):
    yield from started(AsciiMemcached("-Y", users_file) if SUT == "memcached" else AuthenticatedEgret(users_file))


class AsciiMemcached(Memcached):
    """It answers nothing but this before authentication."""

    def _is_ready(self):
        return wait_for(lambda: not self.daemon.is_alive() and "dead" or answers(self.address, b"version\r\n") and "ready", "memcached") == "ready"


class SaslMemcached(Memcached):
    program = MEMCACHED_WITH_SASL

    def _is_ready(self):
        return wait_for(lambda: not self.daemon.is_alive() and "dead" or answers(self.address, packet(VERSION), 24) and "ready",
                        "memcached") == "ready"


class AuthenticatedEgret(Egret):
    def __init__(self, users_file):
        super().__init__(proxy={"auth_file": users_file, "auth_guesses": 1_000_000})  # test_guessing.py limits them

    def wait_ready(self, index=0):
        """Until it serves a client that has told its password."""
        def serves():
            if not self.proxies[index].is_alive():
                return "dead"
            try:
                return ask(self.addresses[index], login(b"anna secret") + b"get egret-ready\r\n", end=b"END\r\n",
                           timeout=5).endswith(b"STORED\r\nEND\r\n") and "ready"
            except OSError:
                return False
        return wait_for(serves, "the proxy to serve") == "ready"


def answers(address, request, least=1):
    try:
        with socket.create_connection(address, 2) as sock:
            sock.sendall(request)
            return len(sock.recv(100)) >= least
    except OSError:
        return False


def login(text, head=b"set auth 0 0 %d\r\n", end=b"\r\n"):
    return head % len(text) + text + end


# ASCII

GOOD = login(b"anna secret")
AFTER = b"set <k> 5 0 1\r\na\r\nget <k>\r\nmg <k> v f\r\ndelete <k>\r\nmn again\r\n"


def one_by_one(text):
    """A line (and a set's value) a piece: what it refuses in one packet, memcached answers once."""
    return re.findall(rb"set [^\n]*\n[^\n]*\n|[^\n]*\n|[^\n]+$", text)


def test_right_and_wrong(oracle, subject):
    right = [b"anna secret", b"bert pass:word", b"c d", b"long" * 20 + b" " + b"password" * 12]
    wrong = [b"anna Secret", b"anna secret2", b"anna secre", b"annasecret", b"", b"anna", b"ann secret", b"bert secret", b"anna pass:word",
             b"nobody secret", b"anna\tsecret", b"ANNA secret", b"bert pass", b"dora two", b"x" * 300 + b" " + b"y" * 300]
    cases = [Case(login(text) + AFTER) for text in right]
    cases += [Case([login(text), *one_by_one(AFTER)], name=str(text[:30])) for text in right + wrong]
    cases += [Case([login(text), GOOD + AFTER]) for text in wrong]
    compare(oracle, subject, cases, pause=0.03)


@pytest.mark.parametrize("row", AUTHENTICATION_BUGS, ids=[row.name for row in AUTHENTICATION_BUGS])
def test_memcacheds_own_bug(oracle, subject, row):
    for server, wanted in ((oracle, row.old), (subject, row.new if SUT == "egret" else row.old)):
        ((answer, _),) = converse(server.address, [Case(row.request)])
        assert answer == wanted


@pytest.mark.parametrize("row", AUTHENTICATION_ROWS, ids=[row.name for row in AUTHENTICATION_ROWS])
def test_newer_memcached(oracle, subject, row):
    of_oracle = row.old if ORACLE_IS_OLD else row.new
    for server, wanted in ((oracle, of_oracle), (subject, row.new if SUT == "egret" else of_oracle)):
        assert ask(server.address, row.request) == wanted


@pytest.mark.parametrize("row", AUTHENTICATION_NEW_BUGS, ids=[row.name for row in AUTHENTICATION_NEW_BUGS])
def test_the_newer_memcacheds_own_bug(oracle, subject, row):
    of_oracle = row.old if ORACLE_IS_OLD else row.new
    for server, wanted in ((oracle, of_oracle), (subject, row.old if SUT == "egret" else of_oracle)):
        ((answer, _),) = converse(server.address, [Case(row.request)])
        assert answer == wanted


def test_commands_before_it(oracle, subject):
    commands = [b"get <k>", b"gets <k>", b"gat 0 <k>", b"version", b"stats", b"stats settings", b"quit", b"flush_all", b"verbosity 0", b"mn",
                b"mg <k> v", b"md <k>", b"ma <k> N0", b"ms <k> 8\r\naaaaaaaa",
                b"ms <k> 11\r\nanna secret", b"add <k> 0 0 11\r\nanna secret", b"replace <k> 0 0 8\r\naaaaaaaa", b"append <k> 0 0 8\r\naaaaaaaa",
                b"cas <k> 0 0 1 8\r\naaaaaaaa", b"incr <k> 1", b"decr <k> 1",
                b"delete <k>", b"touch <k> 0", b"shutdown", b"cache_memlimit 100", b"watch", b"lru_crawler metadump all", b"me <k>", b"foo", b"x",
                b"GET / HTTP/1.1", b"set", b"set k",
                b"set k 0 0", b"set k 0 0 x", b"SET k 0 0 11\r\nanna secret", b"get" + b" <k>" * 100]
    if ORACLE_IS_OLD:
        commands = [command for command in commands if len(command) > 4]  # too short for an older memcached to hang up: the table has a row
    cases = [Case([*one_by_one(command + b"\r\n"), end]) for command in commands for end in (b"get <k>\r\n", GOOD + AFTER)]
    # Nothing of what was refused was done.
    cases += [Case([*one_by_one(text), GOOD, b"get <k>\r\n"]) for text in (b"set <k> 0 0 1\r\na\r\n", b"add <k> 0 0 8\r\naaaaaaaa\r\n", b"mg <k> N0\r\n")]
    compare(oracle, subject, cases, pause=0.03)


def test_its_line(oracle, subject):
    """Key, flags and time may be anything."""
    heads = [b"set x y z %d\r\n", b"set auth 0 0 %d noreply\r\n", b"set " + b"k" * 300 + b" 0 0 %d\r\n", b"set auth 0 0 %d 1 2 3\r\n",
             b"set  auth  0  0  %d\r\n", b"set auth -1 -1 %d\r\n",
             b"set auth 99999999999 99999999999 %d\r\n", b"set auth 0 0 0%d\r\n"]
    cases = [Case(login(b"anna secret", head) + AFTER) for head in heads]
    cases += [Case([login(b"anna secret", end=end), GOOD + AFTER]) for end in (b"..", b"\r\r", b"\n\n")]
    for length in (0, 1, 9, 500):
        said = b"anna secret\r\n"
        cases.append(Case([b"set auth 0 0 %d\r\n" % length + said[:length + 2], said[length + 2:], GOOD, AFTER], unfinished=True))
    compare(oracle, subject, cases, pause=0.03)


def test_long_lines(oracle, subject):
    cases = [Case([b"x" * size, b"\r\n", GOOD + AFTER]) for size in (1000, 2040, 2060, 4000, 100_000)]
    cases += [Case([b"x" * size + b"\r\n", GOOD + AFTER]) for size in (1000, 2000, 4000)]
    compare(oracle, subject, cases, pause=0.03)


# What attackers have tried on memcached before 1.6.45.

def test_empty_lines_and_lines_of_spaces(oracle, subject):
    cases = [Case([line, GOOD + AFTER]) for size in (0, 1, 4, 5, 6, 7, 100, 2000, 2047) for line in (b" " * size + b"\r\n", b" " * size + b"\n")
             if not ORACLE_IS_OLD or size >= 6]
    cases += [Case([line, GOOD + AFTER]) for line in (b"\0" * 10 + b"\r\n", b"set" + b" " * 10 + b"\r\n", b"set 1 2 3 " + b" " * 10 + b"\r\n")]
    compare(oracle, subject, cases, pause=0.03)


@pytest.mark.parametrize("size", [16385, 2147483645, 2147483646, 2147483647, 4294967295])
def test_a_value_that_is_far_too_long_is_refused_at_once(oracle, subject, size):
    """And nothing of it is waited for: what follows is a line again."""
    for server in [subject] if ORACLE_IS_OLD else [oracle, subject]:
        with socket.create_connection(server.address, 10) as sock:
            sock.sendall(b"set auth 0 0 %d\r\n" % size)
            assert sock.recv(100) == b"CLIENT_ERROR auth token too long\r\n"
            sock.sendall(GOOD)
            assert sock.recv(100) == b"STORED\r\n"


def test_long_values(oracle, subject):
    """Up to 16384 bytes are waited for (if they fit into what memcached reads at once), and judged."""
    if ORACLE_IS_OLD:
        pytest.skip("refuses values of other lengths")
    cases = []
    for size in (1023, 1024, 1025, 1026, 2000, 5000, 16000):
        for text in (b"anna " + b"x" * (size - 5), b"x" * size, b" " * size):
            cases += [Case([login(text), GOOD + AFTER]), Case([login(text, end=b"..") + b"\r\n", GOOD + AFTER])]
        whole = login(b"anna " + b"x" * (size - 5))
        cases.append(Case([whole[:500], whole[500:-1], whole[-1:], GOOD + AFTER]))
    compare(oracle, subject, cases, pause=0.03)


class Cut(Case):
    def __init__(self, text, places):
        super().__init__(text)
        (whole,) = self.pieces
        edges = [0, *places, len(whole)]
        self.pieces = [whole[a:b] for a, b in zip(edges, edges[1:])]


def test_cut_at_every_byte(oracle, subject):
    texts = [GOOD + b"get <k>\r\n", login(b"anna wrong"), b"get <k>\r\n"]
    compare(oracle, subject, [Cut(text, [at]) for text in texts for at in range(1, wire_length(text))], pause=0.02)
    compare(oracle, subject, [Cut(text, range(1, wire_length(text))) for text in texts], pause=0.004)


def test_once_is_enough(oracle, subject):
    """A second `set` is a set like any other."""
    compare(oracle, subject, [Case(GOOD + GOOD + b"get auth\r\n"), Case(GOOD + login(b"anna wrong") + b"get auth\r\n")], at_once=1)


def test_attempts_are_counted(oracle, subject):
    for server in (oracle, subject):
        def counted(server=server):
            answer = ask(server.address, GOOD + b"stats\r\n", end=b"END\r\n").decode()
            rows = dict(line.split(" ", 2)[1:] for line in answer.split("\r\n") if line.startswith("STAT "))
            return int(rows["auth_cmds"]), int(rows["auth_errors"])
        before = counted()
        for _ in range(3):
            ask(server.address, login(b"anna wrong"))
        after = counted()
        assert (after[0] - before[0], after[1] - before[1]) == (4, 3), server


def test_settings_say_so(oracle, subject):
    for server in (oracle, subject):
        answer = ask(server.address, GOOD + b"stats settings\r\n", end=b"END\r\n")
        assert b"STAT auth_enabled_ascii /" in answer, server


def test_a_changed_file_counts_after_sighup(oracle, subject, users_file):
    """Those who are in stay in; a file with a mistake changes nothing."""
    held = []
    first = users_file.read_text()
    try:
        for server in (oracle, subject):
            sock = socket.create_connection(server.address, 10)
            sock.sendall(GOOD)
            assert sock.recv(100) == b"STORED\r\n"
            held.append(sock)
        users_file.write_text("anna:changed\n")
        for server in (oracle, subject):
            server.daemons()[-1].signal(signal.SIGHUP)
            wait_for(lambda server=server: ask(server.address, login(b"anna changed")) == b"STORED\r\n", "the new password")
            assert ask(server.address, GOOD) == b"CLIENT_ERROR authentication failure\r\n"
        users_file.write_text("no colon\n")
        for server, sock in zip((oracle, subject), held):
            server.daemons()[-1].signal(signal.SIGHUP)
            sock.sendall(b"mn\r\n")
            assert sock.recv(100) == b"MN\r\n"
            assert ask(server.address, login(b"anna changed")) == b"STORED\r\n"
    finally:
        users_file.write_text(first)
        for server in (oracle, subject):
            server.daemons()[-1].signal(signal.SIGHUP)
            wait_for(lambda server=server: ask(server.address, GOOD) == b"STORED\r\n", "the old password")
        for sock in held:
            sock.close()


# SASL PLAIN

@pytest.fixture(scope="module")
def sasl_oracle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sasl")
    (folder / "memcached.conf").write_text(f"mech_list: plain\npwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {folder}/users\n")
    for user, password in USERS.items():
        subprocess.run(["/usr/sbin/saslpasswd2", "-p", "-c", "-f", folder / "users", "-u", socket.gethostname(), user], input=password.encode(),
                       check=True)
    os.environ["SASL_CONF_PATH"] = str(folder)
    try:
        server = SaslMemcached("-S")
    finally:
        del os.environ["SASL_CONF_PATH"]
    yield from started(server)


@pytest.fixture(scope="module")
def sasl_subject(sasl_oracle, subject):
    return sasl_oracle if SUT == "memcached" else subject


def plain(text, opcode=SASL_AUTH, mechanism=b"PLAIN"):
    return packet(opcode, mechanism, b"", text, opaque=len(text))


def compare_sasl(oracle, subject, cases, **options):
    compare(oracle, subject, cases, normalise=functools.partial(comparable), **options)


BINARY_AFTER = store(SET, b"<k>", b"v", 7) + packet(GETK, b"<k>") + noop()


def test_sasl_right_and_wrong(sasl_oracle, sasl_subject):
    right = [b"\0anna\0secret", b"\0bert\0pass:word", b"\0c\0d", b"\0" + b"long" * 20 + b"\0" + b"password" * 12, b"anna\0anna\0secret"]
    wrong = [b"\0anna\0wrong", b"\0anna\0secret2", b"\0anna\0secre", b"\0anna\0", b"\0\0secret", b"\0\0", b"\0nobody\0secret",
             b"bert\0anna\0secret", b"anna\0secret", b"anna secret", b"\0anna", b"\0anna\0secret\0", b"\0anna\0secret\0x", b"\0", b"x",
             b"\0ANNA\0secret", b"\0bert\0secret", b"\0anna\0" + b"x" * 3000, b"\0" + b"x" * 3000 + b"\0secret"]
    cases = [Case(plain(text) + BINARY_AFTER, name=str(text[:30])) for text in right + wrong]
    cases += [Case(plain(b"") + plain(text, SASL_STEP) + BINARY_AFTER) for text in right + wrong]
    # Not after a success: memcached's library is done then, and whatever it is told, the client is forgotten.
    cases += [Case(plain(text) + plain(b"\0anna\0secret") + BINARY_AFTER) for text in wrong]
    compare_sasl(sasl_oracle, sasl_subject, cases)


def test_sasl_mechanisms_and_steps(sasl_oracle, sasl_subject):
    good = b"\0anna\0secret"
    cases = [Case(packet(SASL_LIST_MECHS, opaque=5) + plain(good) + noop())]
    cases += [Case(plain(good, mechanism=mechanism) + BINARY_AFTER) for mechanism in (b"plain", b"PLAI", b"PLAINX", b"LOGIN", b"CRAM-MD5",
                                                                                      b"SCRAM-SHA-1", b"EXTERNAL", b"ANONYMOUS", b"X" * 32,
                                                                                     b"X" * 33, b"X" * 250, b"PLAIN ")]
    cases += [Case(plain(good, SASL_STEP) + BINARY_AFTER), Case(plain(b"") + BINARY_AFTER), Case(plain(b"", SASL_STEP) + BINARY_AFTER),
              Case(plain(b"") + plain(b"") + plain(good, SASL_STEP) + noop()),
              Case(plain(b"") + plain(b"", SASL_STEP) + plain(good, SASL_STEP) + noop()),
              Case(plain(b"") + packet(VERSION) + plain(good, SASL_STEP) + noop()),
              Case(plain(b"\0anna\0no") + plain(good, SASL_STEP) + noop())]
    cases += [Case(packet(opcode, key, extras, value) + noop()) for opcode in (SASL_LIST_MECHS, SASL_AUTH, SASL_STEP) for key, extras, value in
              ((b"", b"", b"x"), (b"", b"1234", b""), (b"PLAIN", b"1234", good))]
    compare_sasl(sasl_oracle, sasl_subject, cases)


def test_sasl_requests_before_it(sasl_oracle, sasl_subject):
    requests = [packet(GET, b"<k>"), packet(GETKQ, b"<k>"), store(SET, b"<k>", b"v"), store(SETQ, b"<k>", b"v"), packet(DELETE, b"<k>"),
                count(INCREMENT, b"<k>"), touch(TOUCH, b"<k>", 0), noop(),
                packet(STAT), packet(STAT, b"settings"), packet(FLUSH), packet(FLUSH, extras=struct.pack(">I", 0)), packet(QUIT), packet(0x30),
                packet(NOOP, value=b"x"), packet(VERSION), packet(GET),
                packet(SET, b"<k>")]
    cases = [Case(request + packet(VERSION)) for request in requests]
    cases += [Case(packet(VERSION) + request) for request in requests]
    cases += [Case(plain(b"\0anna\0wrong") + request + noop()) for request in requests]
    compare_sasl(sasl_oracle, sasl_subject, cases)


def test_sasl_cut_at_every_byte(sasl_oracle, sasl_subject):
    text = packet(SASL_LIST_MECHS) + plain(b"\0anna\0secret") + BINARY_AFTER
    compare_sasl(sasl_oracle, sasl_subject, [Cut(text, [at]) for at in range(1, wire_length(text))] + [Cut(text, range(1, wire_length(text)))],
                 pause=0.004)


def test_sasl_with_libmemcached(sasl_subject):
    """As an application does it: pylibmc with user and password."""
    import pylibmc
    where = ["%s:%d" % sasl_subject.address]
    client = pylibmc.Client(where, binary=True, username="anna", password="secret")
    assert client.set("sasl-lib", "value") and client.get("sasl-lib") == "value"
    with pytest.raises(pylibmc.Error):
        pylibmc.Client(where, binary=True, username="anna", password="wrong").set("sasl-lib", "other")
    assert client.get("sasl-lib") == "value"


# Both at one door

@pytest.mark.skipif(SUT == "memcached", reason=SASL_ONLY)
def test_both_dialects_on_one_port(subject):
    converse(subject.address, [Case(plain(b"\0anna\0secret") + store(SET, b"both", b"v", 3) + noop())])
    assert ask(subject.address, GOOD + b"get both\r\n", end=b"END\r\n") == b"STORED\r\nVALUE both 3 1\r\nv\r\nEND\r\n"
