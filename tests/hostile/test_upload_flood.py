"""Peers of the backend that take all room for uploads, and go on sending so that none of theirs is slow: a client of another session stores values of the
largest size nevertheless, each at once."""

import contextlib
import os
import threading
import time

from bystander import Bystander
from servers import Egret, ask
from shm_peer import NO_UPLOAD, OK, OUT_OF_MEMORY, Session, abort_op, upload_op

LENGTH = 1_000_000
PART = 15_000
UPLOADS = 4  # of each session, side by side
SESSIONS = 3  # 12 MB; there is room for 8 MiB


class Flood(threading.Thread):
    """A session that holds UPLOADS uploads open. Each gets most of its bytes at once, and then one byte after another; one that was dropped begins anew."""

    def __init__(self, address, name):
        super().__init__()
        self.session, self.key = Session(address, window=4), b"flood" + name
        self.next_id, self.refused, self.failure = 1, 0, None
        self.filled, self.stopping = threading.Event(), threading.Event()

    def run(self):
        try:
            uploads = [(0, 0)] * UPLOADS  # id, bytes sent
            while not self.stopping.is_set():
                for place in range(UPLOADS):
                    uploads[place] = self.go_on(*uploads[place])
                if self.refused or all(sent > LENGTH * 0.9 for _, sent in uploads):
                    self.filled.set()
                    time.sleep(0.005)  # far less than makes an upload slow
        except BaseException as failure:  # told to the test's thread
            self.failure = failure
            self.filled.set()

    def go_on(self, number, sent):
        if number == 0:
            number, sent, self.next_id = self.next_id, 0, self.next_id + 1
        for _ in range(8):
            length = min(PART, LENGTH * 9 // 10 - sent) if sent < LENGTH * 9 // 10 else 1
            if sent + length >= LENGTH:
                return number, sent
            (code, _), = self.session.call([upload_op(number, sent, LENGTH, self.key, b"f" * length)])
            assert code in (NO_UPLOAD, OK, OUT_OF_MEMORY), code
            if code != OK:
                self.refused += 1
                self.session.call([abort_op(number, self.key)])
                return 0, 0
            sent += length
            if length == 1:
                break
        return number, sent


def test_a_flood_that_really_sends():
    server = Egret(backend={"partitions": 1, "memory": "64MiB"}, proxy={"workers": 1})
    floods = [Flood(server.backend_address, b"%d" % number) for number in range(SESSIONS)]
    with contextlib.ExitStack() as stack:
        stack.callback(server.stop)
        for flood in floods:
            stack.callback(flood.session.close)
            stack.callback(flood.join)
            stack.callback(flood.stopping.set)
            flood.start()
        for flood in floods:
            assert flood.filled.wait(60) and flood.failure is None, flood.failure
        with Bystander(server.address):
            for number in range(30):
                value = os.urandom(LENGTH // 100) * 100
                key = b"mine%d" % (number % 3)
                assert ask(server.address, b"set %s 0 0 %d\r\n%s\r\n" % (key, LENGTH, value), timeout=60) == b"STORED\r\n", f"value {number}"
                got = ask(server.address, b"get %s\r\n" % key, end=b"\r\nEND\r\n", timeout=60)
                assert got == b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, LENGTH, value), f"value {number}"
        for flood in floods:
            assert flood.failure is None and flood.is_alive(), flood.failure
        assert sum(flood.refused for flood in floods) > 0, "there was room for all of it"
        server.check_alive()
