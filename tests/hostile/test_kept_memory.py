"""A peer that may connect and keeps what it was given: memory counts as its own until it lets go."""

import os
import stat

import pytest

from bystander import Bystander
from servers import Egret, egret_binary, wait_for
from shm_peer import Peer

MOST_KEPT = 16  # sessions of a peer that have ended and whose memory it has still
ATTEMPTS = 10 * MOST_KEPT  # the backend notices an end later than the peer, which opens more sessions meanwhile


@pytest.fixture(scope="module")
def system():
    server = Egret(proxy={"workers": 1})
    yield server
    server.check_alive()
    server.stop()


def test_a_peer_that_keeps_the_memory_of_sessions_that_have_ended(system):
    kept = []
    refusal = None
    with Bystander(system.address):
        for _ in range(ATTEMPTS):
            peer = Peer(system.backend_address)
            try:
                peer.open_session()
            except ConnectionRefusedError as why:
                refusal = str(why)
                peer.close()
                break
            peer.sock.close()
            kept.append(peer)
        assert refusal and "still has the memory of" in refusal, refusal
        assert len(kept) >= MOST_KEPT
        wait_for(lambda: not any(os.fstat(peer.fds[0]).st_blocks for peer in kept), "request memory to go back when a session ends")
        for peer in kept:
            peer.close()
        with Peer(system.backend_address) as peer:
            assert peer.open_session()["lanes"] == 3


def test_what_travels_is_charged_to_whoever_uses_it(system):
    """Neither wake-up is an epoll of the backend's: whoever waits for them does so by an epoll of its own."""
    with Peer(system.backend_address) as peer:
        peer.open_session()
        names = [os.readlink(f"/proc/self/fd/{fd}") for fd in peer.fds]
        assert names[2:] == ["anon_inode:[timerfd]"] * 2, names
    with Peer(system.backend_address) as peer:
        peer.open_session(features=2)  # as 0.1.0
        names = [os.readlink(f"/proc/self/fd/{fd}") for fd in peer.fds]
        assert names[2:] == ["anon_inode:[eventfd]", "anon_inode:[timerfd]"], names


def test_the_backends_socket_is_its_users_alone(system):
    assert stat.S_IMODE(os.stat(system.backend_socket).st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_a_file_of_warm_restart_that_another_user_made(tmp_path):
    import subprocess
    path = f"/dev/shm/egret-hostile-{os.getpid()}.{os.urandom(4).hex()}"
    files = [f"{path}.0", path]
    try:
        for file in files:
            with open(file, "wb") as made:
                made.write(b"x" * 100)
            os.chmod(file, 0o600)
            os.chown(file, 65534, 65534)
        run = subprocess.run([egret_binary("egret-backend"), "--set", f"listen=shm:{tmp_path}/b.sock", "--set", "memory=8MiB", "--set", "partitions=1",
                              "--set", "admin=", "--set", f"warm_restart={path}"], capture_output=True, text=True, timeout=60, check=False)
        assert run.returncode not in (0, -7) and "belongs to uid 65534" in run.stderr, run
        assert all(os.path.getsize(file) == 100 for file in files)
    finally:
        for file in files:
            os.unlink(file)
