"""failover: gutter. While an owner is absent others take its keys; when it is back nothing is read that is older than what was
acknowledged meanwhile, and no request fails at its return."""

import contextlib
import itertools
import os
import re
import signal
import subprocess
import tempfile
import threading

import pytest

from servers import SUT, EgretPool, ask, connect, page_of, stats_of, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="needs backends of our own")

OWNERS = ["one", "two", "three"]
GUTTER = ["spare1", "spare2"]
BIG = 300_000


class GutterPool(EgretPool):
    """Three owners and a gutter of two. A proxy in `cut` reaches owner "two" by a path of its own only, which the test makes
    and removes: it begins without it."""

    def __init__(self, cut=(), failover="gutter", backend=None, each=None, owners=OWNERS, **proxy):
        self.cut = set(cut)
        self.owners = owners
        super().__init__(owners + GUTTER, backend=backend, each=each, proxies=0,
                         proxy={"failover": failover, "op_timeout": "500ms", "reconnect_max": "100ms", **proxy})
        self.proxy_options["gutter"] = ",".join(f"{self.address_of_backend(number)} name={self.names[number]}" for number in (len(owners), len(owners) + 1))

    def proxy_argv(self, index):
        argv = super().proxy_argv(index)
        if index not in self.alone:
            return argv
        return argv + ["--set", "failover=none", "--set", "gutter="]  # one of the gutter may be all that it has

    def own_path(self, index):
        return self.directory / f"way{index}.sock"

    def backends_of_proxy(self, index):
        if index in self.alone:
            return super().backends_of_proxy(index)
        addresses = [self.address_of_backend(number) for number in range(len(self.owners))]
        if index in self.cut:
            addresses[1] = f"shm:{self.own_path(index)}"
        return ",".join(f"{address} name={name}" for address, name in zip(addresses, self.owners))

    def join(self, index):
        """From now on this proxy reaches owner "two"."""
        os.symlink(self.address_of_backend(1).removeprefix("shm:"), self.own_path(index))

    def log_of(self, index=0):
        return self.proxies[index].log(1 << 20)

    def times(self, event, index=0):
        return len(re.findall(rf"\[{event}\]$", self.log_of(index), re.M))

    def wait_times(self, event, times=1, index=0):
        try:
            wait_for(lambda: self.times(event, index) >= times, f"{event}, {times} times")
        except TimeoutError as late:
            raise AssertionError(f"{late}\n{self.log_of(index)}") from None

    def is_complete(self, index=0):
        return all(stats_of(self.addresses[index])["egret_backends_up"] == str(len(self.owners)) for _ in range(6))


@contextlib.contextmanager
def pool_of(proxies=1, **arguments):
    server = GutterPool(**arguments)
    try:
        for _ in range(proxies):
            server.add_proxy()
        yield server
    finally:
        server.stop()


def one_of_two(server, count=40, prefix=b"key"):
    """Keys that owner "two" owns, found by what it holds. The pool must be up."""
    keys = [b"%s%d" % (prefix, number) for number in range(6 * count)]
    for key in keys:
        assert put(server.address, key, b"old") == b"STORED\r\n"
    lone = server.add_lone_proxy(1)
    own = [key for key in keys if value(lone, key) == b"old"]
    assert len(own) >= count
    return own[:count]


def put(address, key, data, exptime=0):
    return ask(address, b"set %s 0 %d %d\r\n%s\r\n" % (key, exptime, len(data), data), timeout=60)


def value(address, key):
    """None: a miss."""
    answer = ask(address, b"get %s\r\n" % key, b"\r\n", timeout=60)
    if answer == b"END\r\n":
        return None
    assert answer.startswith(b"VALUE "), answer
    if not answer.endswith(b"END\r\n"):
        answer = ask(address, b"get %s\r\n" % key, b"END\r\n", timeout=60)
    return answer.split(b"\r\n", 1)[1].removesuffix(b"\r\nEND\r\n")


def is_served(address, keys):
    return all(ask(address, b"get %s\r\n" % key, timeout=60).startswith((b"END", b"VALUE")) for key in keys)


