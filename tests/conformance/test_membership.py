"""The members of a pool change while clients go on: SIGHUP with another list, and no client notices anything but misses."""

import contextlib
import random
import re
import signal
import subprocess

import pytest

import servers
from pool_load import load, progress
from servers import SUT, EgretPool, ask, connect, stats_of, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="needs backends of our own")


class ChangingPool(EgretPool):
    """Its first proxy reads `backends` from a file that the test writes."""

    def __init__(self, count=5, **arguments):
        self.members = list(range(count))
        super().__init__([f"member{number}" for number in range(count)], **arguments)

    @property
    def path(self):
        return self.directory / "members.yaml"

    def line(self, number):
        return f"{self.address_of_backend(number)} name={self.names[number]}"

    def write(self):
        whole = self.path.with_suffix(".new")
        whole.write_text("backends:\n" + "".join(f"  - {self.line(number)}\n" for number in self.members))
        whole.rename(self.path)

    def proxy_argv(self, index):
        if index in self.alone:
            return super().proxy_argv(index)
        self.write()
        argv = [servers.egret_binary("egret-proxy"), "--config", self.path]
        for key, value in {"listen": self.listen_of_proxy(index), **self.proxy_options}.items():
            argv += ["--set", f"{key}={value}"]
        return argv

    def change(self, members):
        self.members = list(members)
        self.write()
        log = self.proxies[0].log
        before = len(log(1_000_000))
        self.proxies[0].signal(signal.SIGHUP)
        wait_for(lambda: re.search(r"reloaded: |reload refused", log(1_000_000)[before:]), "the reload")
        return log(1_000_000)[before:]

    def is_settled(self):
        """Whether every worker has a session with each member, and with no other."""
        return all(int(stats_of(self.address)["egret_backends_up"]) == len(self.members) for _ in range(6))


@pytest.fixture
def pool():
    server = ChangingPool()
    try:
        yield server
        server.check_alive()
    finally:
        server.stop()


def test_members_come_and_go_under_load_and_no_client_is_refused(pool):
    with load(pool) as callers:
        for members in ([0, 1, 2], [0, 1, 2, 3, 4], [4, 3, 1], [1], [1, 2, 3, 4, 0], [2, 0], [0, 1, 2, 3, 4]):
            pool.change(members)
            progress(callers)
            wait_for(pool.is_settled, f"sessions with {members}")
    # What has left holds no session any more: its backend counts none of this proxy's.
    pool.change([0, 1])
    wait_for(pool.is_settled, "two members")


def test_changes_faster_than_sessions_open(pool):
    with load(pool) as callers:
        for turn in range(30):
            pool.change(random.sample(range(5), random.randint(1, 5)))
        progress(callers)
        wait_for(pool.is_settled, "the last members")


def test_who_came_and_who_left_is_logged_by_name(pool):
    log = lambda: pool.proxies[0].log(1_000_000)
    pool.change([0, 1, 2])
    for gone in (3, 4):
        wait_for(lambda: re.search(rf"backend member{gone} \((?:shm|tcp|rdma\+tcp):.*\) is no longer in the pool", log()), "the line of who left")
    pool.change([0, 1, 2, 3])
    wait_for(lambda: re.search(r"backend member3 \((?:shm|tcp|rdma\+tcp):.*\) is in the pool now", log()), "the line of who came")


def test_a_list_that_is_refused_changes_nothing(pool):
    ask(pool.address, b"set stays 0 0 1\r\n1\r\n")
    pool.members = [0, 0]
    assert "reload refused" in pool.change([0, 0])
    assert ask(pool.address, b"get stays\r\n", b"END\r\n") == b"VALUE stays 0 1\r\n1\r\nEND\r\n"
    assert int(stats_of(pool.address)["egret_backends"]) == 5


