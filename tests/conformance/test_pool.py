"""A pool of several backends: keys are where libmemcached looks for them, and a backend that dies takes only its own along."""

import collections
import contextlib
import random
import re
import signal
import threading

import pytest

from bystander import Bystander
from dialog import Case, converse, show
from servers import SLACK, SUT, EgretPool, ask, connect, stats_of, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="needs backends of our own")

UNAVAILABLE = b"SERVER_ERROR backend unavailable\r\n"


@contextlib.contextmanager
def pool_of(*arguments, **options):
    server = EgretPool(*arguments, **options)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def pool():
    """Three backends of unequal weight that stay up, and a proxy in front of each alone."""
    with pool_of(weights=[1, 2, 3]) as server:
        server.lone = [server.add_lone_proxy(number) for number in range(3)]
        yield server
        server.check_alive()


@pytest.fixture
def mortal():
    """Three backends that a test may kill."""
    with pool_of() as server:
        yield server


# --- small clients

def talk(address, text, end):
    (answer, _), = converse(address, [Case(text)])
    assert answer.endswith(end), show(answer)
    return answer


def store(address, keys, value=b"v"):
    text = b"".join(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value) for key in keys)
    answer = converse(address, [Case(text)])[0][0]
    assert answer == b"STORED\r\n" * len(keys), show(answer)


def held(address, keys):
    """Those of the keys that are found, in the order asked for."""
    answer = talk(address, b"get " + b" ".join(keys) + b"\r\n", b"END\r\n")
    return re.findall(rb"VALUE (\S+) ", answer)


def homes(server, count=200):
    """Which backend each of some keys belongs to: key lists by backend. The pool must be up."""
    keys = [b"key%d" % number for number in range(count)]
    store(server.address, keys)
    found = [held(server.add_lone_proxy(number), keys) for number in range(len(server.names))]
    assert sorted(sum(found, [])) == sorted(keys)
    return found


def is_up(server, count):
    """Whether so many backends are reached, whichever worker a connection meets."""
    return all(int(stats_of(server.address)["egret_backends_up"]) == count for _ in range(6))


def served(address, key):
    """Waits until each worker has its session with the key's backend again."""
    def answers():
        return all(ask(address, b"get %s\r\n" % key).startswith((b"END", b"VALUE")) for _ in range(8))
    wait_for(answers, f"{key!r} to be served again")


# --- where keys are

def test_every_key_is_on_one_backend_and_shares_follow_weights(pool):
    keys = [b"spread%d" % number for number in range(3000)]
    store(pool.address, keys)
    found = [held(address, keys) for address in pool.lone]
    assert sorted(sum(found, [])) == sorted(keys)
    assert held(pool.address, keys) == keys
    shares = [len(some) / len(keys) for some in found]
    for share, wanted in zip(shares, [1 / 6, 2 / 6, 3 / 6]):
        assert abs(share - wanted) < 0.1, shares


@pytest.mark.parametrize("weights", [[1, 1, 1], [1, 2, 5]])
def test_a_libmemcached_client_and_the_pool_agree_on_every_key(weights):
    """The same backends, once as three memcacheds of a pylibmc client with ketama_weighted, once as the pool of a proxy that was
    given their names: whatever one stores, the other finds."""
    pylibmc = pytest.importorskip("pylibmc")
    with pool_of(weights=weights, proxies=0) as server:
        lone = [server.add_lone_proxy(number) for number in range(3)]
        server.names = [f"{host}:{port}" for host, port in lone]
        whole = server.addresses[server.add_proxy()]
        client = pylibmc.Client([f"{name}:{weight}" for name, weight in zip(server.names, weights)], behaviors={"ketama_weighted": True})
        keys = ["user:%d" % number for number in range(2000)]
        for key in keys:
            assert client.set(key, key.upper())
        answer = talk(whole, b"get " + " ".join(keys).encode() + b"\r\n", b"END\r\n")
        assert answer == b"".join(b"VALUE %s 16 %d\r\n%s\r\n" % (key.encode(), len(key), key.upper().encode()) for key in keys) + b"END\r\n"
        more = [b"session/%d" % number for number in range(2000)]
        store(whole, more)
        assert len(client.get_multi([key.decode() for key in more])) == len(more)
        assert min(len(held(address, more)) for address in lone) > 0


