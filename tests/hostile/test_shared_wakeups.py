"""The wake-ups of a session are open files that both ends hold: a peer that may connect changes their flags and contents, and watches them as often as
it can. Neither another session nor the bystander notices."""

import contextlib
import fcntl
import os
import resource
import select

import pytest

from bystander import Bystander
from servers import Egret
from shm_peer import OK, ORDERED_MEMORY, PING, WAKE_TIMERS, Session, op

PEERS = 4
WATCHES = 300  # of each wake-up, by epolls of the peer's own
NESTED = 3  # the kernel allows no more than 5
TURNS = 300


@pytest.fixture(scope="module")
def system():
    server = Egret(backend={"partitions": 1}, proxy={"workers": 1})
    yield server
    server.check_alive()
    assert server.proxies[0].stop() == 0 and server.backend.stop() == 0, "a daemon hung"
    server.stop()


def spoil(fd):
    """Whoever writes to it plainly would wait for ever, and so would who reads."""
    if "eventfd" in os.readlink(f"/proc/self/fd/{fd}"):
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(fd)
        os.eventfd_write(fd, (1 << 64) - 2)
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK)


def watched(fd):
    """Epolls that wait for it, and epolls that wait for those."""
    made = []
    for number in range(WATCHES):
        made.append(select.epoll())
        made[-1].register(made[-2].fileno() if number % NESTED else fd, select.EPOLLIN)
    return made


@pytest.mark.parametrize("features", [ORDERED_MEMORY, ORDERED_MEMORY | WAKE_TIMERS], ids=["as 0.1.0", "as today"])
def test_a_peer_that_spoils_what_it_shares(system, features):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
    peers, watches = [], []
    try:
        with Bystander(system.address), Session(system.backend_address) as honest:
            for _ in range(PEERS):
                peer = Session(system.backend_address, features=features)
                peers.append(peer)
                for wakeup in peer.fds[2:]:
                    watches += watched(wakeup)
                spoil(peer.fds[3])  # by which the backend wakes the peer
            for turn in range(TURNS):
                peer = peers[turn % PEERS]
                peer.want_next()
                seq = peer.send([op(PING)])
                assert honest.call([op(PING)]) == [(OK, b"")]
                while peer.answer(seq) is None:
                    assert not peer.has_ended()
            for peer in peers:
                spoil(peer.fds[2])
            for _ in range(TURNS):
                assert honest.call([op(PING)]) == [(OK, b"")]
        system.add_proxy()
    finally:
        for each in watches + peers:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
