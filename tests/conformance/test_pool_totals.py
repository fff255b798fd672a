"""`stats` of a pool: a sum of events does not become less because a backend leaves, is down or starts again; `stats reset` sets it back."""

import pytest

from servers import SUT, EgretPool, ask, stats_of, wait_for
from test_membership import ChangingPool
from test_pool import store

pytestmark = pytest.mark.skipif(SUT != "egret", reason="needs backends of our own")

EVENTS = ("cmd_get", "cmd_set", "get_hits", "get_misses", "total_items", "cmd_flush", "egret_ops", "egret_messages", "egret_inserted_bytes")
KEYS = [b"counted%d" % number for number in range(300)]


def events(address):
    rows = stats_of(address)
    return {name: int(rows[name]) for name in EVENTS if name in rows}


def serve_some(server):
    store(server.address, KEYS)
    ask(server.address, b"get " + b" ".join(KEYS) + b" nothing\r\n", b"END\r\n")


def grows(server, before):
    """The sums now, none of which may be less than it was."""
    now = events(server.address)
    assert {name: value for name, value in now.items() if value < before[name]} == {}, (before, now)
    return now


@pytest.fixture
def pool():
    server = ChangingPool(3)
    try:
        assert ask(server.address, b"flush_all\r\n") == b"OK\r\n"
        serve_some(server)
        yield server
    finally:
        server.stop()


def has(server, members):
    server.change(members)
    wait_for(server.is_settled, f"sessions with {members}")


def test_who_leaves_takes_nothing_along_and_who_returns_is_not_counted_twice(pool):
    first = events(pool.address)
    assert first["cmd_set"] == 300 and first["cmd_get"] >= 301
    last = first
    for members in ([0], [1], [0, 1, 2], [2, 1], [0, 1, 2]):
        has(pool, members)
        last = grows(pool, last)
        assert last["cmd_set"] == first["cmd_set"] and last["total_items"] == first["total_items"]
        assert int(stats_of(pool.address)["egret_backends"]) == len(members)
    serve_some(pool)
    assert grows(pool, last)["cmd_set"] == first["cmd_set"] + 300


def test_who_is_down_or_starts_again_takes_nothing_along(pool):
    last = events(pool.address)
    for _ in range(2):
        held = int(stats_of(pool.address)["curr_items"])
        pool.kill_backend(1)
        wait_for(lambda: all(stats_of(pool.address)["egret_backends_up"] == "2" for _ in range(6)), "the death to be noticed")
        last = grows(pool, last)
        assert int(stats_of(pool.address)["curr_items"]) < held  # what there is, is what there is
        pool.start_backend(1)
        wait_for(pool.is_settled, "its return")
        before = last["cmd_set"]
        last = grows(pool, last)
        serve_some(pool)
        last = grows(pool, last)
        assert last["cmd_set"] == before + 300


def test_a_reset_sets_all_back_by_whichever_proxy(pool):
    other = pool.addresses[pool.add_proxy()]
    for who in (pool.address, other):
        serve_some(pool)
        has(pool, [0, 1])
        assert events(pool.address)["cmd_set"] >= 300
        assert ask(who, b"stats reset\r\n") == b"RESET\r\n"
        if who == other:  # all of its backends: the third has not left there
            wait_for(lambda: events(pool.address)["cmd_set"] == 0, "the reset to be seen")
        assert events(pool.address)["cmd_set"] == 0
        if who == pool.address:
            assert events(pool.address)["egret_messages"] < 100
        has(pool, [0, 1, 2])


def test_two_proxies_have_the_same_sums_as_long_as_nobody_leaves():
    server = EgretPool(proxies=2)
    try:
        serve_some(server)
        one, two = (stats_of(address) for address in server.addresses)
        for name in ("cmd_set", "total_items", "curr_items"):
            assert one[name] == two[name] == "300", name
    finally:
        server.stop()
