"""Users with rights (`users_file`): what each may do and with which keys, in text, meta and binary; that a refused key does not show
whether it exists; that rights follow the file at a reload; that slow hashes hold up nobody."""

import crypt
import re
import select
import socket
import struct
import subprocess

import pytest

import binary
import servers
from binary import DELETE, FLUSH, GAT, GET, GETKQ, GETQ, INCREMENT, NOOP, SET, SETQ, STAT, TOUCH, VERBOSITY, count, noop, packet, store, touch
from doctor import doctor
from servers import SUT, Egret, ask, connect, egret_binary, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="memcached's users have no rights")
REFUSED = b"CLIENT_ERROR not allowed\r\n"
REFUSED_BINARY = 0x20
# Of the test's own: each word is also the user's password.
USERS = {
    "reader": "rights: [read]\n  prefixes: [\"shop:\"]",
    "writer": "rights: [write]\n  prefixes: [\"shop:\", \"cart:\"]",
    "both": "rights: [read, write]\n  prefixes: [\"shop:\"]",
    "operator": "rights: [admin]",
    "all": "rights: [read, write, admin]",
}


def hashed(password):
    done = subprocess.run(["openssl", "passwd", "-6", "-stdin"], input=password + "\n", capture_output=True, text=True, check=True)
    return done.stdout.strip()


HASHES = {}


def hash_of(password):
    return HASHES.setdefault(password, hashed(password))


def written(path, users):
    path.write_text("".join(f"{name}:\n  password: \"{hash_of(name)}\"\n  {rest}\n" for name, rest in users.items()))
    path.chmod(0o600)
    return path


def login(user, password=None):
    text = f"{user} {password or user}".encode()
    return b"set auth 0 0 %d\r\n%s\r\n" % (len(text), text)


def sasl(user):
    return packet(binary.SASL_AUTH, b"PLAIN", b"", f"\0{user}\0{user}".encode())


class WithUsers(Egret):
    def __init__(self, users_file, **proxy):
        super().__init__(proxy={"users_file": users_file, "allow_shutdown": "true", **proxy})

    def wait_ready(self, index=0):
        def serves():
            if not self.proxies[index].is_alive():
                return "dead"
            try:
                return ask(self.addresses[index], login("all") + b"get egret-ready\r\n", end=b"END\r\n").endswith(b"STORED\r\nEND\r\n") and "ready"
            except OSError:
                return False
        return wait_for(serves, "the proxy to serve") == "ready"


@pytest.fixture(scope="module")
def users_file(tmp_path_factory):
    return written(tmp_path_factory.mktemp("users") / "users.yaml", USERS)


@pytest.fixture(scope="module")
def egret(users_file):
    server = WithUsers(users_file)
    yield server
    for daemon in server.daemons():
        daemon.check_alive()
    server.stop()


def said(egret, user, request):
    """The answers to `request`, after those to the login and before mn's."""
    answer = ask(egret.address, login(user) + request + b"mn\r\n", end=b"MN\r\n")
    assert answer.startswith(b"STORED\r\n") and answer.endswith(b"MN\r\n"), answer
    return answer[8:-4]


def said_binary(egret, user, request):
    """(opcode, status, body) of each answer after the login's and before noop's."""
    with connect(egret.address) as sock:
        sock.sendall(sasl(user) + request + noop(opaque=0xE0D))
        data = b""
        while True:
            found, rest = binary.answers(data)
            if found and found[-1][0][1] == NOOP and not rest:
                break
            piece = sock.recv(65536)
            assert piece, data
            data += piece
        assert found[0][0][5] == 0, found[0]
        return [(header[1], header[5], body) for header, body in found[1:-1]]


def fill(egret):
    assert said(egret, "all", b"flush_all\r\nset shop:a 0 0 1\r\n7\r\nset secret:a 0 0 1\r\n7\r\n") == b"OK\r\nSTORED\r\nSTORED\r\n"


READS = [b"get %s\r\n", b"gets %s\r\n", b"mg %s v\r\n", b"mg %s\r\n", b"mg %s t f s c k q\r\n", b"me %s\r\n"]
WRITES = [b"set %s 0 0 1\r\n8\r\n", b"add %s 0 0 1\r\n8\r\n", b"replace %s 0 0 1\r\n8\r\n", b"append %s 0 0 1\r\n8\r\n", b"prepend %s 0 0 1\r\n8\r\n",
          b"cas %s 0 0 1 1\r\n8\r\n", b"touch %s 0\r\n", b"ms %s 1\r\n8\r\n", b"ms %s 1 O123 k\r\n8\r\n", b"md %s\r\n", b"md %s q\r\n", b"delete %s\r\n",
          b"set %s 0 0 200000\r\n" + b"x" * 200000 + b"\r\n"]
