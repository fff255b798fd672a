"""Somebody guesses passwords, as fast as the connection takes them. How many guesses are answered is bounded, by connection and by
(user, address); meanwhile a bystander's right password is taken at once, whose user or address is another. No time is asserted: the
interval is an hour, so all that the attacker ever gets is the burst."""

import contextlib
import os
import re
import select
import socket
import subprocess
import sys
import threading

import pytest

import binary
import servers
from servers import SUT, Egret, ask, connect, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="memcached lets everybody guess")
BURST = 5
GUESSES = 1000
WRONG, RIGHT = b"CLIENT_ERROR authentication failure\r\n", b"STORED\r\n"
PASSWORDS = {"anna": "secret", "bert": "other"}


def login(user, password):
    text = f"{user} {password}".encode()
    return b"set auth 0 0 %d\r\n%s\r\n" % (len(text), text)


def sasl(user, password):
    return binary.packet(binary.SASL_AUTH, b"PLAIN", b"", f"\0{user}\0{password}".encode())


class Guarded(Egret):
    def __init__(self, folder, **proxy):
        users = folder / "users"
        users.write_text("".join(f"{user}:{password}\n" for user, password in PASSWORDS.items()))
        users.chmod(0o600)
        super().__init__(proxy={"auth_file": users, "auth_guesses": BURST, "auth_guess_interval": "1h", **proxy})

    def wait_ready(self, index=0):
        def serves():
            if not self.proxies[index].is_alive():
                return "dead"
            try:
                return ask(self.addresses[index], login("bert", "other") + b"get egret-ready\r\n", end=b"END\r\n").endswith(RIGHT + b"END\r\n") and "ready"
            except OSError:
                return False
        return wait_for(serves, "the proxy to serve") == "ready"

    def told(self, name):
        answer = ask(self.address, login("bert", "other") + b"stats\r\n", end=b"END\r\n").decode()
        return int(re.search(rf"^STAT {name} (\d+)\r$", answer, re.M)[1])


@pytest.fixture
def egret(tmp_path):
    server = Guarded(tmp_path)
    yield server
    for daemon in server.daemons():
        daemon.check_alive()
    server.stop()


def connected_from(source, address):
    return socket.create_connection(address, 30 * servers.SLACK, source_address=(source, 0))


class Attacker:
    """Sends all its guesses in one go, and collects the answers in a thread."""

    def __init__(self, sock, guesses):
        self.sock, self.answers = sock, b""
        self.thread = threading.Thread(target=self._work, args=(b"".join(guesses),))

    def __enter__(self):
        self.sock.settimeout(None)
        self.thread.start()
        return self

    def _work(self, rest):
        self.sock.setblocking(False)
        while True:
            readable, writable, _ = select.select([self.sock], [self.sock] if rest else [], [])
            try:
                if writable:
                    rest = rest[self.sock.send(rest):]
                if readable:
                    piece = self.sock.recv(65536)
                    if not piece:
                        return
                    self.answers += piece
            except OSError:
                return

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.sock.close()


def works(sock, user, key):
    """A right password, and 1,000 gets after it, one by one."""
    with sock:
        lines = sock.makefile("rb")
        sock.sendall(login(user, PASSWORDS[user]))
        assert lines.readline() == RIGHT
        for _ in range(1000):
            sock.sendall(b"get %s\r\n" % key)
            assert lines.readline() == b"END\r\n"


def test_one_connection_gets_the_burst_and_then_waits(egret):
    with Attacker(connect(egret.address), [login("anna", f"guess{n}") for n in range(GUESSES)]) as attacker:
        wait_for(lambda: len(attacker.answers) >= BURST * len(WRONG), "the burst to be answered")
        works(connect(egret.address), "bert", b"other-user")                      # another user, same address
        works(connected_from("127.0.0.2", egret.address), "anna", b"other-address")  # the same user, another address
        works(connect(egret.unix_address()), "anna", b"local")                    # the same user, by a Unix socket
        assert attacker.answers == WRONG * BURST


def test_users_in_turn_are_no_way_around_the_connections_limit(egret):
    guesses = [login(f"user{n}", "secret") for n in range(GUESSES)]
    with Attacker(connect(egret.address), guesses) as attacker:
        wait_for(lambda: len(attacker.answers) >= BURST * len(WRONG), "the burst to be answered")
        works(connect(egret.address), "anna", b"bystander")
        assert attacker.answers == WRONG * BURST


def test_many_connections_are_no_way_around_the_users_limit(egret):
    """Over all connections from one address, a user is guessed `auth_guesses` times; the right password among the rest is no use."""
    with contextlib.ExitStack() as stack:
        attackers = [stack.enter_context(Attacker(connect(egret.address), [login("anna", f"guess{n}")] * 3)) for n in range(20)]
        wait_for(lambda: sum(len(each.answers) for each in attackers) >= BURST * len(WRONG), "the burst to be answered")
        attackers.append(stack.enter_context(Attacker(connect(egret.address), [login("anna", "secret")])))
        works(connect(egret.address), "bert", b"other-user")
        works(connected_from("127.0.0.2", egret.address), "anna", b"other-address")
        assert sum(each.answers.count(WRONG) for each in attackers) == BURST
        assert not any(RIGHT in each.answers for each in attackers)


