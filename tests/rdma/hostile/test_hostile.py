"""A peer without manners against an unmodified backend, while a proxy's clients are served by it.

Each attack is one of the program `hostile`, which judges what it sees itself; here it is judged what others see of it: the
backend lives, the honest clients get right answers and lose no session, and in the end all that the attackers took
(sessions, descriptors, memory) is given back.
"""

import re
import subprocess
import threading

import pytest

import servers

MIB = 1 << 20
MEMORY_SLACK = 6 * MIB
HOSTILE = servers.BUILD / "hostile"
KILLED = "killed"
ATTACK_SECONDS = 15


def attacks():
    return subprocess.run([HOSTILE, "--list"], capture_output=True, text=True, check=True).stdout.split()


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
            while not self.stopping.wait(0.002):
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

    def check(self, turns=2 * 4 * KEYS):
        """So many more turns are answered rightly, as all were before."""
        goal = self.turns + turns
        servers.wait_for(lambda: self.failure or self.turns >= goal, "honest clients to be served")
        assert self.failure is None, self.failure

    def stop(self):
        self.stopping.set()
        self.thread.join(60 * servers.SLACK)


class Siege:
    def __init__(self):
        self.egret = servers.Egret(backend={"memory": "64MiB"}, proxy={"workers": 2})
        self.backend = self.egret.backend
        self.target = self.egret.backend_address.removeprefix("rdma:")
        self.honest = Honest(self.egret.address)
        self.honest.check()
        # What is allocated once and kept is part of where things were.
        for name in ("leave-at-every-stage", "many-queue-pairs"):
            self.attack(name)
        self.settle()
        self.sessions = self.open_sessions()
        self.files = self.backend.open_files()
        self.memory = self.backend.rss_bytes()

    def attack(self, name):
        return subprocess.run([HOSTILE, self.target, name], capture_output=True, text=True,
                              timeout=ATTACK_SECONDS * servers.SLACK)

    def log(self):
        return self.backend.log(limit=1 << 24)

    def open_sessions(self):
        """By the backend's log: those opened and not closed."""
        opened = set(re.findall(r"session (\d+) open:", self.log()))
        return opened - set(re.findall(r"session (\d+) closed", self.log()))

    def settle(self):
        """Until only the proxy's sessions are left."""
        servers.wait_for(lambda: len(self.open_sessions()) == 2, "the attackers' sessions to be closed")

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


@pytest.mark.parametrize("name", attacks())
def test_attack(siege, name):
    done = siege.attack(name)
    print(done.stdout, done.stderr)
    tail = "\n".join(siege.backend.log().splitlines()[-12:])
    assert done.returncode == (-9 if name == KILLED else 0), f"{done.stderr}\nthe backend's log:\n{tail}"
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