BOTH = [b"gat 0 %s\r\n", b"gats 0 %s\r\n", b"incr %s 1\r\n", b"decr %s 1\r\n", b"ma %s\r\n", b"ma %s N0 v\r\n", b"mg %s N0 v\r\n", b"mg %s T0 v\r\n", b"mg %s R9 v\r\n"]
ADMIN = [b"flush_all\r\n", b"verbosity 1\r\n", b"stats detail on\r\n", b"stats detail dump\r\n", b"stats conns\r\n", b"stats cachedump 1 0\r\n", b"stats reset\r\n",
         b"watch fetchers\r\n", b"watch\r\n", b"lru_crawler metadump all\r\n", b"lru_crawler mgdump all\r\n", b"cache_memlimit 100\r\n", b"shutdown\r\n",
         b"lru_crawler disable\r\n", b"slabs automove 0\r\n", b"refresh_certs\r\n"]
FREE = [b"version\r\n", b"stats\r\n", b"stats settings\r\n", b"stats items\r\n"]


@pytest.mark.parametrize("user, may", [("reader", READS), ("writer", WRITES), ("both", READS + WRITES + BOTH), ("operator", [])])
def test_a_user_may_do_what_the_rights_say(egret, user, may):
    for command in READS + WRITES + BOTH:
        fill(egret)
        answer = said(egret, user, command % b"shop:a")
        assert (REFUSED not in answer) if command in may else answer == REFUSED, (user, command, answer)


@pytest.mark.parametrize("user", ["reader", "writer", "both"])
def test_another_key_is_refused_alike_whether_it_exists_or_not(egret, user):
    fill(egret)
    for command in READS + WRITES + BOTH:
        for key in (b"secret:a", b"secret:b", b"sho", b"xshop:a", b"SHOP:a"):
            assert said(egret, user, command % key) == REFUSED, (user, command, key)
    assert said(egret, "all", b"get secret:a\r\nget secret:b\r\n") == b"VALUE secret:a 0 1\r\n7\r\nEND\r\nEND\r\n"  # nothing was done


@pytest.mark.parametrize("user", ["reader", "writer", "both"])
def test_what_concerns_the_server_needs_the_right_of_admin(egret, user):
    for command in ADMIN:
        assert said(egret, user, command) == REFUSED, command
    for command in FREE:
        assert REFUSED not in said(egret, user, command), command


def test_an_operator_may_do_that_and_nothing_with_keys(egret):
    fill(egret)
    for command in (b"stats conns\r\n", b"stats detail on\r\n", b"stats detail off\r\n", b"verbosity 1\r\n", b"lru_crawler enable\r\n", b"cache_memlimit 1024\r\n"):
        assert REFUSED not in said(egret, "operator", command), command
    with connect(egret.address) as sock:
        sock.sendall(login("operator"))
        assert sock.recv(100) == b"STORED\r\n"
        sock.sendall(b"lru_crawler metadump all\r\n")
        seen = b""
        while not seen.endswith(b"END\r\n"):
            seen += sock.recv(4096)
        assert b"shop%3Aa" in seen or b"shop:a" in seen, seen
        sock.sendall(b"watch mutations\r\n")
        assert sock.recv(100) == b"OK\r\n"
        assert said(egret, "all", b"set shop:w 0 0 1\r\n1\r\n") == b"STORED\r\n"
        seen = b""
        while b"shop%3Aw" not in seen and b"shop:w" not in seen:
            seen += sock.recv(4096)
    assert said(egret, "operator", b"flush_all\r\n") == b"OK\r\n"
    assert said(egret, "all", b"get shop:a\r\n") == b"END\r\n"


