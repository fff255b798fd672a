"""Hosts without RDMA: backends at tcp: addresses, alone, beside others in one pool, and with peers that keep to nothing."""

import os
import random
import re
import signal
import socket
import struct
import urllib.request

import pytest

import changing_values
from bystander import Bystander
from servers import SUT, Daemon, Egret, EgretPool, ask, egret_binary, free_port, stats_of, wait_for

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
    """The backend sends long values from where its store has them."""
    egret = OverTcp(backend={"partitions": 1, "memory": "64MiB"}, proxy={"workers": 2})
    try:
        changing_values.check(egret.address)
        egret.check_alive()
    finally:
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


class TwoWays(Egret):
    """Two backends at the addresses of a file that the proxy reads; each may change to another transport of its port."""

    def __init__(self):
        super().__init__(start=False, proxy={"workers": 2})
        self.path = self.directory / "proxy.yaml"
        self.ports = [free_port(), free_port()]
        self.second = None

    def write(self, *transports):
        places = ", ".join(f"{transport}:127.0.0.1:{port}" for transport, port in zip(transports, self.ports))
        self.path.write_text(f"backends: [{places}]\n")

    def proxy_argv(self, index):
        return [egret_binary("egret-proxy"), "--config", self.path, "--set", f"listen={self.listen_of_proxy(index)}", "--set", "admin=", "--set", "workers=2"]

    def daemons(self):
        return super().daemons() + [self.second]


def test_a_member_that_goes_by_another_transport_of_its_port_keeps_its_items():
    egret = TwoWays()
    try:
        egret.write("tcp", "tcp")
        for port in egret.ports:
            egret.backend_address = f"rdma+tcp:127.0.0.1:{port}"
            egret.second, _ = egret.backend, egret.start_backend()
        egret.add_proxy()
        wait_for(lambda: all(ask(egret.address, b"set %s 0 0 1\r\nv\r\n" % key) == b"STORED\r\n" for key in KEYS), "both backends")
        for transports in ("rdma+tcp", "tcp"), ("rdma+tcp", "rdma+tcp"), ("tcp", "rdma+tcp"):
            egret.write(*transports)
            before = egret.proxies[0].log(1 << 20).count("reloaded: ")
            egret.proxies[0].signal(signal.SIGHUP)
            wait_for(lambda: egret.proxies[0].log(1 << 20).count("reloaded: ") > before, "the reload")
            wait_for(lambda: not any(answer.startswith(b"SERVER_ERROR") for answer in answers(egret.address)), "both ways to serve")
            assert {answer[:5] for answer in answers(egret.address)} == {b"VA 1\r"}, transports
    finally:
        egret.second.stop()
        egret.stop()


def test_a_backend_goes_over_to_another_transport_of_its_port_by_a_reload():
    egret = Egret(start=False)
    try:
        path, port = egret.directory / "backend.yaml", free_port()

        def listens_at(transport):
            path.write_text(f"listen: [{transport}:127.0.0.1:{port}]\nadmin: ''\nmemory: 64MiB\npartitions: 1\npopulate: false\n")

        listens_at("tcp")
        egret.backend = Daemon([egret_binary("egret-backend"), "--config", path], egret.directory, "egret-backend")
        egret.backend_address = f"tcp:127.0.0.1:{port}"
        egret.add_proxy()
        assert ask(egret.address, b"set k 0 0 1\r\nv\r\n") == b"STORED\r\n"
        for number, transport in enumerate(("rdma+tcp", "tcp"), start=1):
            listens_at(transport)
            egret.backend.signal(signal.SIGHUP)
            wait_for(lambda: egret.backend.log(1 << 20).count("reloaded: ") == number, "the reload")
        egret.add_proxy()  # it is let in at the address that is listened at now
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
