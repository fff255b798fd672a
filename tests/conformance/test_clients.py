"""pymemcache and pylibmc in depth: every call, every size, over TCP and a Unix socket. (All other clients: test_real_clients.py.)"""

import os
import threading

import pylibmc
import pymemcache
import pytest
from pymemcache.client.base import Client, PooledClient

from servers import SLACK

SIZES = [0, 1, 100, 4000, 4096, 5000, 100_000, 1_000_000]


@pytest.fixture(params=["tcp", "unix"])
def address(request, subject):
    return subject.address if request.param == "tcp" else subject.unix_address()


# pymemcache

def pymemcache_client(address, **options):
    return Client(address, timeout=20 * SLACK, connect_timeout=5, default_noreply=False, **options)


def test_pymemcache_every_call(address):
    client = pymemcache_client(address)
    assert client.set("py-a", b"one") is True
    assert client.get("py-a") == b"one"
    assert client.get("py-none") is None and client.get("py-none", "default") == "default"
    assert client.set_many({"py-1": b"1", "py-2": b"2"}) == []
    assert client.get_many(["py-1", "py-none", "py-2"]) == {"py-1": b"1", "py-2": b"2"}
    client.delete("py-b")
    assert client.add("py-b", b"b") is True and client.add("py-b", b"c") is False
    assert client.replace("py-b", b"bb") is True and client.replace("py-none", b"x") is False
    assert client.append("py-b", b">") is True and client.prepend("py-b", b"<") is True
    assert client.append("py-none", b">") is False
    assert client.get("py-b") == b"<bb>"
    value, number = client.gets("py-b")
    assert value == b"<bb>"
    assert client.cas("py-b", b"new", number) is True
    assert client.cas("py-b", b"newer", number) is False
    assert client.cas("py-none", b"newer", number) is None
    assert set(client.gets_many(["py-a", "py-b"])) == {"py-a", "py-b"}
    assert client.set("py-n", b"10") and client.incr("py-n", 5) == 15 and client.decr("py-n", 20) == 0
    assert client.incr("py-none", 1) is None
    with pytest.raises(pymemcache.MemcacheClientError):
        client.incr("py-a", 1)
    assert client.touch("py-a", 100) is True and client.touch("py-none", 100) is False
    assert client.delete("py-a") is True and client.delete("py-a") is False
    assert client.delete_many(["py-1", "py-2"]) is True
    assert client.version()
    assert client.stats()[b"curr_items"] >= 0
    assert client.stats("settings")[b"item_size_max"] in (1 << 20, b"1048576")
    assert client.set("py-f", b"f") and client.flush_all() is True and client.get("py-f") is None
    client.quit()


def test_pymemcache_noreply(address):
    client = pymemcache_client(address)
    for n in range(300):
        client.set(f"py-quiet{n}", b"%d" % n, noreply=True)
    client.delete("py-quiet0", noreply=True)
    client.incr("py-quiet1", 10, noreply=True)
    client.touch("py-quiet2", 100, noreply=True)
    client.append("py-quiet3", b"!", noreply=True)
    found = client.get_many([f"py-quiet{n}" for n in range(300)])
    assert len(found) == 299
    assert found["py-quiet1"] == b"11" and found["py-quiet3"] == b"3!" and found["py-quiet299"] == b"299"


def test_pymemcache_sizes(address):
    client = pymemcache_client(address)
    values = {f"py-size{size}": os.urandom(size) for size in SIZES}
    assert client.set_many(values) == []
    assert client.get_many(list(values)) == values
    with pytest.raises(pymemcache.MemcacheServerError):
        client.set("py-large", b"x" * (1 << 20))
    assert client.get("py-size1") == values["py-size1"]


def test_pymemcache_pool_in_threads(address):
    client = PooledClient(address, max_pool_size=8, timeout=20 * SLACK, default_noreply=False)
    failures = []

    def work(number):
        try:
            for n in range(200):
                key, value = f"pool-{number}-{n % 7}", b"%d:%d" % (number, n)
                assert client.set(key, value) is True
                assert client.get(key) == value
        except Exception as failure:  # handed to the main thread
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


# pylibmc (libmemcached)

def pylibmc_client(address, **behaviors):
    return pylibmc.Client([address if isinstance(address, str) else f"{address[0]}:{address[1]}"], binary=False, behaviors=behaviors)


@pytest.mark.parametrize("behaviors", [{}, {"tcp_nodelay": True, "cas": True}, {"no_block": True, "cas": True}])
def test_pylibmc_every_call(address, behaviors):
    client = pylibmc_client(address, **behaviors)
    assert client.set("lib-a", "text") and client.get("lib-a") == "text"
    assert client.get("lib-none") is None
    for value in (b"bytes", 42, 4.5, {"a": [1, 2, 3]}, True, "käse\r\n"):
        assert client.set("lib-v", value) and client.get("lib-v") == value
    assert client.set_multi({f"lib-m{n}": n for n in range(200)}) == []
    assert client.get_multi([f"lib-m{n}" for n in range(0, 400, 2)]) == {f"lib-m{n}": n for n in range(0, 200, 2)}
    client.delete("lib-b")
    assert client.add("lib-b", "b") and not client.add("lib-b", "c")
    assert client.replace("lib-b", "bb") and not client.replace("lib-none", "x")
    assert client.append("lib-b", ">") and client.prepend("lib-b", "<") and client.get("lib-b") == "<bb>"
    assert client.touch("lib-b", 100) and client.delete("lib-b") and not client.delete("lib-b")
    client.set("lib-n", "10")
    assert client.incr("lib-n", 5) == 15 and client.decr("lib-n", 20) == 0
    with pytest.raises(pylibmc.NotFound):
        client.incr("lib-none")
    if behaviors.get("cas"):
        client.set("lib-c", "first")
        value, number = client.gets("lib-c")
        assert value == "first" and client.cas("lib-c", "second", number) and not client.cas("lib-c", "third", number)
    assert client.delete_multi([f"lib-m{n}" for n in range(200)])
    ((_, stats),) = client.get_stats()
    assert int({str(name).strip("b'"): value for name, value in stats.items()}["curr_items"]) > 0
    assert client.flush_all() and client.get("lib-a") is None


def test_pylibmc_sizes(address):
    client = pylibmc_client(address)
    values = {f"lib-size{size}": os.urandom(size) for size in SIZES}
    assert client.set_multi(values) == []
    assert client.get_multi(list(values)) == values
    with pytest.raises(pylibmc.Error):
        client.set("lib-large", os.urandom(1 << 20))
