"""A valid peer of the backend that asks for as much work as messages hold: each of its lanes has 1024 units in a round (rpc/slot_poller.h), and waits for
everybody else's turn with the rest. Counted work is asserted, not time."""

import re
import struct
import threading
import urllib.request

import pytest

from bystander import Bystander
from servers import Egret, wait_for
from shm_peer import OK, PING, Session, op, stats_op

LANE_WORK = 1024  # units of a lane in a round
MESSAGES = 40
ITERATE, ADMIN, RESET = 11, 12, 1

# op, ops in a message, units of each at least (backend/executor.cc, and one for any op)
DEAR = {
    "stats": (stats_op(), 192, 257),
    "lists of evicted items": (op(ITERATE, struct.pack("<IIQ", 1, 255, 0)), 140, 33),
    "resets of statistics": (op(ADMIN, struct.pack("<I", RESET)), 192, 65),
}


@pytest.fixture(scope="module")
def system():
    server = Egret(backend={"admin": "127.0.0.1:0", "partitions": 1}, proxy={"workers": 1})
    address = wait_for(lambda: re.search(r"admin address: (\S+)", server.backend.log()), "the admin address")[1]

    def figure(name):
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as page:
            return sum(int(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\d+)$", page.read().decode(), re.M))
    server.figure = figure
    yield server
    server.check_alive()
    assert server.proxies[0].stop() == 0 and server.backend.stop() == 0, "a daemon hung"
    server.stop()


class Witness(threading.Thread):
    """Another session of the same partition, with one small op after another."""

    def __init__(self, address):
        super().__init__()
        self.session, self.asked, self.stopping, self.failure = Session(address), 0, False, None

    def run(self):
        try:
            while not self.stopping:
                assert self.session.call([op(PING)]) == [(OK, b"")]
                self.asked += 1
        except BaseException as failure:  # told to the test's thread
            self.failure = failure


@pytest.mark.parametrize("what", DEAR)
def test_messages_full_of_dear_ops(system, what):
    """What 1024 units do not suffice for is put off, however full the messages are."""
    dear, ops, units = DEAR[what]
    most_in_a_round = LANE_WORK // units + 1  # ops: the last one may begin with a unit left
    before = system.figure("egret_backend_put_off_total")
    witness = Witness(system.backend_address)
    with Bystander(system.address), Session(system.backend_address, window=4) as greedy:
        witness.start()
        try:
            for _ in range(MESSAGES // 2):
                seqs = [greedy.send([dear] * ops) for _ in range(2)]
                for seq in seqs:
                    while (results := greedy.answer(seq)) is None:
                        assert not greedy.has_ended() and witness.failure is None
                    assert len(results) == ops and {code for code, _ in results} == {OK}
        finally:
            witness.stopping = True
            witness.join()
        witness.session.close()
    assert witness.failure is None and witness.asked > 0, witness.failure
    put_off = system.figure("egret_backend_put_off_total") - before
    rounds = -(-ops // most_in_a_round)
    assert put_off >= MESSAGES * (rounds - 1), f"{put_off} times, of messages that need {rounds} rounds each"


def test_small_ops_are_not_put_off(system):
    """The other side of it: whoever asks for little is served in one round."""
    with Session(system.backend_address) as modest:
        before = system.figure("egret_backend_put_off_total")
        for _ in range(200):
            assert modest.call([op(PING)] * 32) == [(OK, b"")] * 32
        assert system.figure("egret_backend_put_off_total") == before