def test_a_get_of_many_keys_is_refused_when_one_of_them_is(egret):
    """The line stands for END, and for what has not been sent. It is the same whether the other key exists."""
    fill(egret)
    for request in (b"get secret:a\r\n", b"get secret:b\r\n", b"gets secret:a secret:b\r\n", b"get secret:a shop:a\r\n"):
        assert said(egret, "reader", request) == REFUSED, request
    for other in (b"secret:a", b"secret:b"):
        answer = said(egret, "reader", b"get shop:a %s shop:a\r\n" % other)
        assert answer.removeprefix(b"VALUE shop:a 0 1\r\n7\r\n") == REFUSED, answer
    many = b"get " + b" ".join(b"shop:%d" % n for n in range(5000)) + b" secret:a\r\n"
    assert said(egret, "reader", many + b"get shop:a\r\n").endswith(REFUSED + b"VALUE shop:a 0 1\r\n7\r\nEND\r\n")


def test_meta_keys_in_base64_and_opaque_and_quiet(egret):
    fill(egret)
    shop, secret = b"c2hvcDph", b"c2VjcmV0OmE="
    assert said(egret, "reader", b"mg %s b v k\r\n" % shop) == b"VA 1 k%s b\r\n7\r\n" % shop
    assert said(egret, "reader", b"mg %s b v k\r\n" % secret) == REFUSED
    assert said(egret, "both", b"ms %s 1 b\r\n9\r\n" % secret) == REFUSED
    assert said(egret, "both", b"mg shop:a v q\r\nmg secret:a v q O9\r\nmg shop:none v q\r\nmg secret:none v q O9\r\n") == b"VA 1\r\n7\r\n" + REFUSED * 2
    assert said(egret, "both", b"ms shop:q 1 q\r\n1\r\nms secret:q 1 q\r\n1\r\nmd secret:a q\r\nma secret:a q\r\n") == REFUSED * 3


def test_noreply_is_answered_nothing_and_does_nothing(egret):
    fill(egret)
    assert said(egret, "writer", b"set secret:a 0 0 1 noreply\r\n9\r\ndelete secret:a noreply\r\nflush_all noreply\r\nverbosity 1 noreply\r\n") == b""
    assert said(egret, "all", b"get secret:a\r\n") == b"VALUE secret:a 0 1\r\n7\r\nEND\r\n"


def test_a_large_value_that_is_refused_is_swallowed(egret):
    fill(egret)
    value = b"x" * 900_000
    assert said(egret, "writer", b"set secret:big 0 0 %d\r\n%s\r\nset shop:big 0 0 %d\r\n%s\r\n" % (len(value), value, len(value), value)) == \
        REFUSED + b"STORED\r\n"
    assert said(egret, "all", b"get secret:big\r\n") == b"END\r\n"


@pytest.mark.parametrize("key", [b"secret:a", b"secret:b"])
def test_binary_requests_are_refused_quiet_ones_too(egret, key):
    fill(egret)
    requests = [packet(GET, key), packet(GETQ, key), packet(GETKQ, key), store(SET, key, b"9"), store(SETQ, key, b"9"), packet(DELETE, key), count(INCREMENT, key),
                touch(TOUCH, key, 0), touch(GAT, key, 0), store(SET, key, b"x" * 200_000), packet(FLUSH), packet(STAT, b"conns"), packet(STAT, b"reset"),
                packet(VERBOSITY, extras=struct.pack(">I", 1))]
    for user in ("reader", "both"):
        assert [status for _, status, _ in said_binary(egret, user, b"".join(requests))] == [REFUSED_BINARY] * len(requests)
        assert len({body for _, _, body in said_binary(egret, user, packet(GET, key) + packet(GETQ, key))}) == 1
    assert [status for _, status, _ in said_binary(egret, "both", packet(GET, b"shop:a") + store(SET, b"shop:a", b"8") + count(INCREMENT, b"shop:a"))] == [0, 0, 0]
    assert said(egret, "all", b"get secret:a secret:b\r\n") == b"VALUE secret:a 0 1\r\n7\r\nEND\r\n"


def test_a_wrong_password_and_a_user_that_is_not_there(egret):
    for user, password in (("reader", "writer"), ("reader", "reade"), ("nobody", "nobody"), ("reader", "READER")):
        assert ask(egret.address, login(user, password)) == b"CLIENT_ERROR authentication failure\r\n"
    assert ask(egret.address, b"get shop:a\r\n") == b"CLIENT_ERROR unauthenticated\r\n"


