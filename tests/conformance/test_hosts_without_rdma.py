"""Hosts without RDMA: backends at tcp: addresses, alone, beside others in one pool, and with peers that keep to nothing."""

import os
import random
import re
import socket
import struct
import threading
import urllib.request

import pytest

from bystander import Bystander
from servers import SUT, Egret, EgretPool, ask, free_port, stats_of, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="needs egret-backend and egret-proxy")

KEYS = [b"key%d" % number for number in range(96)]
CONTROL, REQUEST, RING = 1, 3, 5  # kinds of frames: protocol/transport/tcp/README.md


class MixedPool(EgretPool):
    """One member over shared memory, two over TCP."""

    def address_of_backend(self, number):
        if number not in self.backend_addresses:
            local = f"shm:{self.directory}/backend{number}.sock"
            self.backend_addresses[number] = local if number == 0 else f"tcp:127.0.0.1:{free_port()}"
        return self.backend_addresses[number]


class OverTcp(Egret):
    def __init__(self, **arguments):
        super().__init__(start=False, **arguments)
        self.port = free_port()
        self.backend_address = f"tcp:127.0.0.1:{self.port}"
        self.start_backend()
        self.add_proxy()


def answers(address):
    return [ask(address, b"mg %s v\r\n" % key) for key in KEYS]


def test_values_that_change_while_they_are_sent_are_whole():
    """The backend sends long values from where its store has them. Each value here is one letter; keys are replaced, extended and
    deleted while readers get them."""
    egret = OverTcp(backend={"partitions": 1, "memory": "64MiB"}, proxy={"workers": 2})
    keys = KEYS[:30]
    failures, hits, over = [], [], threading.Event()

    def change(seed):
        chance = random.Random(seed)
        of_one = keys[10 * seed + 3:10 * seed + 10]
        with socket.create_connection(egret.address, timeout=60) as sock:
            for _ in range(250):
                key = chance.choice(keys[10 * seed:10 * seed + 10] + keys[:3])
                letter = chance.choice([b"a", b"b", b"c", b"d", b"e"])
                value = letter * chance.choice([20_000, 70_000, 100_000, 130_000, 400_000])
                verb = chance.choice([b"set", b"set", b"delete", b"touch"])
                tail = {b"set": b" 0 0 %d\r\n%s\r\n" % (len(value), value), b"touch": b" 100\r\n", b"delete": b"\r\n"}[verb]
                requests = [b"%s %s%s" % (verb, key, tail)]
                if verb == b"set" and key in of_one:  # appends to keys that nobody else changes
                    requests.append(b"append %s 0 0 30000\r\n%s\r\n" % (key, letter * 30_000))
                for request in requests:
                    sock.sendall(request)
                    answer = sock.recv(100)
                    if answer not in (b"STORED\r\n", b"DELETED\r\n", b"NOT_FOUND\r\n", b"NOT_STORED\r\n", b"TOUCHED\r\n"):
                        failures.append(answer)

    def read(depth):
        with socket.create_connection(egret.address, timeout=60) as sock, sock.makefile("rb") as heard:
            while not over.is_set():
                sock.sendall(depth * (b"get " + b" ".join(keys[::2]) + b"\r\n"))
                for _ in range(depth):
                    while (line := heard.readline()) != b"END\r\n":
                        length = int(line.split()[3])
                        value = heard.read(length + 2)
                        hits.append(length)
                        if value[:-2] != value[:1] * length or not value.endswith(b"\r\n"):
                            failures.append(line)

    try:
        writers = [threading.Thread(target=change, args=(seed,)) for seed in range(3)]
        readers = [threading.Thread(target=read, args=(depth,)) for depth in (1, 1, 8)]
        for thread in writers + readers:
            thread.start()
        for thread in writers:
            thread.join()
        over.set()
        for thread in readers:
            thread.join()
        assert failures == [] and len(hits) > 100
        assert int(stats_of(egret.address)["curr_items"]) > 0
        egret.check_alive()
    finally:
        over.set()
        egret.stop()


def test_each_large_value_of_a_multiget_is_fetched_once_by_one_message():
    """Slots over TCP hold a value of 100 KiB, and no more are asked for at once than the connection may hold, so none is dropped."""
    egret = OverTcp(proxy={"workers": 1, "idle_window": 0})
    try:
        value = b"v" * 100_000
        keys = KEYS[:50]
        for key in keys:
            assert ask(egret.address, b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value)) == b"STORED\r\n"
        expected = b"".join(b"VALUE %s 0 %d\r\n%s\r\n" % (key, len(value), value) for key in keys) + b"END\r\n"
        with socket.create_connection(egret.address) as sock:
            sock.settimeout(30)
            for _ in range(4):  # the lane learns how long values are
                before = int(stats_of(egret.address)["egret_ops"])
                sock.sendall(b"get " + b" ".join(keys) + b"\r\n")
                heard = b""
                while len(heard) < len(expected):
                    heard += sock.recv(1 << 20)
                assert heard == expected
                ops = int(stats_of(egret.address)["egret_ops"]) - before
        assert len(keys) <= ops <= len(keys) + 5, "stats asks partitions, too"
    finally:
        egret.stop()