def test_the_order_of_the_pool_does_not_matter(pool):
    """A proxy whose configuration lists the same backends the other way round finds every key."""
    keys = [b"turned%d" % number for number in range(500)]
    store(pool.address, keys)
    turned = ",".join(reversed(pool.backends_of_proxy(0).split(",")))
    pool.proxy_options["backends"] = turned
    try:
        index = pool.add_proxy()
    finally:
        del pool.proxy_options["backends"]
    assert held(pool.addresses[index], keys) == keys


# --- one command, several backends

def test_multigets_keep_the_order_of_their_keys(pool):
    rng = random.Random(3)
    values = {b"multi%d" % number: b"%d." % number * rng.choice([1, 100, 3000, 60_000]) for number in range(150)}
    for key, value in values.items():
        converse(pool.address, [Case(b"set %s 7 0 %d\r\n%s\r\n" % (key, len(value), value))])
    known = list(values)
    cases, wanted = [], []
    for _ in range(40):
        asked = [rng.choice(known) if rng.random() < 0.7 else b"nothing%d" % rng.randrange(1000) for _ in range(rng.choice([1, 2, 10, 100]))]
        cases.append(Case(b"get " + b" ".join(asked) + b"\r\nversion\r\n"))
        wanted.append(b"".join(b"VALUE %s 7 %d\r\n%s\r\n" % (key, len(values[key]), values[key]) for key in asked if key in values)
                      + b"END\r\nVERSION 1.6.45\r\n")
    for (answer, _), right in zip(converse(pool.address, cases), wanted):
        assert answer == right, f"{show(right)}\n{show(answer)}"


def test_large_values_on_every_backend_at_once(pool):
    """Uploads and chunked gets of many connections cross each other; each backend has its share of them."""
    rng = random.Random(4)
    values = {b"large%d" % number: bytes([97 + number % 26]) * rng.randrange(100_000, 1_000_000) for number in range(24)}
    cases = [Case([b"set %s 0 0 %d\r\n" % (key, len(value)) + value[:50_000], value[50_000:] + b"\r\nget %s\r\n" % key])
             for key, value in values.items()]
    for (answer, _), (key, value) in zip(converse(pool.address, cases), values.items()):
        assert answer == b"STORED\r\nVALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(value), value), show(answer)
    whole = talk(pool.address, b"get " + b" ".join(values) + b"\r\n", b"END\r\n")
    assert whole == b"".join(b"VALUE %s 0 %d\r\n%s\r\n" % (key, len(value), value) for key, value in values.items()) + b"END\r\n"
    assert all(held(address, list(values)) for address in pool.lone)


def test_item_size_max_is_the_key_s_own_backend_s():
    with pool_of(each=[{"item_size_max": "64KiB"}, {}, {"item_size_max": "4MiB"}]) as server:
        found = homes(server)
        limits = [64 << 10, 1 << 20, 4 << 20]
        for keys, limit in zip(found, limits):
            for size, fits in ((limit - 2000, True), (limit + 1, False)):
                text = b"set %s 0 0 %d\r\n%s\r\n" % (keys[0], size, b"x" * size)
                (answer, _), = converse(server.address, [Case(text)])
                assert answer == (b"STORED\r\n" if fits else b"SERVER_ERROR object too large for cache\r\n"), (limit, size, answer)
        assert stats_of(server.address, b"settings")["item_size_max"] == str(64 << 10)  # what every backend takes


# --- statistics and flush_all