def test_rights_follow_the_file_at_a_reload(tmp_path):
    """Of clients that are connected, too; a user who is gone has none. A wrong file changes nothing."""
    path = written(tmp_path / "users.yaml", USERS)
    server = WithUsers(path)
    proxy = server.proxies[0]

    def reloaded(change):
        before = len(proxy.log(1_000_000))
        change()
        proxy.signal(1)
        wait_for(lambda: re.search("reloaded: |reload refused", proxy.log(1_000_000)[before:]), "the reload")
        return proxy.log(1_000_000)[before:]

    def asks(sock, request):
        sock.sendall(request)
        return sock.recv(1000)

    try:
        with connect(server.address) as reader, connect(server.address) as both:
            assert asks(reader, login("reader")) == asks(both, login("both")) == b"STORED\r\n"
            assert asks(reader, b"get shop:a\r\n") == b"END\r\n"
            changed = {**USERS, "reader": "rights: [read]\n  prefixes: [\"other:\"]"}
            del changed["both"]
            reloaded(lambda: written(path, changed))
            wait_for(lambda: asks(reader, b"get shop:a\r\n") == REFUSED, "the prefix")
            assert asks(reader, b"get other:a\r\n") == b"END\r\n"
            wait_for(lambda: asks(both, b"get shop:a\r\n") == REFUSED, "the user to be gone")
            assert asks(both, b"mn\r\n") == b"MN\r\n"
            text = reloaded(lambda: path.write_text("reader:\n  rights: [fly]\n"))
            assert re.search(r"reload refused.*users_file: .*users.yaml, line 2: expected a list of read, write and admin, got", text), text
            assert asks(reader, b"get other:a\r\n") == b"END\r\n"
            assert ask(server.address, login("both")) == b"CLIENT_ERROR authentication failure\r\n"
    finally:
        server.stop()


def test_users_of_both_files(tmp_path, users_file):
    passwords = tmp_path / "passwords"
    passwords.write_text("old:friend\n")
    passwords.chmod(0o600)
    server = WithUsers(users_file, auth_file=passwords)
    try:
        assert ask(server.address, login("old", "friend") + b"flush_all\r\nset any 0 0 1\r\n1\r\n", end=b"OK\r\nSTORED\r\n") == b"STORED\r\nOK\r\nSTORED\r\n"
        assert said(server, "reader", b"get any\r\n") == REFUSED
    finally:
        server.stop()


def test_guesses_that_are_verified_slowly_hold_up_nobody(tmp_path):
    """Thirty guesses wait for the thread that verifies. A client whose password has been verified before is answered at once, one from
    another address after one guess or two: both before the guesses are all done."""
    slow = "$6$rounds=400000$egrettests$"
    path = tmp_path / "users.yaml"
    path.write_text("".join(f"{user}:\n  password: \"{crypt.crypt(user, slow)}\"\n  rights: [read]\n" for user in ("all", "late")))
    path.chmod(0o600)
    server = WithUsers(path)
    attackers = []
    try:
        for number in range(30):
            attackers.append(connect(server.address))
            attackers[-1].sendall(login(f"user{number}", "guess"))
        for source, user in (("127.0.0.1", "all"), ("127.0.0.2", "late")):
            with socket.create_connection(server.address, 60 * servers.SLACK, source_address=(source, 0)) as bystander:
                lines = bystander.makefile("rb")
                bystander.sendall(login(user))
                assert lines.readline() == b"STORED\r\n"
                for _ in range(100):
                    bystander.sendall(b"get none\r\n")
                    assert lines.readline() == b"END\r\n"
        readable, _, _ = select.select(attackers, [], [], 0)
        assert len(readable) < len(attackers)
        assert attackers[0].recv(100) == b"CLIENT_ERROR authentication failure\r\n"  # they get theirs, too
    finally:
        for sock in attackers:
            sock.close()
        server.stop()


def test_doctor_and_check_config(tmp_path, users_file):
    settings = [f"backends=shm:{tmp_path}/none.sock", f"listen=unix:{tmp_path}/p.sock", f"users_file={users_file}"]
    assert f"ok   users_file: {len(USERS)} users in {users_file}\n" in doctor("egret-proxy", *settings)
    users_file.chmod(0o644)
    assert f"warn users_file: every user of this host may use {users_file}" in doctor("egret-proxy", *settings)
    users_file.chmod(0o600)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("anna:\n  password: plain\n  rights: [read]\n")
    done = subprocess.run([egret_binary("egret-proxy"), "--check-config", "--set", f"users_file={wrong}"], capture_output=True, text=True)
    assert done.returncode == 1 and re.search(r"users_file: .*wrong.yaml, line 2: password: expected a hash", done.stderr), done.stderr
