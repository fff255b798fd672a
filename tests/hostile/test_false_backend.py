"""A backend of a pool that is another's, or has been taken over: it sends descriptors that are not what they should be, and memory that it has not
paid for. Its keys fail; the keys of the other backend, and the proxy, do not notice."""

import fcntl
import os
import select
import socket
import struct
import threading

import pytest

from bystander import Bystander
from servers import Egret, ask, wait_for
from shm_peer import ORDERED_MEMORY, WAKE_TIMERS, FalseBackend, halted, lingering_socket, memory, timerfd

STRANGER = 65534
MIB = 1 << 20


class Pool(Egret):
    """A proxy of one worker with an honest backend, which has nearly all keys, and a false one. Told of no change: the worker's session is the first
    that the false one is asked for."""

    def backends_of_proxy(self, _index):
        return f"{self.backend_address} weight={self.honest_weight} name=honest,{self.false_address} weight=1 name=false"

    def __init__(self, honest_weight=1000, **options):
        self.honest_weight = honest_weight
        self.false_address = f"shm:@egret-false-{os.getpid()}-{os.urandom(4).hex()}"
        super().__init__(start=False, proxy={"workers": 1, "reconnect_max": "200ms", "purge_moved": "false", **options})


@pytest.fixture
def pool():
    server = Pool()
    server.false = FalseBackend(server.false_address)
    server.start_backend()
    yield server
    server.check_alive()
    assert server.proxies[0].stop() == 0, "the proxy hung"
    server.false.close()
    server.stop()


def session(pool, fds, **grant):
    """Starts the proxy, and gives what it was granted."""
    index = pool.add_proxy(ready=False)
    peer, hello = pool.false.accept()
    assert hello[:8] == b"GRETFWP1"
    pool.false.grant(peer, fds, **grant)
    return index, peer


def assert_refused(pool, fds, reason, **grant):
    session(pool, fds, **grant)
    wait_for(lambda: reason in pool.proxies[0].log(20_000), f"the proxy to say '{reason}'")
    assert pool.wait_ready(0)
    with Bystander(pool.address):
        pass


def good(**sizes):
    return [memory(size) for size in FalseBackend.sizes(None, **sizes)]


@pytest.mark.parametrize("place", [2, 3])
@pytest.mark.parametrize("features", [ORDERED_MEMORY, ORDERED_MEMORY | WAKE_TIMERS], ids=["as 0.1.0", "as today"])
def test_a_wake_up_that_is_a_pipe(pool, place, features):
    reading, writing = os.pipe()
    epoll = select.epoll()
    fds = good() + [os.eventfd(0), epoll.fileno()]
    if features & WAKE_TIMERS:
        fds[2:] = [timerfd(), timerfd()]
    fds[place] = writing
    reason = "not the timers" if features & WAKE_TIMERS else "no eventfd" if place == 2 else "0.1.0"
    assert_refused(pool, fds, reason, features=features)
    os.close(reading)


def test_a_region_that_is_not_allocated(pool):
    """Its holes would be filled by the proxy that maps them."""
    sizes = dict(lanes=32, request=65536, response=65536)
    requests, responses = FalseBackend.sizes(None, **sizes)
    fds = [memory(requests, allocated=False), memory(responses, allocated=False), timerfd(), timerfd()]
    assert_refused(pool, fds, "is not allocated", **sizes)


def test_a_region_larger_than_session_memory(pool):
    sizes = dict(lanes=256, window=8, request=65536, response=65536)
    assert_refused(pool, good() + [timerfd(), timerfd()], "more than session_memory allows", **sizes)