def change_everything(address, keys):
    """Each key by another kind of request, all acknowledged. What may be read of each afterwards: a miss, or one of these."""
    now = {}
    kinds = itertools.cycle(["set", "delete", "incr", "touch", "append", "big", "add", "cas", "meta", "gat"])
    for key, kind in zip(keys, kinds):
        if kind == "set":
            assert put(address, key, b"new") == b"STORED\r\n"
            now[key] = {b"new"}
        elif kind == "delete":
            assert ask(address, b"delete %s\r\n" % key) in (b"DELETED\r\n", b"NOT_FOUND\r\n")
            now[key] = set()
        elif kind == "incr":
            assert put(address, key, b"5") == b"STORED\r\n"
            assert ask(address, b"incr %s 2\r\n" % key) == b"7\r\n"
            now[key] = {b"7"}
        elif kind == "touch":
            assert put(address, key, b"brief") == b"STORED\r\n"
            assert ask(address, b"touch %s -1\r\n" % key) == b"TOUCHED\r\n"
            now[key] = set()
        elif kind == "append":
            assert put(address, key, b"a") == b"STORED\r\n"
            assert ask(address, b"append %s 0 0 1\r\nb\r\n" % key) == b"STORED\r\n"
            now[key] = {b"ab"}
        elif kind == "big":
            assert put(address, key, b"B" * BIG) == b"STORED\r\n"
            now[key] = {b"B" * BIG}
        elif kind == "add":
            assert ask(address, b"add %s 0 0 5\r\nadded\r\n" % key) == b"STORED\r\n"
            now[key] = {b"added"}
        elif kind == "cas":
            assert put(address, key, b"first") == b"STORED\r\n"
            unique = ask(address, b"gets %s\r\n" % key, b"END\r\n").split(b" ")[4].split(b"\r\n")[0]
            assert ask(address, b"cas %s 0 0 3 %s\r\ncas\r\n" % (key, unique)) == b"STORED\r\n"
            now[key] = {b"cas"}
        elif kind == "meta":
            assert ask(address, b"ms %s 4 T0\r\nmeta\r\n" % key) == b"HD\r\n"
            now[key] = {b"meta"}
        else:
            assert put(address, key, b"gone") == b"STORED\r\n"
            ask(address, b"gat -1 %s\r\n" % key, b"END\r\n")
            now[key] = set()
    return now


def check_nothing_old(address, now):
    wrong = {key: found[:20] for key, allowed in now.items() if (found := value(address, key)) is not None and found not in allowed}
    assert not wrong, wrong


@contextlib.contextmanager
def asking(address, keys):
    """Requests for these all the while, by several clients; none may be answered by an error."""
    over, errors = threading.Event(), []

    def work():
        try:
            with connect(address, 60) as sock:
                lines = sock.makefile("rb")
                while not over.is_set():
                    for key in keys:
                        sock.sendall(b"set %s 0 0 1\r\nx\r\nget %s\r\n" % (key, key))
                        line = lines.readline()
                        if line != b"STORED\r\n":
                            errors.append(line)
                        while (line := lines.readline()) != b"END\r\n":
                            if not line.startswith((b"VALUE", b"x")):
                                errors.append(line)
                                break
        except OSError as error:
            errors.append(error)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield errors
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not errors, errors[:5]


# --- an owner that is absent

def test_keys_of_a_killed_owner_are_served():
    with pool_of() as server:
        own = one_of_two(server)
        server.kill_backend(1)
        server.wait_times("failover_begun")
        wait_for(lambda: is_served(server.address, own), "the gutter to serve")
        assert all(value(server.address, key) is None for key in own), "the gutter begins empty"
        now = change_everything(server.address, own)
        check_nothing_old(server.address, now)
        assert value(server.address, own[0]) == b"new"
        with asking(server.address, [b"%s:live" % key for key in own[:4]]):
            server.start_backend(1)
            server.wait_times("failover_over")
            wait_for(server.is_complete, "all owners")
        check_nothing_old(server.address, now)


