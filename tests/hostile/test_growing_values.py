"""A backend of a pool that answers: its values grow while the proxy reads them. The proxy has taken memory for the small ones only, so all but one wait,
and keys of the honest backend are served meanwhile."""

import contextlib
import fcntl
import mmap
import os
import struct
import threading

from bystander import Bystander
from servers import Egret, ask, connect, wait_for
from shm_peer import TFD_IOC_SET_TICKS, FalseBackend, _xxhash, memory, timerfd

GET, CHUNK, PING = 1, 5, 13
OK, HIT, MISS, CHANGED = 0, 1, 2, 11
EXTRAS = {0: 8, 1: 8, 5: 16, 7: 8, 8: 8, 9: 8}  # bytes that bits of an op's options add
SMALL, LARGE = 100_000, 900_000
LIMIT = "1MiB"  # of large_value_memory: all of the small ones, and one of the large
KEYS = 4
SHAPE = {"lanes": 64, "window": 4, "request": 4096, "response": 65536}
HASH_SEED = 4  # FalseBackend's


def lane_of(key):
    """Answers of a lane are taken in order, so each key that is tried has a lane of its own."""
    return (_xxhash(key, len(key), HASH_SEED) >> 32) * SHAPE["lanes"] >> 32


def ops_of(body):
    """(code, key, fixed fields) of each."""
    at = 0
    while at < len(body):
        code, key_length, options, value_length = struct.unpack_from("<BBHI", body, at)
        fixed = {GET: 0, CHUNK: 16, PING: 0}[code]
        fields = body[at + 8:at + 8 + fixed]
        at += 8 + fixed + sum(size for bit, size in EXTRAS.items() if options >> bit & 1)
        yield code, body[at:at + key_length], fields
        at += key_length + value_length


def result(code, value=b"", cut=None):
    """`cut`: version and length of the whole value."""
    fields = struct.pack("<QI", *cut) if cut else b""
    return struct.pack("<BBBBI", code, 4 if cut else 0, 0, 0, len(value)) + fields + value


class Growing(FalseBackend):
    """Answers from a thread. Values of `keys` are small; when their first chunks are asked for, they have grown. The large ones' chunks are answered once
    `goes_on` is set; who has asked for some is in `asked`."""

    def __init__(self, address):
        super().__init__(address)
        self.begun = set()
        self.keys, self.seen, self.asked, self.grown, self.restarted = set(), set(), set(), set(), set()
        self.goes_on, self.stopping, self.failure = threading.Event(), threading.Event(), None
        self.thread = threading.Thread(target=self.run)

    def serve(self):
        """The one session that a proxy of one worker makes."""
        peer, _ = self.accept()
        fds = [memory(size) for size in self.sizes(**SHAPE)] + [timerfd(), timerfd()]
        self.grant(peer, fds, **SHAPE)
        self.requests, self.responses = (mmap.mmap(fd, os.fstat(fd).st_size) for fd in fds[:2])
        self.wakeup = fds[3]
        self.thread.start()

    def run(self):
        try:
            next_seqs, held = [1] * SHAPE["lanes"], []
            while not self.stopping.is_set():
                for lane, seq in enumerate(next_seqs):
                    at = SHAPE["lanes"] * 64 + (lane * SHAPE["window"] + seq % SHAPE["window"]) * SHAPE["request"]
                    if struct.unpack_from("<Q", self.requests, at)[0] == seq:
                        length, = struct.unpack_from("<I", self.requests, at + 16)
                        held.append((lane, seq, list(ops_of(self.requests[at + 24:at + 24 + length]))))
                        assert all(lane_of(key) == lane for code, key, _ in held[-1][2] if code != PING)
                        next_seqs[lane] += 1
                held = [each for each in held if not self.answer(*each)]
        except BaseException as failure:  # told to the test's thread
            self.failure = failure

    def answer(self, lane, seq, ops):
        """Whether it could be answered."""
        for code, key, fields in ops:
            if code == CHUNK and struct.unpack_from("<Q", fields)[0] == 1:
                self.begun.add(key)
                if len(self.begun) < KEYS:  # nothing grows before memory is taken for all of the small ones
                    return False
            if code == CHUNK and struct.unpack_from("<Q", fields)[0] == 2:
                self.asked.add(key)
                if not self.goes_on.is_set():
                    return False
        body = b"".join(self.result_of(*each) for each in ops)
        head = struct.pack("<IHBBII", len(body), len(ops), 0, 0, 0, 0)
        seed = (2 + seq * 0x9E3779B97F4A7C15) % 2**64  # the nonce is 2
        at = (lane * SHAPE["window"] + seq % SHAPE["window"]) * SHAPE["response"]
        self.responses[at + 8:at + 40 + len(body)] = struct.pack("<QQ", _xxhash(head, len(head), seed), 0) + head + body
        self.responses[at:at + 8] = struct.pack("<Q", seq)
        fcntl.ioctl(self.wakeup, TFD_IOC_SET_TICKS, struct.pack("<Q", 1))
        return True

    def result_of(self, code, key, fields):
        if code == PING:
            return result(OK)
        if code == GET:
            self.seen.add(key)
            if key not in self.keys:
                return result(MISS)
            if key in self.grown:
                self.restarted.add(key)
                return result(HIT, b"x" * 64, (2, LARGE))
            return result(HIT, b"x" * 64, (1, SMALL))
        version, _, length = struct.unpack("<QII", fields)
        if version == 1:
            self.grown.add(key)
            return result(CHANGED)
        return result(HIT, b"x" * length)

    def close(self):
        self.stopping.set()
        if self.thread.is_alive():
            self.thread.join()
        super().close()


