"""The members of a pool change, and the values move with their keys: a client notices neither a miss nor an old value."""

import contextlib
import re
import signal

import pytest

from pool_load import load, progress
from servers import SUT, ask, connect, stats_of, wait_for
from test_membership import ChangingPool

pytestmark = pytest.mark.skipif(SUT != "egret", reason="needs backends of our own")

KEYS = [b"key%d" % number for number in range(120)]
THREE, FOUR = [0, 1, 2], [0, 1, 2, 3]


class WarmPool(ChangingPool):
    """Two proxies that follow the same file."""

    def __init__(self, **options):
        super().__init__(4, proxies=2, proxy={"warm_for": "600s", "large_value_memory": "256MiB", **options})

    def follow(self, members, word):
        """All proxies have changed, and their logs say so."""
        self.members = list(members)
        self.write()
        before = [len(proxy.log(1_000_000)) for proxy in self.proxies]
        for proxy in self.proxies:
            proxy.signal(signal.SIGHUP)
        for proxy, length in zip(self.proxies, before):
            wait_for(lambda: word in proxy.log(1_000_000)[length:], word)

    def begin(self, members):
        """All proxies have changed, and bring values that moved."""
        self.follow(members, "[warm_begun]")


@contextlib.contextmanager
def warm_pool(**options):
    server = WarmPool(**options)
    try:
        server.follow(THREE, "[member_left]" if options.get("warm_for") == "0" else "[warm_begun]")
        wait_for(server.is_settled, "three members")
        yield server
        server.check_alive()
    finally:
        server.stop()


@pytest.fixture
def pool():
    with warm_pool() as server:
        yield server


class Dialogue:
    """One connection, whose requests go out together; answers as (first line, value)."""

    def __init__(self, address):
        self.sock = connect(address, timeout=60)
        self.lines = self.sock.makefile("rb")

    def one(self):
        line = self.lines.readline()
        if line.startswith(b"VALUE "):
            value = self.lines.read(int(line.split()[3]) + 2)[:-2]
            assert self.lines.readline() == b"END\r\n"
            return line.rstrip(), value
        if line.startswith(b"VA "):
            return line.rstrip(), self.lines.read(int(line.split()[1]) + 2)[:-2]
        return line.rstrip(), None

    def each(self, requests):
        self.sock.sendall(b"".join(requests))
        return [self.one() for _ in requests]

    def close(self):
        self.sock.close()


@contextlib.contextmanager
def talk(address):
    with contextlib.closing(Dialogue(address)) as dialogue:
        yield dialogue


def store(address, value_of=lambda key: b"of " + key, flags=7, ttl=0):
    with talk(address) as dialogue:
        requests = [b"set %s %d %d %d\r\n%s\r\n" % (key, flags, ttl, len(value_of(key)), value_of(key)) for key in KEYS]
        assert dialogue.each(requests) == [(b"STORED", None)] * len(KEYS)


def get(address, keys=KEYS):
    with talk(address) as dialogue:
        return dict(zip(keys, dialogue.each([b"get %s\r\n" % key for key in keys])))


def expect_values(address, value_of=lambda key: b"of " + key, flags=7):
    for key, (line, value) in get(address).items():
        assert line == b"VALUE %s %d %d" % (key, flags, len(value_of(key))), line
        assert value == value_of(key), key


def test_values_flags_and_times_to_live_move_with_their_keys(pool):
    store(pool.address, ttl=1000)
    for members in (FOUR, THREE, [3, 1], FOUR):
        pool.begin(members)
        for address in pool.addresses:
            expect_values(address)
        with talk(pool.address) as dialogue:
            for line, _ in dialogue.each([b"mg %s t f\r\n" % key for key in KEYS]):
                left = int(re.fullmatch(rb"HD t(\d+) f7", line)[1])
                assert 900 < left <= 1000, left


