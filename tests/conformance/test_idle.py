"""An idle system uses no CPU: with 1,000 client connections open, after load, no thread of the daemons runs even once.

No time is measured: a thread that runs at all has gone to sleep once more afterwards, or still runs.
"""

import random
import time

from dialog import Case, converse
from servers import ask, connect, wait_for

CONNECTIONS = 1000
SECONDS = 10  # how long nothing runs; one-shot timers that follow a burst (5 s after a session at most) come before that


def wakeups(subject):
    return [daemon.wakeups() for daemon in subject.daemons()]


def rests(subject):
    before = wakeups(subject)
    time.sleep(SECONDS)
    return None not in before and wakeups(subject) == before


def test_idle_with_a_thousand_connections_after_load(egret_only, subject):
    clients = [connect(subject.address) for _ in range(CONNECTIONS)]
    try:
        for turn in range(5):
            for number, client in enumerate(clients):
                client.sendall(b"set idle%d 0 0 2\r\n15\r\nget idle%d idle%d\r\nincr idle%d 1\r\n" % (number, number, turn, number))
            for number, client in enumerate(clients):
                answer = b""
                while not answer.endswith(b"\r\n16\r\n"):
                    piece = client.recv(4096)
                    assert piece, f"connection {number} was closed after {answer!r}"
                    answer += piece
        value = random.Random(1).randbytes(800_000)
        converse(subject.address, [Case(b"set <k> 0 0 %d\r\n" % len(value) + value + b"\r\n" + b"get <k>\r\n" * 10) for _ in range(10)])
        wait_for(lambda: rests(subject), f"{SECONDS} s in which no thread runs", timeout=5 * SECONDS)
        # And all of it wakes again, every connection of it.
        for number, client in enumerate(clients):
            client.sendall(b"get idle%d\r\n" % number)
        for number, client in enumerate(clients):
            answer = b""
            while not answer.endswith(b"END\r\n"):
                answer += client.recv(4096)
            assert answer == b"VALUE idle%d 0 2\r\n16\r\nEND\r\n" % number
    finally:
        for client in clients:
            client.close()
    assert ask(subject.address, b"version\r\n").startswith(b"VERSION")