class Pool(Egret):
    def backends_of_proxy(self, _index):
        return f"{self.backend_address} weight=20 name=honest,{self.false_address} weight=1 name=false"


def keys_of(pool):
    """Such as belong to the false backend, each of another lane."""
    names = [b"key%d" % number for number in range(1000)]
    assert ask(pool.address, b"get " + b" ".join(names) + b"\r\n", end=b"END\r\n") == b"END\r\n"
    chosen = list({lane_of(key): key for key in pool.false.seen if key in names}.values())
    assert len(chosen) > KEYS
    return chosen


def test_values_that_grow_while_they_are_read():
    # Told of no change: the worker's session is the only one that the false backend is asked for.
    pool = Pool(start=False, proxy={"workers": 1, "large_value_memory": LIMIT, "op_timeout": "60s", "purge_moved": "false"})
    pool.false_address = f"shm:@egret-growing-{os.getpid()}-{os.urandom(4).hex()}"
    with contextlib.ExitStack() as stack:
        stack.callback(pool.stop)
        pool.false = Growing(pool.false_address)
        stack.callback(pool.false.close)
        pool.start_backend()
        pool.add_proxy(ready=False)
        pool.false.serve()
        assert pool.wait_ready(0)
        *names, other = keys_of(pool)[:KEYS + 1]
        pool.false.keys = set(names)
        with Bystander(pool.address, key=next(key for key in (b"bystander%d" % number for number in range(100)) if is_honest(pool, key))):
            clients = [stack.enter_context(connect(pool.address)) for _ in names]
            for client, key in zip(clients, names):
                client.sendall(b"get %s\r\n" % key)
            wait_for(lambda: pool.false.failure or len(pool.false.asked) > 1 or (len(pool.false.restarted) == KEYS and pool.false.asked),
                     "the values to have grown")
            for _ in range(3):  # whoever does not wait for memory has asked by the time this is answered
                assert ask(pool.address, b"get %s\r\n" % other) == b"END\r\n"
            assert pool.false.failure is None
            assert len(pool.false.asked) == 1, f"{len(pool.false.asked)} values of {LARGE} bytes are read at once"
            pool.false.goes_on.set()
            for client, key in zip(clients, names):
                with client.makefile("rb") as answer:
                    assert answer.readline() == b"VALUE %s 0 %d\r\n" % (key, LARGE)
                    assert answer.read(LARGE + 7) == b"x" * LARGE + b"\r\nEND\r\n"
        assert pool.false.failure is None
        pool.check_alive()
        assert pool.proxies[0].stop() == 0, "the proxy hung"


def is_honest(pool, key):
    before = set(pool.false.seen)
    ask(pool.address, b"get %s\r\n" % key, end=b"END\r\n")
    return key not in pool.false.seen - before and key not in before