def test_keys_of_members_that_stay_are_found(pool):
    keys = [b"kept%d" % number for number in range(300)]
    text = b"".join(b"set %s 0 0 1\r\nv\r\n" % key for key in keys)
    with contextlib.closing(connect(pool.address)) as sock:
        lines = sock.makefile("rb")
        sock.sendall(text)
        assert [lines.readline() for _ in keys] == [b"STORED\r\n"] * len(keys)
        pool.change([0, 1, 2, 3])
        wait_for(pool.is_settled, "four members")
        found = sum(ask(pool.address, b"get %s\r\n" % key, b"END\r\n") != b"END\r\n" for key in keys)
        assert found > 0.6 * len(keys), found  # four fifths of them stay where they are


def test_a_slow_upload_goes_on_while_its_backend_leaves(pool):
    value = b"y" * 400_000
    with contextlib.closing(connect(pool.address)) as sock:
        lines = sock.makefile("rb")
        sock.sendall(b"set slow 0 0 %d\r\n" % len(value) + value[:200_000])
        wait_for(pool.is_settled, "all members")
        for members in ([0, 1], [2, 3, 4]):
            pool.change(members)
        sock.sendall(value[200_000:] + b"\r\n")
        assert lines.readline() == b"STORED\r\n"


def test_a_pool_whose_members_are_not_known_answers_each_command():
    directory = servers.scratch_directory()
    address = ("127.0.0.1", servers.free_port())
    options = {"listen": "tcp:%s:%d" % address, "backends": "dns+rdma:nobody.invalid.:11311", "dns_servers": "127.0.0.1:9", "admin": ""}
    argv = [servers.egret_binary("egret-proxy")] + [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
    daemon = servers.Daemon(argv, directory, "egret-proxy")
    try:
        wait_for(lambda: "[listening]" in daemon.log(), "the proxy to serve")
        down = b"SERVER_ERROR backend unavailable\r\n"
        for line in (b"get k", b"mg k v", b"set k 0 0 1\r\nv", b"delete k", b"incr k 1", b"touch k 1", b"flush_all", b"stats items", b"stats slabs",
                     b"stats sizes", b"stats settings", b"stats reset", b"cache_memlimit 64", b"debugtime 5",
                     b"set k 0 0 300000\r\n" + b"v" * 300_000):
            assert ask(address, line + b"\r\n") == down, line
        assert ask(address, b"lru_crawler metadump all\r\n", down).endswith(down)
        assert stats_of(address)["egret_backends"] == "0"
        assert ask(address, b"version\r\n").startswith(b"VERSION ")
    finally:
        daemon.stop()


@pytest.mark.parametrize("placement", ["ketama", "rendezvous"])
def test_where_says_which_backend_holds_a_key(pool, placement):
    if placement != "ketama":
        pool.proxies[0].stop()
        pool.proxy_options["placement"] = placement
        pool.start_proxy(0)
    alone = {name: pool.add_lone_proxy(number) for number, name in enumerate(pool.names)}
    for number in range(12):
        key = f"sought{number}"
        assert ask(pool.address, f"set {key} 0 0 1\r\n1\r\n".encode()) == b"STORED\r\n"
        said = subprocess.run([servers.egret_binary("egret-proxy"), "--config", pool.path, "--set", f"placement={placement}", "--where", key],
                              capture_output=True, text=True, check=True).stdout
        owner = re.match(rf"{key}: backend (member\d) ", said)[1]
        assert f"by {placement}: " in said
        for name, address in alone.items():
            assert (ask(address, f"get {key}\r\n".encode(), b"END\r\n") != b"END\r\n") == (name == owner), said


def test_no_two_backends_begin_with_the_same_cas(pool):
    """So that the CAS of an item that was read at one of them never fits an item of another one."""
    addresses = [pool.add_lone_proxy(number) for number in range(5)]
    numbers = set()
    for address in addresses:
        assert ask(address, b"set first 0 0 1\r\n1\r\n") == b"STORED\r\n"
        numbers.add(int(ask(address, b"gets first\r\n", b"END\r\n").split()[4]))
    assert len(numbers) == len(addresses), numbers
