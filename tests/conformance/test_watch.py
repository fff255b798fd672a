"""watch: log lines of what the clients of a server do, beside a real memcached's."""

import base64
import re
import time

import pytest

import servers
from dialog import Case, converse
from servers import SLACK, ask, connect, wait_for


@pytest.fixture(scope="module")
def pair():
    both = servers.Memcached(), servers.start_subject() if servers.SUT == "egret" else servers.Memcached()
    yield both
    for server in both:
        for daemon in server.daemons():
            daemon.check_alive()
        server.stop()


class Watcher:
    def __init__(self, server, streams=b"", address=None):
        self.sock = connect(address or server.address)
        self.sock.sendall(b"watch" + (b" " + streams if streams else b"") + b"\r\n")
        self.file = self.sock.makefile("rb")
        self.answer = self.file.readline()

    def __enter__(self):
        assert self.answer == b"OK\r\n"
        return self

    def __exit__(self, *_):
        self.file.close()
        self.sock.close()

    def lines(self, until=None, count=None, skips=False):
        """Lines up to the first that contains `until`, or so many of them; without time, number and descriptor. `skips`:
        some may be lost."""
        found = []
        while True:
            line = self.file.readline()
            assert line.endswith(b"\n"), found
            if skips and line.startswith(b"skipped="):
                continue
            match = re.fullmatch(rb"ts=\d+\.\d{1,6} gid=\d+ (.*)\n", line)
            assert match, line
            found.append(re.sub(rb"cfd=\d+", b"cfd=#", match[1]))
            if until in line if until else len(found) == count:
                return found


def comparable(line):
    """Size classes are each server's own; those of nothing are 0."""
    return re.sub(rb"clsid=[1-9]\d*", b"clsid=#", line)


def say_one_by_one(server, commands):
    """Each on a connection of its own, so that workers take turns; and what is said of one is there before the next."""
    for command in commands:
        converse(server.address, [Case(command + b"\r\n")])


MUTATIONS = [
    b"set a 0 0 1\r\n1", b"set a 0 100 1\r\n1", b"add a 0 0 1\r\n1", b"add b 0 7 1\r\n2", b"replace zz 0 0 1\r\n1",
    b"replace a 0 0 2\r\n11", b"cas a 0 0 1 1\r\n4", b"cas nope 0 0 1 1\r\n4", b"ms m1 2\r\nab", b"ms m1 2 T30\r\ncd",
    b"ms m1 1 ME\r\nx", b"set odd/key:%20 0 0 3\r\nabc", b"set noreply 0 0 1 noreply\r\nx",
    b"set %s 0 0 1\r\nx" % (b"#" * 250), b"append a 0 0 3\r\nxyz", b"set neg 0 -1 1\r\nx",
]


def test_mutations(pair):
    heard = []
    for server in pair:
        with Watcher(server, b"mutations") as watcher:
            say_one_by_one(server, MUTATIONS)
            # memcached gathers them by worker, so they come in any order.
            heard.append(sorted(comparable(line) for line in watcher.lines(count=len(MUTATIONS))))
    # A time in the past counts down from when memcached started.
    heard = [[re.sub(rb"ttl=42\d{8}", b"ttl=-", line) for line in lines] for lines in heard]
    assert heard[0] == heard[1]


FETCHES = [b"get none", b"get there", b"gets there none there", b"gat 100 there", b"touch there 100", b"set new 0 0 1\r\n1", b"set there 0 0 5\r\nother",
           b"add newer 0 0 1\r\n1", b"replace none 0 0 1\r\n1", b"cas none 0 0 1 1\r\n1", b"delete new",
           b"delete none", b"ms there 5\r\nthird", b"ms newest 1\r\nx", b"md newest", b"touch none 1",
           b"incr none 1", b"mg there v", b"mg none v", b"mg there k", b"get odd:key"]


def test_fetches_on_every_worker(pair):
    heard = []
    for server in pair:
        converse(server.address, [Case(b"set there 0 0 5\r\nvalue\r\n")])
        with Watcher(server) as watcher:
            say_one_by_one(server, FETCHES)
            heard.append(sorted(comparable(line) for line in watcher.lines(count=len(FETCHES) + 2)))
    assert heard[0] == heard[1]


