"""Members come and go, and keys move away and come back: no backend serves a value that was overwritten elsewhere meanwhile."""

import contextlib
import re
import signal
import urllib.error
import urllib.request

import pytest

from doctor import doctor
from servers import SUT, connect, stats_of, wait_for
from test_membership import ChangingPool

pytestmark = pytest.mark.skipif(SUT != "egret", reason="needs backends of our own")

KEYS = [b"moved%d" % number for number in range(1000)]


@contextlib.contextmanager
def pool_of(count, **proxy):
    server = ChangingPool(4, proxy={"purge_moved": "true", **proxy})
    try:
        server.change(range(count))
        wait_for(lambda: in_force(server, count), f"{count} members")
        yield server
        server.check_alive()
    finally:
        server.stop()


def log(server):
    return server.proxies[0].log(1 << 20)


def page(admin, path):
    try:
        with urllib.request.urlopen(f"http://{admin}{path}", timeout=30) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.read().decode()


def in_force(server, count):
    """Whether keys go by so many members, at whichever worker."""
    return all(int(stats_of(server.address)["egret_backends"]) == count for _ in range(4))


def change(server, members, out=0):
    """Changes to these members, of whom so many cannot be reached."""
    server.change(members)
    wait_for(lambda: in_force(server, len(members)) and int(stats_of(server.address)["egret_backends_up"]) >= len(members) - out, f"members {members}")


def write(server, text, keys=KEYS):
    with contextlib.closing(connect(server.address)) as sock:
        lines = sock.makefile("rb")
        sock.sendall(b"".join(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(text), text) for key in keys))
        return [key for key in keys if lines.readline() == b"STORED\r\n"]


def read(server, keys=KEYS):
    """What is found: {key: value}. A key whose backend cannot be reached is not."""
    found = {}
    with contextlib.closing(connect(server.address)) as sock:
        lines = sock.makefile("rb")
        sock.sendall(b"".join(b"get %s\r\n" % key for key in keys))
        for key in keys:
            line = lines.readline()
            if line.startswith(b"VALUE"):
                found[key] = lines.readline().rstrip()
                assert lines.readline() == b"END\r\n"
    return found


def old_values(server, written):
    """Values of the first turn, of keys that were written in the second."""
    found = read(server, written)
    return [key for key, value in found.items() if value != b"second"]


def is_whole(server, count):
    return all(int(stats_of(server.address)["egret_backends_up"]) == count for _ in range(6))


@pytest.mark.parametrize("placement", ["ketama", "rendezvous"])
def test_keys_that_come_back_after_a_member_more_have_no_old_values(placement):
    with pool_of(3, placement=placement) as server:
        assert write(server, b"first") == KEYS
        change(server, [0, 1, 2, 3])
        assert write(server, b"second") == KEYS
        change(server, [0, 1, 2])
        assert old_values(server, KEYS) == []
        assert len(read(server)) > 600  # what did not move is there
        assert not re.search(r"\[member_(not_told|held_back)\]", log(server))


def test_a_member_that_left_and_joins_again_has_no_old_values():
    with pool_of(4) as server:
        assert write(server, b"first") == KEYS
        change(server, [0, 1, 2])
        assert write(server, b"second") == KEYS
        change(server, [0, 1, 2, 3])
        assert old_values(server, KEYS) == []


def test_a_list_that_is_replaced_before_backends_are_told_of_it_says_that_the_pool_goes_on():
    with pool_of(2) as server:
        assert write(server, b"first") == KEYS
        change(server, [0])
        assert write(server, b"second") == KEYS
        server.backends[2].halt()  # so the list waits for a session with it
        try:
            server.change([0, 1, 2])
            server.change([1])  # none of those in force
            wait_for(lambda: re.search(r"backend member0 .* is no longer in the pool", log(server)), "the last list")
        finally:
            server.backends[2].signal(signal.SIGCONT)
        assert old_values(server, KEYS) == []


def test_switched_off_backends_keep_everything():
    """The sight of what is prevented: this is the test that shows that the others see it."""
    with pool_of(3, purge_moved="false") as server:
        write(server, b"first")
        change(server, [0, 1, 2, 3])
        write(server, b"second")
        change(server, [0, 1, 2])
        assert len(old_values(server, KEYS)) > 100


def test_a_member_that_stands_still_during_both_changes_and_returns_serves_no_old_value():
    with pool_of(3, op_timeout="500ms") as server:
        assert write(server, b"first") == KEYS
        change(server, [0, 1, 2, 3])
        assert write(server, b"second") == KEYS
        server.backends[1].halt()
        try:
            change(server, [0, 1, 2], out=1)
            assert "[member_held_back]" in log(server)
            assert old_values(server, KEYS) == []
        finally:
            server.backends[1].signal(signal.SIGCONT)
        wait_for(lambda: is_whole(server, 3), "its return")
        assert old_values(server, KEYS) == []
        assert len(read(server)) > 600
        assert re.search(r"backend member1 \(.*\[member_let_in\]", log(server))


def test_who_is_held_back_is_told_by_stats_readyz_and_doctor():
    with pool_of(3, op_timeout="500ms", admin="127.0.0.1:0") as server:
        change(server, [0, 1, 2, 3])
        assert stats_of(server.address)["egret_backends_held_back"] == "0"
        admin = re.search(r"admin address: (\S+)", log(server))[1]
        settings = [f"admin={admin}", f"backends={','.join(server.line(number) for number in range(3))}", "listen=tcp:127.0.0.1:0"]
        held = rf"backend member1 \(\S+\): down, .*, held back until it has been told of a change of the backends"
        server.backends[1].halt()
        try:
            change(server, [0, 1, 2], out=1)
            assert stats_of(server.address)["egret_backends_held_back"] == "1"
            assert re.search(rf"^{held}$", page(admin, "/readyz"), re.M)
            assert re.search(rf"^warn running proxy: {held} => ", doctor("egret-proxy", *settings), re.M)
        finally:
            server.backends[1].signal(signal.SIGCONT)
        wait_for(lambda: is_whole(server, 3), "its return")
        assert stats_of(server.address)["egret_backends_held_back"] == "0"
        assert "held back" not in page(admin, "/readyz") + doctor("egret-proxy", *settings)


def test_a_member_that_stands_still_while_it_leaves_and_joins_again_serves_no_old_value():
    with pool_of(4, op_timeout="500ms") as server:
        assert write(server, b"first") == KEYS
        server.backends[3].halt()
        try:
            change(server, [0, 1, 2])
            assert write(server, b"second") == KEYS
            change(server, [0, 1, 2, 3], out=1)
            assert old_values(server, KEYS) == []
        finally:
            server.backends[3].signal(signal.SIGCONT)
        wait_for(lambda: is_whole(server, 4), "its return")
        assert old_values(server, KEYS) == []
