"""A steady load of clients that use a pool as a cache: a get, after a miss a set; now and then a set of a new version.

Each key belongs to one client, so it knows the last version that was acknowledged to it, and an older one is stale. It has one
request at a time under way, and sends the next when it is due.
"""

import dataclasses
import random
import socket
import threading
import time

VALUE_BYTES = 100
PATIENCE = 5.0  # seconds; who has had no answer by then connects again


@dataclasses.dataclass
class Event:
    """One request."""
    sent: float
    done: float
    key: int
    kind: str  # "hit", "miss", "stale", "stored", "failed"


class Client(threading.Thread):
    def __init__(self, address, keys, rate, write_share, seed):
        super().__init__(daemon=True)
        self.address, self.keys, self.rate, self.write_share = address, keys, rate, write_share
        self.rng = random.Random(seed)
        self.newest = {key: 1 for key in keys}  # that was sent
        self.acked = {key: 0 for key in keys}   # that must be read, or a newer one
        self.events = []
        self.sock = self.lines = None
        self.stopping = False
        self.failure = None

    def connect(self):
        self.sock = socket.create_connection(self.address, PATIENCE)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.settimeout(PATIENCE)
        self.lines = self.sock.makefile("rb")

    def text_of_set(self, key):
        value = (b"%d:%d:" % (key, self.newest[key])).ljust(VALUE_BYTES, b".")
        return b"set key:%d 0 0 %d\r\n%s\r\n" % (key, len(value), value)

    def preload(self):
        self.connect()
        for begin in range(0, len(self.keys), 200):
            part = self.keys[begin:begin + 200]
            self.sock.sendall(b"".join(self.text_of_set(key) for key in part))
            for key in part:
                self._note_stored(key, self._line())

    def _line(self):
        line = self.lines.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("disconnected")
        return line

    def _note_stored(self, key, line):
        if line != b"STORED\r\n":
            return "failed"
        self.acked[key] = self.newest[key]
        return "stored"

    def _set(self, key):
        self.sock.sendall(self.text_of_set(key))
        return self._note_stored(key, self._line())

    def _get(self, key):
        self.sock.sendall(b"get key:%d\r\n" % key)
        line = self._line()
        if line == b"END\r\n":
            return "miss"
        if not line.startswith(b"VALUE "):
            return "failed"
        value = self.lines.read(int(line.split()[3]) + 2)
        if self._line() != b"END\r\n":
            return "failed"
        whose, version = (int(number) for number in value.split(b":")[:2])
        if whose != key or version > self.newest[key]:
            raise AssertionError(f"a value that nobody has set: {value!r} for key:{key}")
        if version < self.acked[key]:
            return "stale"
        self.acked[key] = version
        return "hit"

    def _do(self, act, key):
        """An error line leaves the connection as it is; without an answer in time it is made anew."""
        sent = time.monotonic()
        try:
            if self.sock is None:
                self.connect()
            kind = act(key)
        except OSError:
            kind = "failed"
            self.sock = None
            time.sleep(0.01)
        self.events.append(Event(sent, time.monotonic(), key, kind))
        return kind

    def run(self):
        try:
            self._work()
        except BaseException as failure:  # told by Load
            self.failure = failure

    def _work(self):
        due = time.monotonic()
        while not self.stopping:
            due += self.rng.expovariate(self.rate)
            pause = due - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            elif pause < -1:
                due = time.monotonic()  # requests that could not be sent are not made up for
            key = self.rng.choice(self.keys)
            if self.rng.random() < self.write_share:
                self.newest[key] += 1
                self._do(self._set, key)
            elif self._do(self._get, key) == "miss":
                self._do(self._set, key)


class Load:
    """All clients. `keys` in all, `rate` requests a second in all."""

    def __init__(self, pool, keys, clients, rate, write_share):
        self.clients = [Client(pool.address, list(range(keys))[number::clients], rate / clients, write_share, number) for number in range(clients)]

    def __enter__(self):
        for client in self.clients:
            client.preload()
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.stopping = True
        for client in self.clients:
            client.join()
            if client.failure:
                raise client.failure

    def events(self, since, until):
        """Of requests that were answered within that time, in their order."""
        some = [event for client in self.clients for event in list(client.events) if since <= event.done < until]
        return sorted(some, key=lambda event: event.done)