def test_an_owner_that_stood_still_serves_nothing_old():
    with pool_of() as server:
        own = one_of_two(server)
        server.backends[1].halt()
        try:
            wait_for(lambda: not ask(server.address, b"get %s\r\n" % own[0], timeout=60).startswith(b"SERVER_ERROR"), "the gutter to serve")
            wait_for(lambda: is_served(server.address, own), "the gutter to serve all")
            now = change_everything(server.address, own[:-5])
            check_nothing_old(server.address, now)
        finally:
            with asking(server.address, [b"%s:live" % key for key in own[:4]]):
                server.backends[1].signal(signal.SIGCONT)
                server.wait_times("failover_over")
                wait_for(server.is_complete, "all owners")
        check_nothing_old(server.address, now)
        assert any(value(server.address, key) == b"old" for key in own[-5:]), "what nobody has changed is still there"
        line = re.search(r".*\[failover_over\]$", server.log_of(), re.M)[0]
        assert re.search(r"; purged on it: \d+ keys", line), line


def test_an_owner_that_restarts_with_all_that_it_held_serves_nothing_old():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as kept, pool_of(each=[{}, {"warm_restart": kept}, {}, {}, {}]) as server:
        own = one_of_two(server)
        assert server.backends[1].stop() == 0
        server.wait_times("failover_begun")
        wait_for(lambda: is_served(server.address, own), "the gutter to serve")
        now = change_everything(server.address, own[:-5])
        with asking(server.address, [b"%s:live" % key for key in own[:4]]):
            server.start_backend(1)
            server.wait_times("failover_over")
            wait_for(server.is_complete, "all owners")
        check_nothing_old(server.address, now)
        assert [value(server.address, key) for key in own[-5:]] == [b"old"] * 5, "it has restarted warm"


def test_the_gutter_takes_the_keys_of_a_pool_of_one_and_readyz_says_so():
    with pool_of(owners=["one"], admin="127.0.0.1:0") as server:
        keys = [b"key%d" % number for number in range(20)]
        for key in keys:
            assert put(server.address, key, b"old") == b"STORED\r\n"
        (proxy,) = server.proxies
        assert page_of(proxy, "/readyz/all")[0] == 200
        server.backends[0].halt()
        try:
            wait_for(lambda: is_served(server.address, keys), "the gutter to serve")
            status, said = page_of(proxy, "/readyz")
            assert status == 200 and re.search(r"^backend one .*: down, .*; ejected: it does not answer in time; the gutter takes its keys$", said, re.M), said
            assert page_of(proxy, "/readyz/all")[0] == 503
            now = change_everything(server.address, keys[:-5])
        finally:
            server.backends[0].signal(signal.SIGCONT)
        server.wait_times("failover_over")
        wait_for(server.is_complete, "the owner")
        check_nothing_old(server.address, now)
        assert [value(server.address, key) for key in keys[-5:]] == [b"old"] * 5, "what nobody has changed is still there"
        assert "ejected" not in page_of(proxy, "/readyz")[1]


def test_an_absence_twice_over_shows_nothing_of_the_first():
    with pool_of() as server:
        own = one_of_two(server)
        for turn in range(1, 3):
            server.backends[1].halt()
            try:
                wait_for(lambda: is_served(server.address, own), "the gutter to serve")
                assert value(server.address, own[0]) is None, turn
                assert put(server.address, own[0], b"in the gutter %d" % turn) == b"STORED\r\n"
            finally:
                server.backends[1].signal(signal.SIGCONT)
            server.wait_times("failover_over", turn)
            wait_for(server.is_complete, "all owners")
            assert value(server.address, own[0]) is None
            assert put(server.address, own[0], b"at home %d" % turn) == b"STORED\r\n"


def test_flush_all_reaches_an_absent_owner_when_it_is_back():
    with pool_of() as server:
        own = one_of_two(server)
        server.backends[1].halt()
        try:
            wait_for(lambda: is_served(server.address, own), "the gutter to serve")
            assert put(server.address, own[0], b"new") == b"STORED\r\n"
            assert ask(server.address, b"flush_all\r\n") == b"OK\r\n"
            assert value(server.address, own[0]) is None
            assert ask(server.address, b"flush_all 100\r\n").startswith(b"SERVER_ERROR"), "nobody can do that in its place"
        finally:
            server.backends[1].signal(signal.SIGCONT)
        server.wait_times("failover_over")
        wait_for(server.is_complete, "all owners")
        assert all(value(server.address, key) is None for key in own)
        assert "; purged on it: everything" in server.log_of()


