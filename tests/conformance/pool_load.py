"""Clients that go on while the members of a pool change: each answer is checked."""

import contextlib
import random
import re
import threading

import servers
from servers import connect, wait_for


class Caller:
    """One connection that sets a key and gets it in one write, with a number that grows. It is never refused, and never sees a
    number that is higher than the last it has set, or the bytes of another key."""

    def __init__(self, address, name, size):
        self.sock = connect(address, timeout=60)
        self.lines = self.sock.makefile("rb")
        self.name, self.size = name, size
        self.turns = self.misses = 0
        self.failure = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _turn(self, turn):
        keys = [b"%s-%d" % (self.name, random.randrange(50)) for _ in range(4)]
        text = b""
        for key in keys:
            value = (b"%s=%010d." % (key, turn)).ljust(self.size, b"x")
            text += b"set %s 0 0 %d\r\n%s\r\nget %s\r\n" % (key, len(value), value, key)
        self.sock.sendall(text)
        for key in keys:
            stored, found = self.lines.readline(), self.lines.readline()
            assert stored == b"STORED\r\n", stored
            if found == b"END\r\n":  # the key has moved in between
                self.misses += 1
                continue
            assert found == b"VALUE %s 0 %d\r\n" % (key, self.size), found
            value = self.lines.read(self.size + 2)
            number = int(re.fullmatch(rb"%s=(\d+)\.x*\r\n" % key, value)[1])
            assert number <= turn, (number, turn)
            assert self.lines.readline() == b"END\r\n"

    def _work(self):
        try:
            while not self.stopping.is_set():
                self.turns += 1
                self._turn(self.turns)
        except BaseException as failure:  # told to the test's thread
            self.failure = failure

    def stop(self):
        self.stopping.set()
        self.thread.join(60 * servers.SLACK)
        self.sock.close()


@contextlib.contextmanager
def load(server):
    callers = [Caller(server.address, b"caller%d" % number, size) for number, size in enumerate((40, 40, 3000, 50_000, 300_000))]
    try:
        yield callers
    finally:
        for caller in callers:
            caller.stop()
    for caller in callers:
        assert caller.failure is None, f"{caller.name}: {caller.failure!r}"


def progress(callers, count=3):
    before = [caller.turns for caller in callers]
    wait_for(lambda: any(caller.failure for caller in callers) or
             all(caller.turns >= turns + count for caller, turns in zip(callers, before)), "load", 60)
