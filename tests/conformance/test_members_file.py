"""`backends_file`: the members of a pool follow a file, which is renamed to its place, broken, emptied and removed, while clients go on."""

import random
import re
import signal
import threading

import pytest

import servers
from pool_load import load, progress
from servers import SUT, EgretPool, stats_of, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="needs backends of our own")


class FilePool(EgretPool):
    """Its proxy has no other members than those of the file."""

    def __init__(self, **proxy):
        super().__init__(["one", "two", "three"], start=False, proxy=proxy)
        self.write(range(3))
        self.start_backend()
        self.add_proxy()

    @property
    def path(self):
        return self.directory / "members"

    def proxy_argv(self, index):
        return self.argv("egret-proxy", {"listen": self.listen_of_proxy(index), "backends_file": self.path, **self.proxy_options})

    def write(self, members, text=None):
        lines = [f"{self.address_of_backend(number)} name={self.names[number]}  # {random.random()}" for number in members]
        new = self.path.with_suffix(".new")
        new.write_text("".join(line + "\n" for line in lines) if text is None else text)
        new.rename(self.path)

    def log(self):
        return self.proxies[0].log(10_000_000)

    def says(self, pattern, since=0):
        wait_for(lambda: re.search(pattern, self.log()[since:]), f"the log to say {pattern!r}")

    def has(self, count):
        """Whether the pool has so many members, and every worker a session with each."""
        return all(figures["egret_backends"] == figures["egret_backends_up"] == str(count)
                   for figures in (stats_of(self.address) for _ in range(6)))


@pytest.fixture
def start():
    made = []

    def make(**proxy):
        made.append(FilePool(**proxy))
        return made[-1]
    yield make
    for pool in made:
        try:
            pool.check_alive()
        finally:
            pool.stop()


class Renamer:
    """Renames another file to the file's place ten times a second."""

    def __init__(self, pool):
        self.pool = pool
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work)

    def __enter__(self):
        self.thread.start()

    def _work(self):
        while not self.stopping.wait(0.1):
            self.pool.write(random.sample(range(3), random.randint(1, 3)))

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()


def test_a_file_that_is_renamed_ten_times_a_second_is_followed_and_no_client_is_refused(start):
    pool = start(backends_most_removed=100)
    changes = lambda: len(re.findall(r"\) is (?:no longer in the pool|in the pool now)", pool.log()))
    with load(pool) as callers:
        with Renamer(pool):
            wait_for(lambda: changes() >= 4, "changes of members", 60)
            progress(callers)
        for last in ([2], [0, 1, 2]):
            pool.write(last)
            wait_for(lambda count=len(last): pool.has(count), f"the last members, {last}")
            progress(callers)


def test_a_change_that_removes_most_members_waits_for_the_operator(start):
    pool = start()
    pool.write([1])
    pool.says(r"would remove 2 of 3 members, more than 50 %; a reload \(SIGHUP\) accepts it")
    assert pool.has(3)
    pool.proxies[0].signal(signal.SIGHUP)
    wait_for(lambda: pool.has(1), "one member")


def test_a_file_that_is_broken_changes_nothing_until_it_is_mended(start):
    pool = start()
    pool.write([], "rdma:10.0.0.1:11311\nnonsense\n")
    pool.says(r"members:2: .*the members before it are kept")
    pool.write([], "")
    pool.says(r"members: a pool needs at least one backend")
    assert pool.has(3)
    pool.write([0, 2])
    wait_for(lambda: pool.has(2), "two members")


def test_a_start_without_the_file_has_the_last_good_members(start):
    pool = start()
    pool.path.unlink()
    pool.says(r"members: No such file or directory; the members before it are kept")
    pool.proxies[0].stop()
    pool.start_proxy(0)
    assert pool.wait_ready(0)
    pool.says(r"the last good copy is used, \S*/members\.good")
    wait_for(lambda: pool.has(3), "three members")
    pool.write([0, 1])
    wait_for(lambda: pool.has(2), "two members")
