"""Calls to the system fail, as they do when a limit is exhausted: while both daemons are under load, and while they start.

No crash, no hang, no wrong answer; and when the calls succeed again, everybody is served again. README.md tells more."""

import os
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))

import pytest

from failing_calls import FailingCalls, preloaded
from load import Asker, MetricsReader, Reloads, Sessions, Witness, read_metrics
from relay import Relay
from servers import SLACK, SOAK_SECONDS, Daemon, ask, free_port, wait_for
from tls import Authority, TlsEgret

SEED = int(os.environ.get("EGRET_SEED", "0")) or (random.randrange(1, 1 << 32) if SOAK_SECONDS else 1)

# What the daemons call while they serve, and what only one that starts does. Each is made to fail, and counted.
UNDER_LOAD = {
    "egret-proxy": ["open", "socket", "accept", "mmap", "epoll_ctl", "eventfd"],
    "egret-backend": ["open", "accept", "mmap", "epoll_ctl", "timerfd_create", "memfd_create", "posix_fallocate", "add_seals"],
}
AT_START = ["open", "mmap", "epoll_ctl", "epoll_create", "eventfd", "pipe", "socket", "pthread_create", "posix_fallocate"]


class Starved(TlsEgret):
    """Both daemons under the library, a relay between them that can end sessions."""

    def __init__(self, certificate, key):
        self.relay = None
        self.calls = {}
        self.admin_ports = [free_port(), free_port()]
        super().__init__(certificate, key, start=False,
                         backend={"memory": "256MiB", "admin": f"127.0.0.1:{self.admin_ports[0]}"},
                         proxy={"admin": f"127.0.0.1:{self.admin_ports[1]}", "reconnect_max": "50ms"})
        self.start_backend()
        wait_for(lambda: "serving" in self.backend.log(), "the backend to serve")
        self.relay = Relay(self.directory / "relay.sock", self.backend_socket)
        self.add_proxy()
        for name, calls in self.calls.items():
            calls.seed(SEED)

    def argv(self, name, options):
        return preloaded(Starved.plain_argv(name, options), self.file_of(name))

    @staticmethod
    def plain_argv(name, options):
        return TlsEgret.argv(name, options)

    def file_of(self, name):
        return self.directory / f"{name}.calls"

    def start_backend(self):
        super().start_backend()
        self.calls["egret-backend"] = FailingCalls(self.file_of("egret-backend"))

    def start_proxy(self, index):
        daemon = super().start_proxy(index)
        self.calls["egret-proxy"] = FailingCalls(self.file_of("egret-proxy"))
        return daemon

    def backends_of_proxy(self, _index):
        return f"shm:{self.directory}/relay.sock"

    def stop(self):
        if self.relay:
            self.relay.stop()
        super().stop()


@pytest.fixture(scope="module")
def starved(tmp_path_factory):
    certificate, key = Authority(tmp_path_factory.mktemp("tls")).issue("proxy")
    server = Starved(certificate, key)
    yield server
    server.stop()


class Load:
    """Everything that is asked of the daemons meanwhile."""

    def __init__(self, server):
        self.server = server
        sizes = (10, 900, 5000, 60_000, 400_000)
        self.witnesses = [Witness(server.address, b"lasting%d" % number, size) for number, size in enumerate(sizes)]
        self.witnesses += [Witness(server.address, b"new%d" % number, size, new_connections=True) for number, size in enumerate(sizes[:3])]
        self.others = [
            Asker(server.address, b"watch fetchers evictions\n", lambda answer: answer.startswith(b"OK\r\n")),
            Asker(server.address, b"stats\r\n", lambda answer: answer.startswith(b"STAT pid ")),
            Asker(server.unix_address(), b"stats conns\r\n", lambda answer: answer.startswith(b"STAT ")),
            *[MetricsReader(port) for port in server.admin_ports],
            Reloads(server.daemons(), signal.SIGHUP),
        ]
        self.sessions = Sessions(server.relay, SEED)

    def stop(self):
        failures = []
        for worker in [self.sessions, *self.others, *self.witnesses]:
            try:
                worker.stop()
            except AssertionError as failure:
                failures.append(str(failure))
        assert not failures, f"seed {SEED}: {failures}"

    def fail_early(self):
        for worker in self.witnesses + self.others:
            assert worker.failure is None, f"seed {SEED}: {worker}: {worker.failure!r}"
        self.server.check_alive()


def check_recovered(server, load):
    """Everybody is served: who was there, who is new, and who asks for metrics."""
    load.fail_early()
    for worker in load.witnesses + load.others:
        before = worker.turns
        wait_for(lambda: worker.turns > before + 2 or worker.failure, f"{worker} to be served again")
    load.fail_early()

    def all_new_ones_are_served():
        try:
            return all(ask(server.address, b"set fresh 0 0 5\r\nfresh\r\n") == b"STORED\r\n" for _ in range(8))
        except OSError:
            return False

    wait_for(all_new_ones_are_served, "new connections to be served")
    assert all(read_metrics(port) for port in server.admin_ports)