def test_stats_are_sums_over_the_pool(pool):
    assert talk(pool.address, b"flush_all\r\n", b"\r\n") == b"OK\r\n"
    assert talk(pool.address, b"stats reset\r\n", b"\r\n") == b"RESET\r\n"
    keys = [b"count%d" % number for number in range(600)]
    store(pool.address, keys)
    held(pool.address, keys + [b"missing%d" % number for number in range(100)])
    stats = stats_of(pool.address)
    wanted = {"cmd_set": 600, "cmd_get": 700, "get_hits": 600, "get_misses": 100, "total_items": 600,
              "limit_maxbytes": 3 << 28, "egret_backends": 3, "egret_backends_up": 3}
    assert {name: int(stats[name]) for name in wanted} == wanted
    alone = [stats_of(address) for address in pool.lone]
    for name in ("cmd_set", "curr_items", "bytes", "limit_maxbytes"):
        assert sum(int(some[name]) for some in alone) == int(stats[name]), name
    assert [some["egret_backends"] for some in alone] == ["1"] * 3


def test_flush_all_reaches_every_backend(pool):
    keys = [b"flushed%d" % number for number in range(300)]
    store(pool.address, keys)
    assert all(held(address, keys) for address in pool.lone)
    text = b"flush_all\r\nget " + b" ".join(keys) + b"\r\nset after 0 0 1\r\na\r\nget after\r\n"
    (answer, _), = converse(pool.address, [Case(text)])
    assert answer == b"OK\r\nEND\r\nSTORED\r\nVALUE after 0 1\r\na\r\nEND\r\n"
    assert not any(held(address, keys) for address in pool.lone)


# --- one backend is not there

