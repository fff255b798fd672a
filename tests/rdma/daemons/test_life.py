"""Over a real verbs stack: sessions that are set up, sleep, break and come back, seen through memcached clients.

Runs in a guest (one_host.sh), where EGRET_RDMA_ADDRESS is its device's. servers.py is that of the conformance tests.
"""

import itertools
import pathlib
import re
import signal
import threading
import time

import pylibmc
import pymemcache
import pytest

import servers

WORKERS = {"workers": 1}


@pytest.fixture
def egret(request):
    server = servers.Egret(**getattr(request, "param", {}))
    yield server
    server.stop()


def value_of(key, length):
    return (key * (length // len(key) + 1))[:length].encode()


def client_of(server, index=0):
    return pymemcache.Client(server.addresses[index], timeout=30 * servers.SLACK, connect_timeout=30)


class Load(threading.Thread):
    """Sets and gets keys of its own through one connection until told to stop; values say which key and turn they are of.
    Errors that the server answers are counted, wrong answers remembered."""

    def __init__(self, address, name):
        super().__init__(daemon=True)
        self.address, self.name = address, name
        self.answers = self.errors = 0
        self.wrong = []
        self.stopping = threading.Event()

    def run(self):
        sock = None
        last = {}
        for turn in itertools.count():
            if self.stopping.is_set():
                return
            key = f"{self.name}-{turn % 7}"
            try:
                sock = sock or servers.connect(self.address)
                value = f"{key}:{turn}".encode()
                sock.sendall(b"set %s 0 0 %d\r\n%s\r\nget %s\r\n" % (key.encode(), len(value), value, key.encode()))
                lines = self.read(sock)
            except OSError:
                self.errors += 1
                sock = None
                time.sleep(0.05)
                continue
            if lines[0] == b"STORED":
                last[key] = value
            if any(line.startswith(b"SERVER_ERROR") for line in lines):
                self.errors += 1
                last.pop(key, None)
                time.sleep(0.02)
                continue
            self.answers += 1
            if lines[0] != b"STORED" or (lines[1] != b"END" and lines[2] != value):
                self.wrong.append(lines)

    def read(self, sock):
        data = b""
        while True:
            piece = sock.recv(65536)
            if not piece:
                raise OSError("closed")
            data += piece
            lines = data.split(b"\r\n")
            if data.endswith(b"END\r\n") or (len(lines) == 3 and lines[1].startswith(b"SERVER_ERROR")):
                return lines[:-1]

    def end(self):
        self.stopping.set()
        self.join(60 * servers.SLACK)
        assert not self.is_alive(), f"{self.name} waits for an answer that does not come"
        assert not self.wrong, self.wrong[:3]


def test_real_clients_and_values_of_every_size(egret):
    client = client_of(egret)
    sizes = [0, 1, 100, 4000, 4096, 5000, 70_000, 900_000]
    for size in sizes:
        assert client.set(f"size-{size}", value_of("v", size), noreply=False)
    assert client.get_many([f"size-{size}" for size in sizes]) == {f"size-{size}": value_of("v", size) for size in sizes}
    other = pylibmc.Client(["%s:%d" % egret.address])
    assert other.set("number", 41) and other.incr("number") == 42
    assert other.set_multi({f"m{i}": f"value {i}" for i in range(100)}) == []
    assert other.get_multi([f"m{i}" for i in range(100)]) == {f"m{i}": f"value {i}" for i in range(100)}
    log = egret.proxies[0].log()
    assert "rxe0 port 1" in log and "RoCE v2" in log and "read depth" in log and "inline" in log, log


@pytest.mark.parametrize("egret", [{"proxy": {"qps_per_session": 4}, "backend": {"partitions": 3}}], indirect=True)
def test_lanes_are_dealt_over_several_queue_pairs(egret):
    assert "4 queue pairs" in egret.proxies[0].log()
    assert "4 queue pairs" in egret.backend.log()
    client = client_of(egret)
    for number in range(200):
        assert client.set(f"k{number}", value_of(f"k{number}", 10 * number), noreply=False)
    for number in range(200):
        assert client.get(f"k{number}") == value_of(f"k{number}", 10 * number)


@pytest.mark.parametrize("egret", [{"backend": {"partitions": 3, "park_always": "true"},
                                    "proxy": {"spin": "1us", "op_timeout": "3600s", **WORKERS}}], indirect=True)
def test_no_wake_up_is_lost_when_everybody_sleeps_at_every_opportunity(egret):
    loads = [Load(egret.address, f"sleeper{i}") for i in range(3)]
    for load in loads:
        load.start()
    servers.wait_for(lambda: all(load.answers >= 150 for load in loads), "every client to be served", timeout=60)
    for load in loads:
        load.end()
        assert load.errors == 0
    stats = servers.stats_of(egret.address)
    assert int(stats["egret_rings"]) > 0 and int(stats["egret_deliveries"]) > 0, stats


def test_a_killed_backend_costs_what_is_in_flight_and_its_successor_serves(egret):
    loads = [Load(egret.address, f"load{i}") for i in range(3)]
    for load in loads:
        load.start()
    for _ in range(3):
        before = [load.answers for load in loads]
        servers.wait_for(lambda: all(load.answers > was + 10 for load, was in zip(loads, before)), "answers")
        errors = [load.errors for load in loads]
        egret.kill_backend()
        servers.wait_for(lambda: all(load.errors > was for load, was in zip(loads, errors)), "everybody to be told")
        egret.start_backend()
    before = [load.answers for load in loads]
    servers.wait_for(lambda: all(load.answers > was + 10 for load, was in zip(loads, before)), "answers after the last kill")
    for load in loads:
        load.end()


def have_sessions(egret, workers=2):
    """Whether all workers have one: each takes descriptors of the backend."""
    opened = (set(re.findall(r"worker (\d+): session with", proxy.log(1 << 20))) for proxy in egret.proxies)
    return all(len(each) == workers for each in opened)


@pytest.mark.parametrize("egret", [{"proxies": 2}], indirect=True)
def test_a_killed_proxy_is_forgotten_and_others_notice_nothing(egret):
    servers.wait_for(lambda: have_sessions(egret), "all sessions to be open")
    files = egret.backend.open_files()
    steady = Load(egret.addresses[1], "steady")
    steady.start()
    for number in range(4):
        victim = Load(egret.addresses[0], f"victim{number}")
        victim.start()
        servers.wait_for(lambda: victim.answers > 10, "the victim's answers")
        egret.proxies[0].kill()
        victim.end()
        egret.start_proxy(0)
        assert egret.wait_ready(0)
    steady.end()
    assert steady.errors == 0 and steady.answers > 10
    servers.wait_for(lambda: egret.backend.open_files() == files, "the sessions of the dead to be taken down")


class MixedPool(servers.EgretPool):
    """The first backend over the device, the second over shared memory."""

    def address_of_backend(self, number):
        if number == 1:
            self.backend_addresses[1] = f"shm:{self.directory}/second.sock"
        return super().address_of_backend(number)


def test_a_pool_mixes_both_transports():
    pool = MixedPool(["near", "far"], proxy=WORKERS)
    try:
        client = client_of(pool)
        keys = [f"k{number}" for number in range(200)]
        for key in keys:
            assert client.set(key, value_of(key, 3000), noreply=False)
        assert client.get_many(keys) == {key: value_of(key, 3000) for key in keys}
        log = pool.proxies[0].log()
        assert "shared memory" in log and "read depth" in log, log
        pool.kill_backend(1)
        answers = [servers.ask(pool.address, b"get %s\r\n" % key.encode())[:6] for key in keys]
        assert set(answers) == {b"SERVER", b"VALUE "}, set(answers)  # its own keys, and nobody else's
    finally:
        pool.stop()


def wait_until_it_stands(daemon):
    """Its threads stop one after the other, on a busy machine a while after the signal."""
    def states():
        return {stat.read_text().rpartition(") ")[2][0] for stat in pathlib.Path(f"/proc/{daemon.pid}/task").glob("*/stat")}
    while states() != {"T"}:
        time.sleep(0.01)


@pytest.mark.parametrize("egret", [{"proxy": {"op_timeout": "300ms", **WORKERS}}], indirect=True)
def test_a_backend_that_stands_still_costs_a_time_out_and_nothing_is_done_twice(egret):
    def ask(request, end=b"\r\n"):
        return servers.ask(egret.address, request, end, timeout=30)

    assert ask(b"set count 0 0 1\r\n0\r\n") == b"STORED\r\n"
    asked = done = 0
    for _ in range(3):
        egret.backend.signal(signal.SIGSTOP)
        wait_until_it_stands(egret.backend)
        answer = ask(b"incr count 1\r\n")
        asked += 1
        assert answer.startswith(b"SERVER_ERROR"), answer
        egret.backend.signal(signal.SIGCONT)
        while True:
            answer = ask(b"incr count 1\r\n")
            asked += 1
            if not answer.startswith(b"SERVER_ERROR"):
                done += 1
                break
    count = int(ask(b"get count\r\n", b"END\r\n").split(b"\r\n")[1])
    assert done <= count <= asked, f"asked {asked} times, told {done} times that it was done, counted {count}"


@pytest.mark.parametrize("egret", [{"backend": {"memory": "8MiB", "evict": "false", "partitions": 1, "item_size_max": "128KiB"}}],
                         indirect=True)
def test_a_full_backend_says_so_and_goes_on_serving(egret):
    client = client_of(egret)
    stored = 0
    with pytest.raises(pymemcache.exceptions.MemcacheServerError, match="out of memory"):
        for stored in range(1000):
            client.set(f"k{stored}", value_of("v", 50_000), noreply=False)
    assert stored > 50
    client = client_of(egret)
    assert client.get("k0") == value_of("v", 50_000)
    assert client.delete("k0", noreply=False) and client.set("small", b"v", noreply=False)


def test_idle_sessions_use_no_cpu_and_a_dead_one_is_noticed_without_traffic(egret):
    connections = [servers.connect(egret.address) for _ in range(200)]
    client = client_of(egret)
    for number in range(300):
        client.set(f"k{number}", b"v", noreply=False)
    time.sleep(2)
    before = [daemon.cpu_ticks() for daemon in egret.daemons()]
    time.sleep(10)
    spent = [daemon.cpu_ticks() - was for daemon, was in zip(egret.daemons(), before)]
    assert max(spent) <= 10, f"{spent} hundredths of a second of an emulated processor in 10 s, with keep-alives"
    egret.proxies[0].kill()
    servers.wait_for(lambda: "closed" in egret.backend.log(), "the backend to notice")
    del connections
