"""Peers that connect and never become a session, or become one again and again: others get in, and what the backend does for them is counted
and bounded. A peer over shm is a user; the bystander's proxy and the newcomers are another one."""

import os
import re
import select
import socket
import struct
import time
import urllib.request

import pytest

from bystander import Bystander
from servers import Egret, wait_for
from shm_peer import HELLO, Peer, frame, hello, socket_name

ATTACKERS = [65534, 65533, 65532]
SILENT = 40  # of each: 120 in all
MOST_SILENT, MOST_SILENT_OF_ONE = 64, 32
NEWCOMERS = 20
# protocol/access/README.md: tokens of a peer. A connection and a frame take one each, a session one more for each MiB of its memory.
BURST, PER_SECOND = 1024, 512
ATTEMPTS = 1000  # of each of three attackers: many more than their tokens are good for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becomes other users")


class Attacker:
    """A process of another user that runs `work(tell, wait)`: tell() sends a number to the test, wait() ends when the test says so."""

    def __init__(self, uid, work):
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(60)
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                self.ours.close()
                os.setgid(uid)
                os.setuid(uid)
                work(lambda number: theirs.send(struct.pack("i", number)), lambda: theirs.recv(1))
                status = 0
            finally:
                os._exit(status)
        theirs.close()

    def hear(self):
        return struct.unpack("i", self.ours.recv(4))[0]

    def go_on(self):
        self.ours.send(b"x")

    def end(self):
        self.ours.close()
        return os.waitpid(self.pid, 0)[1]


@pytest.fixture
def system():
    server = Egret(backend={"listen": None, "allowed_uids": ",".join(map(str, ATTACKERS)), "admin": "127.0.0.1:0"}, start=False,
                   proxy={"workers": 1})
    server.backend_address = f"shm:@egret-handshakes-{os.getpid()}-{os.urandom(4).hex()}"
    server.backend_options.pop("listen")
    server.start_backend()
    server.admin = wait_for(lambda: re.search(r"admin address: (\S+)", server.backend.log()), "the admin address")[1]
    server.add_proxy()
    yield server
    server.check_alive()
    server.stop()


def metric(server, name):
    with urllib.request.urlopen(f"http://{server.admin}/metrics", timeout=60) as page:
        return int(re.search(rf"^{name} (\d+)", page.read().decode(), re.M)[1])


def connection(address):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.connect(socket_name(address))
    return sock


def is_open(sock):
    """Whether the backend has it still; nothing is ever sent to it."""
    return not select.select([sock], [], [], 0)[0]


def test_silent_connections_of_several_users_do_not_push_out_a_slow_handshake(system):
    def keep_silent(tell, wait):
        socks = [connection(system.backend_address) for _ in range(SILENT)]
        tell(len(socks))
        wait()
        tell(sum(is_open(sock) for sock in socks))
        wait()

    with Bystander(system.address), Peer(system.backend_address) as slow:
        attackers = [Attacker(uid, keep_silent) for uid in ATTACKERS]
        assert [attacker.hear() for attacker in attackers] == [SILENT] * len(ATTACKERS)
        # The backend has accepted all of them when it has served one that came later.
        with Peer(system.backend_address) as later:
            assert later.open_session()["lanes"] == 3
        for attacker in attackers:
            attacker.go_on()
        still_open = [attacker.hear() for attacker in attackers]
        assert max(still_open) <= MOST_SILENT_OF_ONE and sum(still_open) < MOST_SILENT, still_open
        assert slow.open_session()["lanes"] == 3, "the connection that was the oldest of all"
        system.add_proxy()
        for attacker in attackers:
            attacker.go_on()
        assert [attacker.end() for attacker in attackers] == [0] * len(ATTACKERS)


@pytest.mark.parametrize("says, is_served", [(frame(HELLO, b"too short"), False), (hello(window=32), True)], ids=["malformed hellos", "sessions"])
def test_a_flood_of_handshakes_costs_what_its_peer_may_cost(system, says, is_served):
    """All attackers are one user."""
    def flood(tell, wait):
        wait()
        for _ in range(ATTEMPTS):
            try:
                with connection(system.backend_address) as sock:
                    sock.send(says)
                    sock.recv(512)
            except ConnectionError:
                pass
        tell(ATTEMPTS)
        wait()

    def taken():
        return metric(system, "egret_backend_sessions_refused_total") + metric(system, "egret_backend_sessions_opened_total")

    with Bystander(system.address):
        attackers = [Attacker(ATTACKERS[0], flood) for _ in range(3)]
        before = taken()
        start = time.monotonic()
        for attacker in attackers:
            attacker.go_on()
        for _ in range(NEWCOMERS):
            with Peer(system.backend_address) as peer:
                granted = peer.open_session(window=32)
                assert granted["lanes"] == 3
        mib = granted["lanes"] * granted["window"] * (granted["request_slot"] + granted["response_slot"]) >> 20
        assert mib >= 2
        system.add_proxy()
        attempts = sum(attacker.hear() for attacker in attackers)
        after = taken()
        seconds = time.monotonic() - start
        others = NEWCOMERS + 1
        most = (BURST + PER_SECOND * seconds) / (2 + (mib if is_served else 0)) + others + len(attackers)
        assert after - before <= most, f"{after - before} handshakes of {attempts} were served in {seconds:.1f} s; the peer may have {most:.0f}"
        assert metric(system, "egret_backend_handshakes_slowed_total") > 0
        for attacker in attackers:
            attacker.go_on()
        assert [attacker.end() for attacker in attackers] == [0] * 3
