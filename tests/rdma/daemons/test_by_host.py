"""Over a real verbs stack: one session for a host and backend, which all workers share (`sessions: host`), and pools whose backends are reached
by rdma, by shared memory and by TCP at once, in either mode, while one backend after the other is killed and comes back.

Runs in a guest (one_host.sh), where EGRET_RDMA_ADDRESS is its device's. servers.py is that of the conformance tests.
"""

import re

import pytest

import servers
from sole_writer import SoleWriter

WORKERS = 3
CLIENTS = 2 * WORKERS  # of all workers: connections are dealt in turn


class Pool(servers.EgretPool):
    """A backend for each of `ways`: rdma, shm or tcp."""

    def __init__(self, ways, sessions):
        self.ways = ways
        super().__init__([f"{way}{number}" for number, way in enumerate(ways)], backend={"admin": "127.0.0.1:0", "memory": "64MiB"},
                         proxy={"admin": "127.0.0.1:0", "workers": WORKERS, "sessions": sessions})

    def address_of_backend(self, number):
        ways = {"shm": lambda: f"shm:{self.directory}/backend{number}.sock", "tcp": lambda: f"tcp:127.0.0.1:{servers.free_port()}",
                "rdma": lambda: servers.new_backend_address(self.directory, f"backend{number}")}
        if number not in self.backend_addresses:
            self.backend_addresses[number] = ways[self.ways[number]]()
        return self.backend_addresses[number]

    def sessions(self):
        """What each backend has: {transport: sessions}, without those of which there are none."""
        return [{way: count for way, count in series(backend, "egret_backend_transport_sessions", "transport").items() if count > 0}
                for backend in self.backends]

    def messages(self):
        """How many each backend has executed."""
        return [sum(series(backend, "egret_backend_messages_total", "partition").values()) for backend in self.backends]


def series(daemon, metric, label):
    """{value of the label: figure}; of several with the same, their sum."""
    found = {}
    for labels, figure in re.findall(rf"^{metric}{{(.*)}} (\S+)$", servers.page_of(daemon, "/metrics")[1], re.M):
        name = re.search(rf'\b{label}="([^"]*)"', labels)[1]
        found[name] = found.get(name, 0) + int(float(figure))
    return found


def wait_for_all_keys(writers):
    """Each key of each writer is set once more."""
    for writer in writers:
        writer.served = set()
    def served():
        for writer in writers:
            writer.check()
        return all(len(writer.served) == writer.KEYS for writer in writers)
    servers.wait_for(served, "all keys to be served", timeout=60)


def live_through_kills(pool, sessions):
    """Clients write and read while one backend after the other is killed and started again; `sessions` is what each has whenever all is well."""
    servers.wait_for(lambda: pool.sessions() == sessions, f"sessions {sessions}")
    writers = [SoleWriter(pool.address, f"writer{number}") for number in range(CLIENTS)]
    for writer in writers:
        writer.start()
    wait_for_all_keys(writers)
    servers.wait_for(lambda: all(count > 100 for count in pool.messages()), "each backend to have its part of the traffic")
    for writer in writers:
        writer.may_miss = True
    for number in range(len(pool.ways)):
        errors = [writer.errors for writer in writers]
        pool.kill_backend(number)
        servers.wait_for(lambda: all(writer.errors > was for writer, was in zip(writers, errors)), "every client to be told")
        pool.start_backend(number)
        wait_for_all_keys(writers)
        servers.wait_for(lambda: pool.sessions() == sessions, f"sessions {sessions} after backend {number} came back")
        before = pool.messages()
        wait_for_all_keys(writers)
        assert all(now > was for now, was in zip(pool.messages(), before)), "each backend has its part again"
    for writer in writers:
        writer.end()
    pool.check_alive()
    return writers


@pytest.fixture
def pool(request):
    started = Pool(*request.param)
    yield started
    started.stop()


@pytest.mark.parametrize("pool", [(["rdma", "rdma"], "host")], indirect=True)
def test_a_host_has_one_session_with_each_backend_and_all_its_workers_are_served(pool):
    writers = live_through_kills(pool, [{"rdma": 1}, {"rdma": 1}])
    assert "rxe0 port 1" in pool.proxies[0].log(1 << 20)
    assert series(pool.proxies[0], "egret_proxy_backend_transport_sessions", "backend") == {"rdma0": 1, "rdma1": 1}
    handed_over = len(pool.ways) * (WORKERS - 1)
    servers.wait_for(lambda: servers.figure_of(pool.proxies[0], "egret_proxy_handed_over_sessions") == handed_over, "the other workers to hand over")
    assert sum(writer.misses for writer in writers) > 0, "what was in a killed backend is gone"


@pytest.mark.parametrize("pool", [(["rdma", "shm", "tcp"], "worker"), (["rdma", "shm", "tcp"], "host")], indirect=True)
def test_a_pool_of_all_transports_serves_and_reads_nothing_old(pool):
    by_host = pool.proxy_options["sessions"] == "host"
    over_network = 1 if by_host else WORKERS
    live_through_kills(pool, [{"rdma": over_network}, {"shm": WORKERS}, {"tcp": over_network}])
