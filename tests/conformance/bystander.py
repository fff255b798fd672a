"""A client that is served rightly while others misbehave."""

import threading
import time

from dialog import show
from servers import connect


class Bystander:
    """A well-behaved client that works all the while, in a thread; it fails the test when it is not served rightly."""

    def __init__(self, address, key=b"bystander"):
        self.address = address
        self.key = key
        self.failure = None
        self.turns = 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work)

    def __enter__(self):
        self.thread.start()
        return self

    def connect(self):
        return connect(self.address)

    def _work(self):
        try:
            with self.connect() as sock:
                lines = sock.makefile("rb")
                while not self.stopping.is_set() or self.turns < 20:
                    value = b"%d" % self.turns * 50
                    sock.sendall(b"set %s 0 0 %d\r\n%s\r\nget %s nothing\r\n" % (self.key, len(value), value, self.key))
                    heard = b"".join(lines.readline() for _ in range(4))
                    wanted = b"STORED\r\nVALUE %s 0 %d\r\n%s\r\nEND\r\n" % (self.key, len(value), value)
                    assert heard == wanted, show(heard)
                    self.turns += 1
                    time.sleep(0.002)
        except BaseException as failure:  # told to the test's thread
            self.failure = failure

    def __exit__(self, kind, *_):
        self.stopping.set()
        self.thread.join()
        if kind is None:
            assert self.failure is None, f"the bystander failed after {self.turns} turns: {self.failure!r}"