def test_a_pool_mixes_shared_memory_and_tcp():
    pool = MixedPool()
    try:
        for number, key in enumerate(KEYS):
            assert ask(pool.address, b"set %s 0 0 4\r\n%04d\r\n" % (key, number)) == b"STORED\r\n"
        multiget = ask(pool.address, b"get " + b" ".join(KEYS) + b"\r\n", end=b"END\r\n")
        assert multiget == b"".join(b"VALUE %s 0 4\r\n%04d\r\n" % (key, number) for number, key in enumerate(KEYS)) + b"END\r\n"

        pool.kill_backend(2)
        wait_for(lambda: any(answer.startswith(b"SERVER_ERROR") for answer in answers(pool.address)), "its keys to fail")
        kinds = {answer[:5] for answer in answers(pool.address)}
        assert kinds == {b"VA 4\r", b"SERVE"}, "the others go on, over TCP and over shared memory"

        pool.start_backend(2)
        wait_for(lambda: {answer[:5] for answer in answers(pool.address)} == {b"VA 4\r", b"EN\r\n"},
                 "it to be back, without the values that it had")
    finally:
        pool.stop()


def sessions_by(backend, transport):
    address = re.search(r"admin address: (\S+)", backend.log(1 << 20))[1]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        return int(re.search(rf'^egret_backend_transport_sessions{{transport="{transport}"}} (\d+)', answer.read().decode(), re.M)[1])


def test_a_backend_at_two_addresses_is_one_store_and_says_how_sessions_came():
    egret = Egret(start=False)
    try:
        local, remote = egret.backend_address, f"tcp:127.0.0.1:{free_port()}"
        egret.backend_options |= {"listen": f"{local},{remote}", "admin": "127.0.0.1:0"}
        egret.proxy_options["workers"] = "1"  # a session each
        egret.start_backend()
        egret.add_proxy()
        egret.proxy_options["backends"] = remote
        egret.add_proxy()
        for name, sessions in ("shm", 1), ("rdma", 0), ("tcp", 1):
            wait_for(lambda: sessions_by(egret.backend, name) == sessions, f"{sessions} sessions by {name}")
        assert ask(egret.addresses[0], b"set k 0 0 1\r\nv\r\n") == b"STORED\r\n"
        assert ask(egret.addresses[1], b"get k\r\n", end=b"END\r\n") == b"VALUE k 0 1\r\nv\r\nEND\r\n"
    finally:
        egret.stop()


def test_the_log_names_the_transport():
    egret = OverTcp()
    try:
        wait_for(lambda: re.search(rf"session with tcp:127\.0\.0\.1:{egret.port}: .* tcp, segments of \d+ bytes", egret.proxies[0].log(1 << 20)),
                 "the proxy's log to say over what its sessions go")
    finally:
        egret.stop()


def head(kind, lane=0, offset=0, length=0):
    return struct.pack("<BBHII", kind, 0, lane, offset, length)


def peers_that_keep_to_nothing(rng):
    """What each sends before it closes, or stays."""
    yield b"get a\r\nset b 0 0 1\r\nx\r\n"
    yield head(CONTROL, length=513)
    yield head(CONTROL, length=400) + b"half of a frame"
    yield head(REQUEST, offset=192, length=64) + bytes(64)
    yield head(RING, lane=65535)
    yield head(CONTROL, length=0) * 1000
    yield b"\x01"
    for _ in range(60):
        yield rng.randbytes(rng.randrange(1, 3000))
        yield head(CONTROL, length=200) + rng.randbytes(200)


def test_peers_that_keep_to_nothing_disturb_nobody():
    seed = int(os.environ.get("EGRET_SEED", "1"))
    egret = OverTcp(backend={"admin": "127.0.0.1:0"})
    silent = []
    try:
        with Bystander(egret.address):
            for number, says in enumerate(peers_that_keep_to_nothing(random.Random(seed))):
                peer = socket.create_connection(("127.0.0.1", egret.port), timeout=20)
                try:
                    peer.sendall(says)
                except OSError:  # it was turned away meanwhile
                    pass
                if number % 2 == 0:
                    peer.close()
                else:
                    silent.append(peer)
        egret.check_alive()
        log = egret.backend.log(1 << 20)
        assert "the peer speaks another protocol" in log, log
    finally:
        for peer in silent:
            peer.close()
        egret.stop()