def test_what_the_gutter_stores_expires_soon():
    with pool_of(gutter_ttl="1s") as server:
        own = one_of_two(server)
        server.kill_backend(1)
        wait_for(lambda: is_served(server.address, own), "the gutter to serve")
        assert put(server.address, own[0], b"new", exptime=1000) == b"STORED\r\n"
        assert ask(server.address, b"mg %s t\r\n" % own[0]) in (b"HD t1\r\n", b"HD t0\r\n", b"EN\r\n")
        wait_for(lambda: value(server.address, own[0]) is None, "its end")


def test_a_gutter_that_forgets_has_the_owner_flushed():
    """It died and came back meanwhile: which keys were changed is not known."""
    with pool_of() as server:
        own = one_of_two(server)
        server.backends[1].halt()
        try:
            wait_for(lambda: is_served(server.address, own), "the gutter to serve")
            for key in own:
                assert put(server.address, key, b"new") == b"STORED\r\n"
            for number in (3, 4):
                server.kill_backend(number)
                server.start_backend(number)
            wait_for(lambda: is_served(server.address, own), "the gutter to serve again")
            assert all(value(server.address, key) is None for key in own)
        finally:
            server.backends[1].signal(signal.SIGCONT)
        server.wait_times("failover_over")
        wait_for(server.is_complete, "all owners")
        assert all(value(server.address, key) is None for key in own)


def test_without_a_gutter_that_can_be_reached_keys_fail_and_the_owner_returns():
    with pool_of() as server:
        own = one_of_two(server)
        for number in (3, 4, 1):
            server.kill_backend(number)
        wait_for(lambda: ask(server.address, b"get %s\r\n" % own[0], timeout=60).startswith(b"SERVER_ERROR backend unavailable"), "the verdict")
        server.start_backend(1)
        wait_for(server.is_complete, "all owners")
        wait_for(lambda: is_served(server.address, own), "its keys")


# --- what operators are told

def told(server, *arguments):
    return subprocess.run(server.proxy_argv(0) + list(arguments), capture_output=True, text=True, timeout=60).stdout


def test_the_command_line_knows_who_stands_in():
    with pool_of() as server:
        own = one_of_two(server)
        assert re.search(r"^gutter: 2 backends, for at most 60 s\n  spare1 \(\S+\)\n  spare2 \(\S+\)$", told(server, "--check-config"), re.M)
        server.kill_backend(1)
        wait_for(lambda: is_served(server.address, own), "the gutter to serve")
        alone = {name: server.add_lone_proxy(number) for number, name in ((3, "spare1"), (4, "spare2"))}
        seen = set()
        for key in own[:12]:
            assert put(server.address, key, b"here") == b"STORED\r\n"
            stand_in = re.search(r"while it is ejected: (spare\d) ", told(server, "--where", key.decode()))[1]
            assert {name for name, address in alone.items() if value(address, key) == b"here"} == {stand_in}
            seen.add(stand_in)
        assert seen == set(alone)
        server.kill_backend(4)
        said = told(server, "--doctor")
        assert re.search(r"gutter spare1 .*gives a session", said), said
        assert re.search(r"gutter spare2 .*cannot connect", said), said


def test_that_one_of_the_gutter_does_not_stand_in_is_logged_whatever_else_was_logged_of_it():
    with pool_of() as server:
        server.kill_backend(4)
        wait_for(lambda: re.search(r"spare2 .*\[no_session\]$", server.log_of(), re.M), "the workers to say that it is gone")
        server.kill_backend(1)
        server.wait_times("no_stand_in")
        lines = server.log_of().splitlines()
        first = next(number for number, line in enumerate(lines) if line.endswith("[no_stand_in]"))
        assert not lines[first - 1].endswith("[withheld]"), "its first line was not the first to be written"


def rights(*words):
    return {"rights": f"uid={os.geteuid()}:{'+'.join(words)}"}