@pytest.mark.parametrize("known", ["anna", "nobody"])
def test_a_user_that_is_not_there_is_limited_as_one_that_is(egret, known):
    with contextlib.ExitStack() as stack:
        attackers = [stack.enter_context(Attacker(connect(egret.address), [login(known, "wrong")])) for _ in range(4 * BURST)]
        wait_for(lambda: sum(len(each.answers) for each in attackers) >= BURST * len(WRONG), "the burst to be answered")
        works(connect(egret.address), "bert", b"bystander")
        assert sum(each.answers.count(WRONG) for each in attackers) == BURST


def test_sasl_guesses_are_limited_likewise(egret):
    with Attacker(connect(egret.address), [sasl("anna", f"guess{n}") for n in range(GUESSES)]) as attacker:
        wait_for(lambda: len(binary.answers(attacker.answers)[0]) >= BURST, "the burst to be answered")
        works(connect(egret.address), "bert", b"other-user")
        works(connected_from("127.0.0.2", egret.address), "anna", b"other-address")
        found, rest = binary.answers(attacker.answers)
        assert [header[5] for header, _ in found] == [0x20] * BURST and not rest


def test_a_local_guesser_is_limited_by_its_user_of_the_system(egret):
    with Attacker(connect(egret.unix_address()), [login("anna", f"guess{n}") for n in range(GUESSES)]) as attacker:
        wait_for(lambda: len(attacker.answers) >= BURST * len(WRONG), "the burst to be answered")
        works(connect(egret.address), "anna", b"by-tcp")
        works(connect(egret.unix_address()), "bert", b"other-user")
        assert attacker.answers == WRONG * BURST
    if os.geteuid() != 0:
        return
    egret.directory.chmod(0o755)
    os.chmod(egret.unix_address(), 0o777)
    script = ("import os, socket, sys\nos.setuid(65534)\nsock = socket.socket(socket.AF_UNIX)\nsock.settimeout(30)\n"
              "sock.connect(sys.argv[1])\nsock.sendall(sys.argv[2].encode())\nprint(sock.recv(100))\n")
    done = subprocess.run([sys.executable, "-c", script, egret.unix_address(), login("anna", "secret").decode()], capture_output=True, text=True)
    assert done.stdout == f"{RIGHT!r}\n", done  # another user of the system, same user of the proxy


def test_who_is_right_is_never_limited(egret):
    """Many more connections than `auth_guesses`, of one user from one address; and one that is wrong now and then."""
    held = []
    for _ in range(10 * BURST):
        sock = connect(egret.address)
        sock.sendall(login("anna", "secret"))
        assert sock.recv(100) == RIGHT
        held.append(sock)
    for sock in held:
        sock.close()
    for _ in range(BURST - 1):
        assert ask(egret.address, login("anna", "wrong")) == WRONG
    assert ask(egret.address, login("anna", "secret")) == RIGHT


def test_guesses_are_counted_and_logged_with_a_limit(egret):
    errors = egret.told("auth_errors")
    with contextlib.ExitStack() as stack:
        attackers = [stack.enter_context(Attacker(connect(egret.address), [login(f"user{n}\x1b[31m", "wrong")] * GUESSES)) for n in range(40)]
        wait_for(lambda: all(len(each.answers) >= BURST * len(WRONG) for each in attackers), "the bursts to be answered")
        assert egret.told("auth_errors") - errors == 40 * BURST
    log = egret.proxies[0].log(1_000_000)
    assert 1 <= log.count("[authentication_failed]") <= 5 * (1 + log.count("withheld")), log
    assert re.search(r"warning: a client at 127\.0\.0\.1 gave a wrong password, or a wrong name: user\d+", log), log
    assert "\x1b" not in log and "secret" not in log and " wrong\n" not in log


def test_the_end_waits_for_no_guess(egret):
    """Though the next guess may be made in an hour."""
    with Attacker(connect(egret.address), [login("anna", f"guess{n}") for n in range(GUESSES)]) as attacker:
        wait_for(lambda: len(attacker.answers) >= BURST * len(WRONG), "the burst to be answered")
        egret.proxies[0].signal(15)
        assert egret.proxies[0].wait() == 0
    egret.start_proxy(0)


def test_after_the_interval_another_guess_is_answered(tmp_path):
    server = Guarded(tmp_path, auth_guess_interval="1ms")
    try:
        with Attacker(connect(server.address), [login("anna", f"guess{n}") for n in range(4 * BURST)] + [login("anna", "secret")]) as attacker:
            wait_for(lambda: attacker.answers == WRONG * 4 * BURST + RIGHT, "all to be answered, in order")
    finally:
        server.stop()