class Caller:
    """A client of one key that never gives up its connection. It counts right answers and SERVER_ERROR lines; anything else, and
    an error where there must be none, is a failure."""

    def __init__(self, address, key, size, may_fail):
        self.sock = connect(address, timeout=60)
        self.lines = self.sock.makefile("rb")
        self.key, self.size, self.may_fail = key, size, may_fail
        self.served = self.errors = 0
        self.failure = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _work(self):
        try:
            turn = 0
            while not self.stopping.is_set():
                turn += 1
                value = b"%d." % turn * (self.size // 4)
                self.sock.sendall(b"set %s 0 0 %d\r\n%s\r\nget %s\r\n" % (self.key, len(value), value, self.key))
                stored, found = self.lines.readline(), self.lines.readline()
                if found.startswith(b"VALUE "):
                    found += self.lines.read(int(found.split()[3]) + 2) + self.lines.readline()
                if stored == b"STORED\r\n" and found == b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (self.key, len(value), value):
                    self.served += 1
                else:
                    assert self.may_fail, f"{show(stored)}, then {show(found)}"
                    # The set may have been lost with the backend's memory, or the get with its session.
                    assert stored == b"STORED\r\n" or stored.startswith(b"SERVER_ERROR "), show(stored)
                    assert found == b"END\r\n" or found.startswith((b"SERVER_ERROR ", b"VALUE ")), show(found)
                    self.errors += 1
        except BaseException as failure:  # told to the test's thread
            self.failure = failure

    def stop(self):
        self.stopping.set()
        self.thread.join(60 * SLACK)
        self.sock.close()


@contextlib.contextmanager
def load(server, found, victim):
    callers = [Caller(server.address, keys[number], size, backend == victim)
               for backend, keys in enumerate(found) for number, size in enumerate((10, 3000, 5000, 200_000))]
    try:
        yield callers
    finally:
        for caller in callers:
            caller.stop()
    for caller in callers:
        assert caller.failure is None, f"{caller.key}: {caller.failure!r}"


def progress(callers, count=10):
    """Waits until each has been served so often once more."""
    for caller in callers:
        caller.served = 0
    wait_for(lambda: all(caller.served >= count or caller.failure for caller in callers), "load", 60)


def test_a_backend_killed_under_load_fails_its_own_keys_only(mortal):
    found = homes(mortal)
    victim = 1
    with load(mortal, found, victim) as callers:
        victims = [caller for caller in callers if caller.may_fail]
        others = [caller for caller in callers if not caller.may_fail]
        for _ in range(3):
            progress(callers)
            mortal.kill_backend(victim)
            for caller in victims:
                caller.errors = 0
            wait_for(lambda: all(caller.errors > 0 or caller.failure for caller in victims), "the dead one's keys to fail")
            progress(others)
            assert is_up(mortal, 2)
            mortal.start_backend(victim)
            progress(callers)
    assert is_up(mortal, 3)
    mortal.check_alive()


def test_what_is_answered_while_a_backend_is_down(mortal):
    found = homes(mortal)
    here, gone = found[0][0], found[2][0]
    also_here = found[1][0]
    mortal.kill_backend(2)
    wait_for(lambda: is_up(mortal, 2), "the dead backend to be noticed")
    text = b"".join([
        b"get %s\r\n" % gone,
        b"get %s %s\r\n" % (here, also_here),
        b"get %s %s %s\r\n" % (here, gone, also_here),  # fails from there on, as one retrieval
        b"get %s" % gone + b" k" * 8300 + b" " + b"x" * 260 + b"\r\n",  # so long that its keys are asked for before the error is read
        b"set %s 0 0 3\r\nnew\r\nset %s 0 0 3\r\nnew\r\n" % (gone, here),
        b"set %s 0 0 9000\r\n%s\r\nset %s 0 0 9000\r\n%s\r\n" % (gone, b"g" * 9000, also_here, b"h" * 9000),
        b"delete %s\r\nincr %s 1\r\ntouch %s 0\r\ngat 0 %s\r\n" % (gone, gone, gone, gone),
        b"set %s 0 0 1 noreply\r\nx\r\nversion\r\nget %s\r\ndelete %s\r\n" % (gone, here, here)])
    (answer, _), = converse(mortal.address, [Case(text)])
    assert answer == b"".join([
        UNAVAILABLE,
        b"VALUE %s 0 1\r\nv\r\nVALUE %s 0 1\r\nv\r\nEND\r\n" % (here, also_here),
        b"VALUE %s 0 1\r\nv\r\n" % here + UNAVAILABLE,
        UNAVAILABLE,
        UNAVAILABLE + b"STORED\r\n",
        UNAVAILABLE + b"STORED\r\n",
        UNAVAILABLE * 4,
        b"VERSION 1.6.45\r\nVALUE %s 0 3\r\nnew\r\nEND\r\nDELETED\r\n" % here]), show(answer, 2000)


def test_stats_and_flush_all_while_a_backend_is_down(mortal):
    found = homes(mortal)
    mortal.kill_backend(2)
    wait_for(lambda: is_up(mortal, 2), "the dead backend to be noticed")
    stats = stats_of(mortal.address)
    assert stats["egret_backends"] == "3"
    assert int(stats["curr_items"]) == len(found[0]) + len(found[1])
    assert int(stats["limit_maxbytes"]) == 2 << 28
    assert int(stats_of(mortal.address, b"settings")["maxbytes"]) == 2 << 28
    assert ask(mortal.address, b"stats reset\r\n") == UNAVAILABLE
    assert stats_of(mortal.address)["cmd_set"] == "0"  # all the same
    # flush_all says that one was not reached; the others have done it.
    (answer, _), = converse(mortal.address, [Case(b"flush_all\r\nget %s %s\r\n" % (found[0][0], found[1][0]))])
    assert answer == UNAVAILABLE + b"END\r\n"
    for number in (0, 1):
        mortal.kill_backend(number)
    wait_for(lambda: is_up(mortal, 0), "the dead backends to be noticed")
    assert int(stats_of(mortal.address)["pid"]) == mortal.proxies[0].pid
    assert ask(mortal.address, b"stats settings\r\n") == UNAVAILABLE
    mortal.start_backend()
    served(mortal.address, found[2][0])
    wait_for(lambda: is_up(mortal, 3), "all to be back")
    assert ask(mortal.address, b"flush_all\r\n") == b"OK\r\n"


def test_a_backend_that_comes_back_has_its_keys_again_and_nobody_took_them(mortal):
    """While it is down nothing of its keys is stored elsewhere; what a stopped process held is there when it goes on."""
    found = homes(mortal)
    key = found[1][0]
    mortal.kill_backend(1)
    wait_for(lambda: is_up(mortal, 2), "the dead backend to be noticed")
    (answer, _), = converse(mortal.address, [Case(b"set %s 0 0 1\r\nx\r\n" % key)])
    assert answer == UNAVAILABLE
    mortal.start_backend(1)
    for address in (mortal.address, mortal.addresses[2]):  # the second is the lone proxy of backend 1
        served(address, key)
    assert ask(mortal.address, b"get %s\r\n" % key) == b"END\r\n"
    store(mortal.address, found[1])
    assert held(mortal.addresses[2], found[1]) == found[1]
    assert held(mortal.addresses[1], found[1]) == []
    assert held(mortal.address, found[0]) == found[0]


def test_a_backend_that_hangs_is_waited_for_by_its_own_keys_only():
    """SIGSTOP: sessions stay open, ops time out. Clients of other keys notice nothing, whatever the hanging one holds back."""
    with pool_of(proxy={"op_timeout": "1s"}) as server:
        found = homes(server)
        victim = 0
        others = [keys[0] for number, keys in enumerate(found) if number != victim]
        socks = [connect(server.address, timeout=60) for _ in range(40)]
        server.backends[victim].halt()
        try:
            for number, sock in enumerate(socks):
                key = found[victim][number]
                value = b"w" * (300_000 if number % 4 == 0 else 2000)
                sock.sendall((b"get %s\r\n" % key) * 20 + b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value) if number % 2 else
                             b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
            for _ in range(100):
                (answer, _), = converse(server.address, [Case(b"set %s 0 0 2\r\nok\r\nget %s %s\r\n" % (others[0], *others))])
                assert answer.startswith(b"STORED\r\nVALUE %s 0 2\r\nok\r\n" % others[0]), show(answer)
            (answer, _), = converse(server.address, [Case(b"flush_all\r\nget %s %s\r\n" % tuple(others))])
            assert re.fullmatch(rb"SERVER_ERROR backend [^\r]*\r\nEND\r\n", answer), show(answer)
            for sock in socks:
                assert sock.recv(100).startswith(b"SERVER_ERROR ")
        finally:
            server.backends[victim].signal(signal.SIGCONT)
            for sock in socks:
                sock.close()
        served(server.address, found[victim][0])
        wait_for(lambda: is_up(server, 3), "all to be back")
        server.check_alive()


def test_the_proxy_starts_with_a_backend_missing():
    with pool_of(start=False) as server:
        server.start_backend(0)
        server.start_backend(2)
        server.add_proxy(ready=False)

        def answers():
            try:
                return is_up(server, 2)
            except (OSError, KeyError):
                return False
        wait_for(answers, "two of three")
        wanted = collections.Counter()
        for number in range(60):
            wanted[ask(server.address, b"set early%d 0 0 1\r\na\r\n" % number)] += 1
        assert set(wanted) == {b"STORED\r\n", UNAVAILABLE}, wanted
        server.start_backend(1)
        wait_for(lambda: is_up(server, 3), "three of three")
        assert server.wait_ready(0)
        for number in range(60):
            assert ask(server.address, b"set early%d 0 0 1\r\na\r\n" % number) == b"STORED\r\n"


def test_bystanders_of_healthy_backends_while_another_flaps(mortal):
    """Twenty deaths of one backend; a client whose key is elsewhere is served all the while, multigets included."""
    lone = [mortal.add_lone_proxy(number) for number in range(3)]
    store(mortal.address, [b"bystander", b"nothing"])
    victim = next(number for number, address in enumerate(lone) if not held(address, [b"bystander", b"nothing"]))
    converse(mortal.address, [Case(b"delete nothing\r\n")])
    with Bystander(mortal.address) as bystander:
        for _ in range(20):
            mortal.kill_backend(victim)
            wait_for(lambda: is_up(mortal, 2), "the death to be noticed")
            mortal.start_backend(victim)
            wait_for(lambda: is_up(mortal, 3), "the return")
            assert bystander.failure is None, repr(bystander.failure)
    mortal.check_alive()
