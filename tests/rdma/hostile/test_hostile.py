"""A peer without manners against an unmodified backend, while a proxy's clients are served by it.

The attacks are those of the program `hostile`, which judges what it sees itself; here it is judged what others see of it: the
backend lives, the honest clients get right answers and lose no session, and in the end all that the attackers took
(sessions, descriptors, memory) is given back.
"""

import re
import signal
import subprocess
import threading

import pytest

import servers

MIB = 1 << 20
MEMORY_SLACK = 6 * MIB
HOSTILE = servers.BUILD / "hostile"
GROUP_SECONDS = 60
GROUPS = dict(line.split(": ") for line in
              subprocess.run([HOSTILE, "--list"], capture_output=True, text=True, check=True).stdout.splitlines())


class Honest:
    """Clients of every worker of the proxy, each with keys on every partition; remembers the first wrong answer."""

    KEYS = 9

    def __init__(self, address, connections=4):
        self.files = [servers.connect(address).makefile("rwb") for _ in range(connections)]
        self.turns = 0
        self.failure = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        try:
            while not self.stopping.wait(0.005):
                number = self.turns % len(self.files)
                key = b"honest-%d-%d" % (number, self.turns // len(self.files) % self.KEYS)
                value = key + b":%d" % self.turns
                file = self.files[number]
                file.write(b"set %s 0 0 %d\r\n%s\r\nget %s\r\n" % (key, len(value), value, key))
                file.flush()
                heard = [file.readline() for _ in range(4)]
                wanted = [b"STORED\r\n", b"VALUE %s 0 %d\r\n" % (key, len(value)), value + b"\r\n", b"END\r\n"]
                assert heard == wanted, (heard, wanted)
                self.turns += 1
        except BaseException as failure:  # told to the test's thread
            self.failure = failure

    def check(self, turns=4 * KEYS):
        """So many more turns are answered rightly, as all were before."""
        goal = self.turns + turns
        servers.wait_for(lambda: self.failure or self.turns >= goal, "honest clients to be served")
        assert self.failure is None, self.failure

    def stop(self):
        self.stopping.set()
        self.thread.join(60 * servers.SLACK)


class Siege:
    def __init__(self):
        self.egret = servers.Egret(backend={"memory": "64MiB"}, proxy={"workers": 2, "op_timeout": "30s"})
        self.backend = self.egret.backend
        self.target = self.egret.backend_address.removeprefix("rdma:")
        self.honest = Honest(self.egret.address)
        self.honest.check()
        # What is allocated once and kept is part of where things were.
        self.attack("leave-at-every-stage")
        self.settle()
        self.sessions = self.open_sessions()
        self.files = self.backend.open_files()
        self.memory = self.backend.rss_bytes()

    def attack(self, name):
        return subprocess.run([HOSTILE, self.target, name], capture_output=True, text=True,
                              timeout=GROUP_SECONDS * servers.SLACK)

    def log(self):
        return self.backend.log(limit=1 << 24)

    def open_sessions(self):
        """By the backend's log: those opened and not closed."""
        opened = set(re.findall(r"session (\d+) open:", self.log()))
        return opened - set(re.findall(r"session (\d+) closed", self.log()))

    def settle(self):
        """Until only the proxy's sessions are left."""
        try:
            servers.wait_for(lambda: len(self.open_sessions()) == 2, "the attackers' sessions to be closed")
        except TimeoutError:
            raise AssertionError(f"open: {self.open_sessions()}\n{self.log()[-6000:]}\n{self.egret.proxies[0].log()}")

    def check(self):
        self.backend.check_alive()
        self.honest.check()

    def stop(self):
        self.honest.stop()
        status = self.backend.stop()
        self.egret.stop()
        return status


@pytest.fixture(scope="module")
def siege():
    siege = Siege()
    yield siege
    siege.stop()


@pytest.mark.parametrize("group", GROUPS)
def test_attacks(siege, group):
    turns = siege.honest.turns
    done = siege.attack(group)
    print(done.stdout, done.stderr)
    tail = "\n".join(siege.backend.log().splitlines()[-12:])
    ends_by = -signal.SIGKILL if group == "leaving" else 0  # its last attack is to be killed
    assert (done.returncode, done.stderr) == (ends_by, ""), f"the backend's log:\n{tail}"
    attacks = GROUPS[group].split()
    assert re.findall(r"^(\S+): as it should", done.stdout, re.M) == [name for name in attacks if name != "killed"]
    assert siege.honest.turns > turns + len(attacks), "the honest clients were hardly served meanwhile"
    siege.check()


def test_all_that_the_attackers_took_is_given_back(siege):
    siege.settle()
    siege.check()
    assert siege.open_sessions() == siege.sessions, "the proxy's sessions are those it had before"
    servers.wait_for(lambda: siege.backend.open_files() <= siege.files, f"descriptors to be {siege.files} again")
    servers.wait_for(lambda: siege.backend.rss_bytes() <= siege.memory + MEMORY_SLACK,
                     f"resident memory to be about {siege.memory} bytes again")
    assert len(siege.log()) < 256 * 1024, "attackers can fill the log"
    for proxy in siege.egret.proxies:
        assert "lost" not in proxy.log(), proxy.log()
    assert siege.stop() == 0, siege.backend.log()