@pytest.mark.parametrize("number", [8, 60])
def test_descriptors_that_take_long_to_close(pool, number):
    """In the place of a region, and more of them than this one has, or any."""
    kept = [lingering_socket() for _ in range(number)]
    pool.add_proxy(ready=False)
    peer, _ = pool.false.accept()
    with halted(pool.proxies[0]):
        pool.false.grant(peer, [sender.fileno() for sender, _ in kept])
        for sender, _ in kept:
            sender.close()
    wait_for(lambda: "that nobody asked for" in pool.proxies[0].log(20_000), "the refusal")
    assert pool.wait_ready(0)
    with Bystander(pool.address):
        pass


@pytest.mark.parametrize("features", [ORDERED_MEMORY, ORDERED_MEMORY | WAKE_TIMERS], ids=["as 0.1.0", "as today"])
def test_a_wake_up_that_is_full_and_blocks(features):
    """A request for a key of the false backend finds its lane asleep and rings: an eventfd that is full, and whose O_NONBLOCK is cleared, would
    hold the worker for ever."""
    pool = Pool(honest_weight=1, op_timeout="300ms")
    pool.false = FalseBackend(pool.false_address)
    pool.start_backend()
    try:
        fds = good()
        watcher = select.epoll()
        if features & WAKE_TIMERS:
            fds += [timerfd(), timerfd()]
        else:
            fds += [os.eventfd(0, os.EFD_CLOEXEC), watcher.fileno()]
        responses = fds[1]
        for slot in range(FalseBackend.WINDOW):  # whatever its seq: the lane is asleep
            os.pwrite(responses, struct.pack("<Q", slot or FalseBackend.WINDOW), slot * FalseBackend.RESPONSE + 16)
        _, peer = session(pool, fds, features=features)
        assert peer.recv(512)[10] == 4, "ready"
        if not features & WAKE_TIMERS:
            os.eventfd_read(fds[2])  # the proxy tries whether it is one
            os.eventfd_write(fds[2], (1 << 64) - 2)
        flags = fcntl.fcntl(fds[2], fcntl.F_GETFL)
        fcntl.fcntl(fds[2], fcntl.F_SETFL, flags & ~os.O_NONBLOCK)
        wait_for(lambda: ask(pool.address, b"version\r\n").startswith(b"VERSION"), "the proxy to listen")
        # Both backends' keys, one by one: those of the false one end by op_timeout.
        answers = set()
        for number in range(40):
            answers.add(ask(pool.address, b"get key%d\r\n" % number, timeout=20))
            if b"END\r\n" in answers and len(answers) > 1:
                break
        assert b"END\r\n" in answers and len(answers) > 1, answers
        rings = os.pread(fds[0], 8, (64 + FalseBackend.WINDOW * FalseBackend.REQUEST + 63) // 64 * 64)
        assert int.from_bytes(rings[:6], "little") > 0, "the proxy never rang"
        assert ask(pool.address, b"version\r\n").startswith(b"VERSION")
        pool.check_alive()
        assert pool.proxies[0].stop() == 0, "the proxy hung"
    finally:
        pool.false.close()
        pool.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.parametrize("allowed", [False, True])
def test_a_name_that_another_user_has_taken(allowed):
    """The proxy says nothing to it; with backend_uids it does."""
    pool = Pool(**({"backend_uids": STRANGER} if allowed else {}))
    pool.start_backend()
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgid(STRANGER)
        os.setuid(STRANGER)
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server.bind("\0" + pool.false_address.removeprefix("shm:@"))
        server.listen(16)
        os.write(tell, b"listening")
        while True:
            peer, _ = server.accept()
            threading.Thread(target=lambda heard=peer: os.write(tell, heard.recv(512) or b"nothing"), daemon=True).start()
    try:
        assert os.read(told, 100) == b"listening"
        pool.add_proxy(ready=False)
        assert os.read(told, 7) == (b"GRETFWP" if allowed else b"nothing")
        if not allowed:
            wait_for(lambda: "is served by uid 65534" in pool.proxies[0].log(), "the proxy to say so")
        assert pool.wait_ready(0)
        with Bystander(pool.address):
            pass
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pool.stop()