@pytest.mark.parametrize("missing", ["read", "write", "flush", "dump"])
def test_doctor_says_when_one_of_the_gutter_gives_too_few_rights_to_stand_in(missing):
    few = rights(*({"read", "write", "flush", "dump"} - {missing}))
    with pool_of(each=[{}, {}, {}, rights("read", "write", "flush", "dump"), few]) as server:
        wait_for(lambda: "cannot connect" not in told(server, "--doctor"), "all to run")
        said = told(server, "--doctor")
        assert re.search(r"^ok   gutter spare1 .*can stand in: .*rights read\+write\+flush\+dump$", said, re.M), said
        assert re.search(r"^FAIL gutter spare2 .*may not stand in for others: .* => give this proxy the rights read, write, flush and dump", said, re.M), said
        assert len(re.findall(r"^ok   backend ", said, re.M)) == 3, said


def test_doctor_says_when_an_owner_could_not_be_purged_or_told_of_changes():
    with pool_of(each=[rights("read", "write", "dump"), {}, {}, {}, {}]) as server:
        said = told(server, "--doctor")
        assert re.search(r"^FAIL backend one .*may not be purged: .* => give this proxy the rights write and flush", said, re.M), said
        assert len(re.findall(r"^ok   backend ", said, re.M)) == 2, said
        alone = told(server, "--doctor", "--set", "failover=none")
        assert re.search(r"^warn backend one .*no right to be told of changes of the backends: .* => give this proxy the rights", alone, re.M), alone
        assert "FAIL backend" not in alone
        untold = told(server, "--doctor", "--set", "failover=none", "--set", "warm_for=0s", "--set", "purge_moved=false")
        assert len(re.findall(r"^ok   backend ", untold, re.M)) == 3, untold


# --- an owner that only one of two proxies has lost

def test_a_proxy_that_was_cut_off_serves_nothing_older_than_it_has_acknowledged():
    with pool_of(proxies=2, cut=[1]) as server:
        own = one_of_two(server)
        near, far = server.addresses[:2]
        server.wait_times("failover_begun", index=1)
        wait_for(lambda: is_served(far, own), "the gutter to serve")
        now = change_everything(far, own)
        assert value(near, own[0]) == b"old"  # for a while: it has not lost the owner
        with asking(far, [b"%s:live" % key for key in own[:4]]):
            server.join(1)
            server.wait_times("failover_over", index=1)
            wait_for(lambda: server.is_complete(1), "all owners")
        check_nothing_old(far, now)
        check_nothing_old(near, now)


def test_a_proxy_that_never_lost_the_owner_reads_nothing_old_for_long():
    with pool_of(proxies=2, cut=[1]) as server:
        own = one_of_two(server)
        near, far = server.addresses[:2]
        server.wait_times("failover_begun", index=1)
        wait_for(lambda: is_served(far, own), "the gutter to serve")
        for key in own[:-5]:
            assert put(far, key, b"new") == b"STORED\r\n"
        wait_for(lambda: all(value(near, key) is None for key in own[:-5]), "the near proxy to purge what the far one has changed")
        assert [value(near, key) for key in own[-5:]] == [b"old"] * 5
        assert value(far, own[0]) == b"new"
        assert put(near, own[0], b"newer") == b"STORED\r\n"
        assert ask(far, b"flush_all\r\n") == b"OK\r\n"
        wait_for(lambda: all(value(near, key) is None for key in own), "what the far one has flushed to be purged")


def test_an_upload_that_ends_after_the_return_is_not_followed_by_an_older_value():
    with pool_of() as server:
        own = one_of_two(server)
        server.backends[1].halt()
        try:
            wait_for(lambda: is_served(server.address, own), "the gutter to serve")
            slow = connect(server.address, 60)
            slow.sendall(b"set %s 0 0 %d\r\n" % (own[0], BIG) + b"u" * (BIG // 2))
            wait_for(lambda: is_served(server.address, own), "some time to pass")
        finally:
            server.backends[1].signal(signal.SIGCONT)
        server.wait_times("failover_over")
        wait_for(server.is_complete, "all owners")
        with slow:
            slow.sendall(b"u" * (BIG - BIG // 2) + b"\r\n")
            assert slow.recv(100) == b"STORED\r\n"
        assert value(server.address, own[0]) != b"old"