def test_large_values_are_told_of_once(pair):
    _, subject = pair
    with Watcher(subject, b"fetchers mutations") as watcher:
        say_one_by_one(subject, [b"set big 0 0 300000\r\n" + b"v" * 300_000, b"get big", b"get the-end"])
        lines = watcher.lines(until=b"the-end")
    if not subject.is_egret:
        return
    assert [line.split()[0] for line in lines] == [b"type=item_get", b"type=item_store", b"type=item_get", b"type=item_get"]
    assert b"not_found" in lines[0] and all(line.endswith(b"size=300000") for line in lines[1:3])


def test_values_that_are_streamed_are_told_of_by_their_own_keys(pair):
    """Their commands are long gone from the connection's buffer when the value ends."""
    _, subject = pair
    keys = [b"streamed-%d-" % i + b"k" * (i % 200) for i in range(50)]
    with Watcher(subject, b"mutations") as watcher:
        pipeline = b"".join(b"set %s 0 0 11000 noreply\r\n%s\r\n" % (key, b"v" * 11_000) for key in keys)
        converse(subject.address, [Case(pipeline + b"ms the-end 2 O77\r\nhi\r\n")])
        lines = watcher.lines(count=len(keys) + 1)
    told = [re.search(rb"key=(\S+)", line).group(1) for line in lines]
    assert sorted(told) == sorted([*keys, b"the-end"])


def test_watching_changes_nothing(pair):
    """A value too large is refused, and takes the old one with it only where it does so unwatched."""
    large = b"%s 0 0 2000000%s\r\n" + b"v" * 2_000_000 + b"\r\n"
    heard = []
    for server in pair:
        with Watcher(server, b"mutations fetchers"):
            for name in (b"kept", b"gone"):
                converse(server.address, [Case(b"set %s 0 0 3\r\nold\r\n" % name)])
            heard.append([converse(server.address, [Case(request)]) for request in (
                large % (b"add kept", b""), large % (b"replace kept", b""), large % (b"cas kept", b" 1"), large % (b"set gone", b""),
                b"get kept gone\r\n")])
    assert heard[0] == heard[1]
    assert b"old" in str(heard[1][-1]).encode()


def test_deletions(pair):
    """Newer than 1.6.18. What is marked as stale is not deleted; of what loses its value, an empty item is told of."""
    for server in pair:
        if not server.is_egret and servers.ORACLE_IS_OLD:
            continue
        with Watcher(server, b"deletions") as watcher:
            say_one_by_one(server, [b"set x 0 0 4\r\nvbar", b"delete x", b"delete x", b"set x 0 0 3\r\nfoo", b"md x", b"set x 0 0 3\r\nfoo",
                                    b"md x I", b"md x x", b"md x q", b"set %:b 0 0 1\r\nx", b"md %:b",
                                    b"set the-end 0 0 0\r\n", b"delete the-end noreply\r\nversion"])
            lines = [re.sub(rb"clsid=\d+", b"clsid=#", line) for line in watcher.lines(count=6)]
        # In the order in which memcached's threads are asked for what they have seen.
        wanted = [b"type=deleted key=x cmd=delete clsid=# size=4", b"type=deleted key=x cmd=md clsid=# size=3",
                         b"type=deleted key=x cmd=md clsid=# size=0", b"type=deleted key=x cmd=md clsid=# size=0",
                         b"type=deleted key=%25%3Ab cmd=md clsid=# size=1", b"type=deleted key=the-end cmd=delete clsid=# size=0"]
        assert sorted(lines) == sorted(wanted), server


def test_connections_come_and_go(pair):
    for server in pair:
        with Watcher(server, b"connevents") as watcher:
            with connect(server.address) as client:
                port = client.getsockname()[1]
                client.sendall(b"version\r\n")
                client.recv(100)
                new = watcher.lines(until=b"rport=%d " % port)[-1]
                client.sendall(b"quit\r\n")
                assert client.recv(10) == b""
            gone = watcher.lines(until=b"rport=%d " % port)[-1]
        assert new == b"type=conn_new rip=127.0.0.1 rport=%d transport=tcp cfd=#" % port
        assert gone == b"type=conn_close rip=127.0.0.1 rport=%d transport=tcp reason=normal cfd=#" % port


