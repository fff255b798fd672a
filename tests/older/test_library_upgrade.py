"""A program that links libegret goes on while daemons of 0.1.0 are upgraded beneath it, and taken back: it is never restarted.

The program is tests/client/front.cc; EGRET_OLDER_BACKEND names 0.1.0 (build.sh)."""

import contextlib
import pathlib
import re
import signal
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
import servers
from library import Front
from servers import Egret, connect, wait_for

OLDER = servers.OLDER.pop("egret-backend", None)
pytestmark = pytest.mark.skipif(OLDER is None or not (OLDER / "bin/egret-backend").exists(), reason="0.1.0 is not built: tests/older/build.sh")


class Caller:
    """One connection that sets a key and gets it, with a number that grows. It is told a number that it has sent and that is not
    older than the last one acknowledged, or that there is none (a restarted backend is empty), or that the backend is away."""

    def __init__(self, address, name, size):
        self.sock = connect(address, timeout=60)
        self.lines = self.sock.makefile("rb")
        self.name, self.size = name, size
        self.turn = self.acknowledged = self.served = self.refused = 0
        self.failure = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _set(self):
        value = (b"%010d." % self.turn).ljust(self.size, b"x")
        self.sock.sendall(b"set %s 0 0 %d\r\n%s\r\n" % (self.name, len(value), value))
        line = self.lines.readline()
        if line == b"STORED\r\n":
            self.acknowledged = self.turn
            return True
        assert line.startswith(b"SERVER_ERROR "), line
        return False

    def _get(self):
        self.sock.sendall(b"get %s\r\n" % self.name)
        line = self.lines.readline()
        if line == b"END\r\n":
            return True
        if line.startswith(b"SERVER_ERROR "):
            return False
        assert line == b"VALUE %s 0 %d\r\n" % (self.name, self.size), line
        number = int(re.fullmatch(rb"(\d+)\.x*\r\n", self.lines.read(self.size + 2))[1])
        assert self.acknowledged <= number <= self.turn, (self.acknowledged, number, self.turn)
        assert self.lines.readline() == b"END\r\n"
        return True

    def _work(self):
        try:
            while not self.stopping.is_set():
                self.turn += 1
                stored, found = self._set(), self._get()
                self.served += stored and found
                self.refused += not (stored and found)
        except BaseException as failure:  # told to the test's thread
            self.failure = failure

    def stop(self):
        self.stopping.set()
        self.thread.join(60 * servers.SLACK)
        self.sock.close()


class Upgraded(Egret):
    """A proxy of ours, and a backend of either version."""

    def __init__(self):
        servers.OLDER["egret-backend"] = OLDER
        super().__init__()

    def restart_backend(self, older):
        self.backend.signal(signal.SIGTERM)
        assert self.backend.wait() == 0, self.backend.log()
        servers.OLDER.pop("egret-backend", None)
        if older:
            servers.OLDER["egret-backend"] = OLDER
        self.start_backend()

    def restart_proxy(self):
        self.proxies[0].signal(signal.SIGTERM)
        assert self.proxies[0].wait() == 0, self.proxies[0].log()
        self.start_proxy(0)
        assert self.wait_ready()


def go_on(callers, times=20):
    """Each is served so often from now on, whatever it was told before."""
    before = [caller.served for caller in callers]
    wait_for(lambda: any(caller.failure for caller in callers) or
             all(caller.served >= served + times for caller, served in zip(callers, before)), "the program to be served", 60)


WAYS = {
    "by backends": lambda server: {"backends": server.backend_address},
    "as the proxy tells": lambda server: {"proxy": "tcp:%s:%d" % server.address},
    "through the proxy": lambda server: {"proxy": "tcp:%s:%d" % server.address, "straight": "none"},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_program_goes_on_while_daemons_are_upgraded_and_taken_back(way):
    with contextlib.ExitStack() as ends:
        server = Upgraded()
        ends.callback(server.stop)
        front = Front(server.directory, server.directory / "front.sock", WAYS[way](server))
        ends.callback(front.daemon.stop)
        callers = [Caller(front.address, b"caller%d" % number, size) for number, size in enumerate((40, 3000, 300_000))]
        for caller in callers:
            ends.callback(caller.stop)
        go_on(callers)
        for older in (False, True, False):
            server.restart_backend(older)
            go_on(callers)
            refused = sum(caller.refused for caller in callers)
            server.restart_proxy()
            go_on(callers)
            if way == "by backends":  # the others may go through the proxy for a while after the backend's restart
                assert refused == sum(caller.refused for caller in callers)
        front.daemon.check_alive()
    for caller in callers:
        assert caller.failure is None, f"{caller.name}: {caller.failure!r}"