def fail_for_a_while(server, load, rules, least, most_seconds):
    """`rules`: name of daemon, kind of call, rate. Until each has failed `least` times, or the time is over."""
    before = {name: calls.failed() for name, calls in server.calls.items()}
    for name, kind, rate in rules:
        server.calls[name].fail(kind, rate)
    load.sessions.is_paused = False
    end = time.monotonic() + most_seconds * SLACK
    while time.monotonic() < end:
        load.fail_early()
        if all(server.calls[name].failed()[kind] >= before[name][kind] + least for name, kind, _ in rules):
            break
        time.sleep(0.01)
    for calls in server.calls.values():
        calls.stop()
    load.sessions.is_paused = True


def test_calls_fail_under_load(starved):
    """One kind after the other: all of its calls, then one in three. Then all kinds at once, one call in eight."""
    load = Load(starved)
    try:
        check_recovered(starved, load)
        for kind in sorted({kind for kinds in UNDER_LOAD.values() for kind in kinds}):
            rules = [(name, kind) for name, kinds in UNDER_LOAD.items() if kind in kinds]
            for rate, least in ((1.0, 3), (1 / 3, 5)):
                fail_for_a_while(starved, load, [(*rule, rate) for rule in rules], least, 5)
                check_recovered(starved, load)
        everything = [(name, kind, 1 / 8) for name, kinds in UNDER_LOAD.items() for kind in kinds]
        fail_for_a_while(starved, load, everything, 1 << 30, 3)
        check_recovered(starved, load)
        soak(starved, load)
    finally:
        for calls in starved.calls.values():
            calls.stop()
        load.stop()
    starved.check_alive()
    for name, kinds in UNDER_LOAD.items():
        failed = starved.calls[name].failed()
        print(name, "calls:", starved.calls[name].calls(), "failed:", failed)
        assert all(failed[kind] >= 1 for kind in kinds), f"{name}: these calls failed: {failed}"
    assert starved.proxies[0].stop() == 0
    assert starved.backend.stop() == 0


def soak(server, load):
    """For EGRET_SOAK_SECONDS: some kinds at some rates, drawn from the seed, and again and again a recovery."""
    rng = random.Random(SEED)
    end = time.monotonic() + SOAK_SECONDS
    while time.monotonic() < end:
        pairs = [(name, kind) for name, kinds in UNDER_LOAD.items() for kind in kinds]
        rules = [(*pair, rng.choice((1.0, 0.5, 0.1, 0.01))) for pair in rng.sample(pairs, rng.randrange(1, len(pairs)))]
        fail_for_a_while(server, load, rules, 1 << 30, rng.choice((0.1, 1, 5)))
        check_recovered(server, load)


# --- while they start


def numbers(count):
    """Which of so many calls are made to fail: a few of them in `make test`, more in a soak."""
    most = 40 if SOAK_SECONDS else 3
    return sorted({1 + place * (count - 1) // max(most - 1, 1) for place in range(most)}) if count else []


class Start:
    """A daemon that is started with failing calls; it either serves or says in a line why not."""

    def __init__(self, directory, name, listen, options, is_serving):
        self.directory = directory
        self.name = name
        self.listen = listen
        self.options = options
        self.is_serving = is_serving
        self.count = 0

    def run(self, nth=""):
        """The calls that were made, by kind."""
        self.count += 1
        path = self.directory / f"{self.name}.{self.count}.calls"
        options = {"listen": self.listen, "admin": f"127.0.0.1:{free_port()}", **self.options}
        daemon = Daemon(preloaded(TlsEgret.argv(self.name, options), path, nth), self.directory, self.name)
        wait_for(lambda: not daemon.is_alive() or self.is_serving(daemon), f"{self.name} to serve or to end ({nth})")
        calls = FailingCalls(path).calls()
        ended_by_itself = not daemon.is_alive()
        status = daemon.stop()
        if ended_by_itself:
            says = [line for line in daemon.log().splitlines() if line.startswith(f"{self.name}: ")]
            assert status == 1 and says, f"{nth}: status {status}, says {daemon.log()!r}"
        else:
            assert status == 0, f"{nth}: asked to end, status {status}, says {daemon.log()!r}"
        return calls

    def fail_each(self):
        counted = self.run()
        tried = 0
        for kind in AT_START:
            for number in numbers(counted[kind]):
                self.run(f"{kind}:{number}")
                tried += 1
        return {kind for kind in AT_START if counted[kind]}, tried


def test_calls_fail_while_the_backend_starts(tmp_path):
    start = Start(tmp_path, "egret-backend", f"shm:{tmp_path}/b.sock",
                  {"memory": "64MiB", "populate": "false", "partitions": 3, "warm_restart": tmp_path},
                  lambda daemon: "serving: " in daemon.log())
    kinds, tried = start.fail_each()
    assert kinds >= {"open", "mmap", "epoll_ctl", "epoll_create", "eventfd", "pipe", "pthread_create", "posix_fallocate"}, kinds
    print(tried, "starts of the backend")


def test_calls_fail_while_the_proxy_starts(tmp_path):
    port = free_port()

    def is_serving(_daemon):
        try:
            return ask(("127.0.0.1", port), b"version\r\n").startswith(b"VERSION")
        except OSError:
            return False

    start = Start(tmp_path, "egret-proxy", f"tcp:127.0.0.1:{port}",
                  {"backends": f"shm:{tmp_path}/nobody.sock", "workers": 2}, is_serving)
    kinds, tried = start.fail_each()
    assert kinds >= {"open", "epoll_ctl", "epoll_create", "eventfd", "pipe", "socket", "pthread_create"}, kinds
    print(tried, "starts of the proxy")
