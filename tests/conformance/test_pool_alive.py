"""Five backends behind three proxies, everything at once: backends are killed, stand still and return, the file of members is replaced ten
times a second, and clients go on. What is asked is answered once and in order, no value is torn or another key's, and nobody is
disconnected; afterwards every key works through every proxy. Without a gutter, and with one."""

import contextlib
import random
import re
import signal
import threading
import time

import pytest

from living_pool import FilePool
from servers import SLACK, SUT, ask, connect, stats_of, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="needs backends of our own")

BACKENDS, PROXIES = 5, 3
FAULTS = 8     # of each kind
RENAMES = 40
SIZES = (30, 400, 4000, 120_000)


class Writer:
    """A client with pipelines of all kinds of requests on keys that other proxies' clients use, too."""

    def __init__(self, number, address):
        self.number, self.address = number, address
        self.rng = random.Random(number)
        self.sock = connect(address, timeout=60)
        self.lines = self.sock.makefile("rb")
        self.turns = 0
        self.acked = {}  # the last turn whose set was acknowledged, by key
        self.stale = 0
        self.seen = {"value": 0, "miss": 0, "stored": 0, "failed": 0}
        self.failure = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    # What is stored says whose it is and by whom, over and over: half of one and half of another is seen.
    def _value(self, key):
        unit = b"%s/%d/%d;" % (key, self.number, self.turns)
        return unit * (self.rng.choice(SIZES) // len(unit) + 1)

    def _judge(self, key, value):
        unit = value[:value.find(b";") + 1]
        found = re.fullmatch(rb"(\S+)/(\d+)/(\d+);", unit)
        assert found and found[1] == key and value == unit * (len(value) // len(unit)), f"{key} has {value[:80]!r}, {len(value)} bytes"
        if int(found[2]) == self.number:
            assert int(found[3]) <= self.turns, (key, unit)
            self.stale += int(found[3]) < self.acked.get(key, 0)

    def _line(self):
        line = self.lines.readline()
        assert line.endswith(b"\r\n"), f"disconnected; the last bytes are {line!r}"
        return line

    def _is_failure(self, line):
        is_failure = line.startswith(b"SERVER_ERROR ")
        self.seen["failed"] += is_failure
        return is_failure

    def _note_stored(self, key, is_stored):
        self.seen["stored"] += is_stored
        if is_stored:
            self.acked[key] = self.turns

    # Each request and what may answer it.
    def _set(self, key):
        value = self._value(key)
        yield b"set %s 7 0 %d\r\n%s\r\n" % (key, len(value), value)
        line = self._line()
        assert line == b"STORED\r\n" or self._is_failure(line), line
        self._note_stored(key, line == b"STORED\r\n")

    def _meta_set(self, key):
        value, opaque = self._value(key), b"O%d" % self.rng.randrange(1 << 30)
        yield b"ms %s %d k %s\r\n%s\r\n" % (key, len(value), opaque, value)
        line = self._line()
        assert line == b"HD k%s %s\r\n" % (key, opaque) or self._is_failure(line), line
        self._note_stored(key, line.startswith(b"HD "))

    def _get(self, *keys):
        yield b"get " + b" ".join(keys) + b"\r\n"
        left = list(keys)  # values come in the order asked for
        while True:
            line = self._line()
            if line == b"END\r\n" or self._is_failure(line):
                return
            found = re.fullmatch(rb"VALUE (\S+) [07] (\d+)\r\n", line)
            assert found and found[1] in left, (line, keys)
            left = left[left.index(found[1]) + 1:]
            value = self.lines.read(int(found[2]) + 2)
            assert value.endswith(b"\r\n"), found[0]
            self._judge(found[1], value[:-2])
            self.seen["value"] += 1

    def _meta_get(self, key):
        opaque = b"O%d" % self.rng.randrange(1 << 30)
        yield b"mg %s k v %s\r\n" % (key, opaque)
        line = self._line()
        is_miss = line == b"EN k%s %s\r\n" % (key, opaque)
        self.seen["miss"] += is_miss
        if is_miss or self._is_failure(line):
            return
        found = re.fullmatch(rb"VA (\d+) k(\S+) (O\d+)\r\n", line)
        assert found and found[2] == key and found[3] == opaque, (line, key, opaque)
        self._judge(key, self.lines.read(int(found[1]) + 2)[:-2])

    def _delete(self, key):
        yield b"delete %s\r\n" % key
        line = self._line()
        assert line in (b"DELETED\r\n", b"NOT_FOUND\r\n") or self._is_failure(line), line

    def _touch(self, key):
        yield b"touch %s 0\r\n" % key
        line = self._line()
        assert line in (b"TOUCHED\r\n", b"NOT_FOUND\r\n") or self._is_failure(line), line

    def _requests(self):
        kinds = [self._set] * 4 + [self._meta_set] * 2 + [self._get] * 6 + [self._meta_get] * 4 + [self._delete, self._touch]
        for _ in range(self.rng.choice((1, 5, 30))):
            kind = self.rng.choice(kinds)
            count = self.rng.choice((1, 1, 10)) if kind == self._get else 1
            yield kind(*(b"key%d" % number for number in self.rng.sample(range(60), count)))

    def _work(self):
        try:
            while not self.stopping.is_set():
                self.turns += 1
                requests = list(self._requests())
                text = b"".join(next(request) for request in requests) + b"mn\r\n"
                sender = threading.Thread(target=self.sock.sendall, args=(text,))  # answers are read meanwhile
                sender.start()
                for request in requests:
                    assert next(request, "over") == "over"
                assert self._line() == b"MN\r\n"  # that many answers, no more and no less
                sender.join()
        except BaseException as failure:  # told to the test's thread
            self.failure = failure

    def stop(self):
        self.stopping.set()
        self.thread.join(120 * SLACK)
        self.sock.close()


@contextlib.contextmanager
def writers(server):
    clients = [Writer(number, server.addresses[number % PROXIES]) for number in range(4 * PROXIES)]
    try:
        yield clients
    finally:
        for client in clients:
            client.stop()
    for client in clients:
        assert client.failure is None, f"client {client.number} in turn {client.turns}: {client.failure!r}"


class Renamer(threading.Thread):
    """Replaces the file of members ten times a second."""

    def __init__(self, server):
        super().__init__()
        self.server, self.renamed, self.stopping = server, 0, threading.Event()
        self.rng = random.Random(1)

    def run(self):
        while not self.stopping.wait(0.1):
            self.server.write(self.rng.sample(range(BACKENDS), self.rng.randint(2, BACKENDS)))
            self.renamed += 1


def trouble(server, clients, go_on):
    """Backends are killed and started, stand still and go on, one after another, all at random, until go_on() says no."""
    rng = random.Random(2)
    faults = 0
    while faults < 2 * FAULTS or go_on():
        assert [(client.number, client.turns, repr(client.failure)) for client in clients if client.failure] == []
        victim = rng.randrange(BACKENDS)
        if faults % 2:
            server.kill_backend(victim)
            time.sleep(rng.uniform(0, 0.4))
            server.start_backend(victim)
        else:
            server.backends[victim].halt()
            time.sleep(rng.uniform(0, 0.8))
            server.backends[victim].signal(signal.SIGCONT)
        time.sleep(rng.uniform(0, 0.3))
        faults += 1


def is_whole(server):
    """Whether each worker of each proxy has a session with each backend."""
    return all(rows["egret_backends"] == rows["egret_backends_up"] == str(BACKENDS)
               for address in server.addresses for rows in (stats_of(address) for _ in range(6)))


class AlivePool(FilePool):
    """With spare backends, which only serve as gutter and never fail, or without."""

    def __init__(self, gutter):
        self.gutter = [f"gutter{number}" for number in range(gutter)]
        super().__init__([f"member{number}" for number in range(BACKENDS)] + self.gutter, start=False, proxy={"op_timeout": "300ms"})
        if gutter:
            self.proxy_options["failover"] = "gutter"
            self.proxy_options["gutter"] = ",".join(self.line(number).strip() for number in range(BACKENDS, BACKENDS + gutter))
        self.write(range(BACKENDS))
        self.start_backend()


@pytest.mark.parametrize("gutter", [0, 2])
def test_everything_at_once_and_each_request_is_answered_once_and_in_order(gutter):
    server = AlivePool(gutter)
    try:
        for _ in range(PROXIES):
            server.add_proxy()
        with writers(server) as clients:
            renamer = Renamer(server)
            renamer.start()
            try:
                trouble(server, clients, lambda: renamer.renamed < RENAMES or min(server.changes(index) for index in range(PROXIES)) < 5)
            finally:
                renamer.stopping.set()
                renamer.join()
            server.write(range(BACKENDS))
            wait_for(lambda: is_whole(server), "all members in all proxies", 60)
            turns = [client.turns for client in clients]
            wait_for(lambda: any(client.failure for client in clients) or all(client.turns > turn + 3 for client, turn in zip(clients, turns)),
                     "all clients to be served", 60)
        server.check_alive()
        seen = {kind: sum(client.seen[kind] for client in clients) for kind in clients[0].seen}
        assert min(seen.values()) > 0, seen
        every_key_works(server)
    finally:
        server.stop()


def every_key_works(server):
    """What is set through one proxy is what each of them gets."""
    keys = [b"after%d" % number for number in range(150)]
    for turn, address in enumerate(server.addresses):
        for key in keys:
            assert ask(address, b"set %s 0 0 %d\r\n%s-%d\r\n" % (key, len(key) + 2, key, turn)) == b"STORED\r\n"
        wanted = b"".join(b"VALUE %s 0 %d\r\n%s-%d\r\n" % (key, len(key) + 2, key, turn) for key in keys) + b"END\r\n"
        for other in server.addresses:
            assert ask(other, b"get " + b" ".join(keys) + b"\r\n", b"END\r\n") == wanted