def test_connections_that_end_in_error(pair):
    for server in pair:
        with Watcher(server, b"connevents") as watcher:
            ask(server.address, b"GET / HTTP/1.1\r\n")
            lines = watcher.lines(until=b"conn_close")
        assert b" reason=error " in lines[-1]


def evicted_key(number):
    """One that would break a line, as a meta command says it."""
    return base64.b64encode(b"evict\n%d" % number)


def test_evictions_of_every_partition():
    servers_ = servers.Memcached(memory_mib=64), (
        servers.Egret(backend={"memory": "64MiB"}) if servers.SUT == "egret" else servers.Memcached(memory_mib=64))
    value = b"v" * 10_000
    forms = []
    for server in servers_:
        try:
            with Watcher(server, b"evictions") as watcher:
                for begin in range(0, 12_000, 1_000):
                    text = b"".join(b"ms %s 10000 b q\r\n%s\r\n" % (evicted_key(n), value) for n in range(begin, begin + 1_000))
                    converse(server.address, [Case(text + b"mn\r\n")])
                line = watcher.lines(until=b"type=eviction", skips=True)[-1]
                found = re.fullmatch(rb"type=eviction key=evict%0A(\d+) fetch=no ttl=-1 la=\d+ clsid=\d+ size=10000", line)
                assert found, line
                assert ask(server.address, b"mg %s b v\r\n" % evicted_key(int(found[1]))) == b"EN\r\n"
                forms.append(line)
            for daemon in server.daemons():
                daemon.check_alive()
        finally:
            server.stop()
    assert len(forms) == 2


def test_a_watcher_that_does_not_read_is_told_what_it_missed_and_holds_up_nobody(pair):
    _, subject = pair
    if not subject.is_egret:
        pytest.skip("its Unix socket is another process's")
    slow = Watcher(subject, b"fetchers", subject.unix_address())  # whose buffers are of a fixed size
    assert slow.answer == b"OK\r\n"
    key = b"k" * 200
    gets = b"".join(b"get %s%d\r\n" % (key, n) for n in range(4_000))
    for _ in range(10):
        ((answer, _),) = converse(subject.address, [Case(gets)])
        assert answer == b"END\r\n" * 4_000
    # The line that says so comes before the next that finds room.
    skipped = 0
    end = time.monotonic() + 30 * SLACK
    while not skipped and time.monotonic() < end:
        line = slow.file.readline()
        if line.startswith(b"skipped="):
            skipped = int(line[8:])
        else:
            assert line.startswith(b"ts=") and b" type=item_get " in line
        if b"gid=" in line and int(line.split(b"gid=")[1].split()[0]) % 200 == 0:
            ask(subject.address, b"get more\r\n")
    slow.file.close()
    slow.sock.close()
    assert skipped > 0


def accepted(server):
    watcher = Watcher(server, b"mutations")
    if watcher.answer == b"OK\r\n":
        return watcher
    watcher.__exit__()
    return None


def test_there_is_an_end_to_watchers(pair):
    for server in pair:
        # Those of the tests before may still be on their way out.
        watchers = [wait_for(lambda: accepted(server), "a watcher") for _ in range(20)]
        with connect(server.address) as late:
            late.sendall(b"watch\r\n")
            assert late.recv(100) == b"WATCHER_TOO_MANY log watcher limit reached\r\n"
        for watcher in watchers:
            watcher.__exit__()

        wait_for(lambda: accepted(server), "room for another").__exit__()


def test_what_a_watcher_says_is_not_listened_to(pair):
    _, subject = pair
    with Watcher(subject, b"mutations") as watcher:
        watcher.sock.sendall(b"set from-watcher 0 0 1\r\nx\r\n")
        converse(subject.address, [Case(b"set the-end 0 0 1\r\nx\r\n")])
        lines = watcher.lines(until=b"the-end")
        assert len(lines) == 1
    assert ask(subject.address, b"get from-watcher\r\n") == b"END\r\n"