@pytest.mark.parametrize("size", [3000, 40_000, 700_000])
def test_larger_values_move_too(pool, size):
    value_of = lambda key: (key + b".") * (size // (len(key) + 1))
    store(pool.address, value_of)
    for members in (FOUR, THREE):
        pool.begin(members)
        expect_values(pool.address, value_of)


def test_members_change_under_load_and_after_the_phase_has_begun_nobody_misses(pool):
    store(pool.address)
    with load(pool) as callers:
        for members in (FOUR, THREE, FOUR):
            pool.begin(members)
            expect_values(pool.address)
            progress(callers, 2)
            misses = [caller.misses for caller in callers]
            progress(callers, 5)
            assert [caller.misses for caller in callers] == misses


# Requests on a key that is there, and what becomes of it: the answer, and the value after it (None: gone).
ON_AN_ITEM = [
    (b"add {key} 0 0 3\r\nnew\r\n", b"NOT_STORED", b"10"),
    (b"replace {key} 7 0 3\r\nnew\r\n", b"STORED", b"new"),
    (b"set {key} 7 0 3\r\nnew\r\n", b"STORED", b"new"),
    (b"append {key} 0 0 1\r\n5\r\n", b"STORED", b"105"),
    (b"prepend {key} 0 0 1\r\n5\r\n", b"STORED", b"510"),
    (b"incr {key} 5\r\n", b"15", b"15"),
    (b"decr {key} 5\r\n", b"5", b"5 "),
    (b"delete {key}\r\n", b"DELETED", None),
    (b"touch {key} 100\r\n", b"TOUCHED", b"10"),
    (b"mg {key} v N100\r\n", b"VA 2", b"10"),
    (b"mg {key} v t\r\n", b"VA 2 t-1", b"10"),
    (b"ma {key} N100 J7 v\r\n", b"VA 2", b"11"),
    (b"ms {key} 3 MA N100 F7\r\nnew\r\n", b"HD", b"10new"),
    (b"ms {key} 3 ME\r\nnew\r\n", b"NS", b"10"),
    (b"md {key}\r\n", b"HD", None),
    (b"md {key} q\r\nmn\r\n", b"MN", None),
]


@pytest.mark.parametrize("request_, answer, after", ON_AN_ITEM, ids=[row[0].split(b"\r")[0].decode() for row in ON_AN_ITEM])
def test_what_is_done_with_a_key_that_moved_is_done_with_its_value(pool, request_, answer, after):
    store(pool.address, lambda key: b"10")
    pool.begin(FOUR)
    with talk(pool.address) as dialogue:
        for line, _ in dialogue.each([request_.replace(b"{key}", key) for key in KEYS]):
            assert line == answer
    for address in pool.addresses:
        for key, (line, value) in get(address).items():
            assert value == after, (address, key, line)
            if after is not None:
                assert line.split()[2] == b"7", line


def test_gat_finds_what_moved(pool):
    store(pool.address)
    pool.begin(FOUR)
    with talk(pool.address) as dialogue:
        for key, (line, value) in zip(KEYS, dialogue.each([b"gat 50 %s\r\n" % key for key in KEYS])):
            assert (line, value) == (b"VALUE %s 7 %d" % (key, 3 + len(key)), b"of " + key)
        for line, _ in dialogue.each([b"mg %s t\r\n" % key for key in KEYS]):
            assert 0 < int(line.split(b"t")[1]) <= 50


def test_a_multiget_finds_what_moved_in_its_order(pool):
    store(pool.address)
    pool.begin(FOUR)
    expected = b"".join(b"VALUE %s 7 %d\r\nof %s\r\n" % (key, 3 + len(key), key) for key in KEYS) + b"END\r\n"
    assert ask(pool.address, b"get " + b" ".join(KEYS) + b"\r\n", b"END\r\n") == expected


def test_an_old_cas_fails_and_a_new_one_succeeds(pool):
    store(pool.address)
    with talk(pool.address) as dialogue:
        old = [line.split()[4] for line, _ in dialogue.each([b"gets %s\r\n" % key for key in KEYS])]
        pool.begin(FOUR)
        answers = dialogue.each([b"cas %s 7 0 3 %s\r\nnew\r\n" % (key, number) for key, number in zip(KEYS, old)])
        moved = [key for key, (line, _) in zip(KEYS, answers) if line == b"EXISTS"]
        assert {line for line, _ in answers} == {b"EXISTS", b"STORED"}
        assert 5 < len(moved) < 100, len(moved)
        assert all(get(pool.addresses[1], moved)[key][1] == b"of " + key for key in moved)
        now = [line.split()[4] for line, _ in dialogue.each([b"gets %s\r\n" % key for key in moved])]
        assert dialogue.each([b"cas %s 7 0 3 %s\r\nnew\r\n" % pair for pair in zip(moved, now)]) == [(b"STORED", None)] * len(moved)


def test_a_flush_is_not_undone(pool):
    store(pool.address)
    pool.begin(FOUR)
    assert ask(pool.address, b"flush_all\r\n") == b"OK\r\n"
    for address in pool.addresses:
        assert {value for _, value in get(address).values()} == {None}


def test_a_pipeline_on_one_key_keeps_its_order(pool):
    store(pool.address)
    pool.begin(FOUR)
    with talk(pool.address) as dialogue:
        for key in KEYS:
            value = b"of " + key
            text = [b"get %s\r\n", b"append %s 0 0 1\r\n1\r\n", b"get %s\r\n", b"set %s 0 0 1\r\n2\r\n", b"get %s\r\n", b"delete %s\r\n",
                    b"get %s\r\n", b"add %s 0 0 1\r\n3\r\n", b"get %s\r\n"]
            answers = dialogue.each([line % key for line in text])
            assert [answer[1] or answer[0] for answer in answers] == [value, b"STORED", value + b"1", b"STORED", b"2", b"DELETED", b"END", b"STORED", b"3"]


@pytest.mark.parametrize("placement", ["ketama", "rendezvous"])
def test_a_deleted_key_does_not_come_back_with_the_next_change(placement):
    """Its owner before, of which it is the own key again, still has the value from before the first change."""
    with warm_pool(placement=placement) as pool:
        store(pool.address)
        pool.begin(FOUR)
        get(pool.address, KEYS[::3])  # of these the value has moved already
        for address, keys in zip(pool.addresses, (KEYS[::2], KEYS[1::2])):
            with talk(address) as dialogue:
                assert dialogue.each([b"delete %s\r\n" % key for key in keys]) == [(b"DELETED", None)] * len(keys)
        for members in (THREE, FOUR, THREE):
            pool.begin(members)
            for address in pool.addresses:
                assert [key for key, (_, value) in get(address).items() if value is not None] == []
        with talk(pool.address) as dialogue:
            assert dialogue.each([b"add %s 0 0 1\r\n1\r\n" % key for key in KEYS]) == [(b"STORED", None)] * len(KEYS)
        pool.begin(FOUR)
        expect_values(pool.addresses[1], lambda key: b"1", flags=0)


def test_a_key_that_is_deleted_after_it_came_back_does_not_come_back_either(pool):
    store(pool.address)
    pool.begin(FOUR)
    store(pool.address, lambda key: b"second " + key)
    pool.begin(THREE)
    with talk(pool.addresses[1]) as dialogue:
        assert dialogue.each([b"delete %s\r\n" % key for key in KEYS]) == [(b"DELETED", None)] * len(KEYS)
    for members in (THREE, FOUR, THREE):
        if members != pool.members:
            pool.begin(members)
        for address in pool.addresses:
            assert [key for key, (_, value) in get(address).items() if value is not None] == []


def test_stats_tell_of_values_that_were_brought_and_reset_with_the_others(pool):
    store(pool.address)
    pool.begin(FOUR)
    expect_values(pool.address)
    get(pool.address, [b"nowhere%d" % number for number in range(100)])
    rows = stats_of(pool.address)
    assert rows["egret_warming"] == "1"
    pulls, filled, refused, absent, skipped = (int(rows[f"egret_pulls{what}"]) for what in ("", "_filled", "_refused", "_absent", "_skipped"))
    assert 5 < filled < len(KEYS) and absent > 5 and skipped == 0
    assert pulls == filled + refused + absent
    with talk(pool.address) as dialogue:
        assert dialogue.each([b"stats reset\r\n"]) == [(b"RESET", None)]
    rows = stats_of(pool.address)
    assert {rows[name] for name in rows if name.startswith("egret_pulls")} == {"0"}
    assert rows["egret_warming"] == "1"


def test_the_phase_ends_by_itself_and_what_was_not_asked_for_is_missed_then():
    with warm_pool(warm_for="2s") as pool:
        store(pool.address)
        pool.begin(FOUR)
        wait_for(lambda: all(proxy.log(1_000_000).rfind("[warm_over]") > proxy.log(1_000_000).rfind("[warm_begun]") for proxy in pool.proxies),
                 "the end of the phase")
        missed = [key for key, (_, value) in get(pool.address).items() if value is None]
        assert 5 < len(missed) < 100, len(missed)
        with talk(pool.address) as dialogue:
            assert dialogue.each([b"add %s 0 0 1\r\n1\r\n" % key for key in missed]) == [(b"STORED", None)] * len(missed)


def test_without_warm_for_what_moved_is_missed():
    with warm_pool(warm_for="0") as pool:
        store(pool.address)
        pool.change(FOUR)
        wait_for(pool.is_settled, "four members")
        assert any(value is None for _, value in get(pool.address).values())
        assert "warm_begun" not in pool.proxies[0].log(1_000_000)
