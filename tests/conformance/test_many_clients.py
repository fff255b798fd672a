"""Many processes and connections at once: no answer is lost, reordered or mixed.

Four processes with six connections each. Every connection has keys of its own, whose every answer it can foretell exactly,
and shares keys with all others; a shared value carries its key, writer, version and length, and its body follows from them.
Seen from one connection, a writer's versions of a key never go back. A shared counter gives no number twice.
"""

import multiprocessing
import os
import random
import select
import time
import traceback

import pytest

from dialog import show
from servers import SLACK, SOAK_SECONDS, Memcached, SUT, connect

PROCESSES = 4
CONNECTIONS = 6
SECONDS = SOAK_SECONDS or 10
OWN_KEYS = 8
SHARED_KEYS = 24


def random_size(rng):
    kind = rng.random()
    if kind < 0.45:
        return rng.randrange(1, 100)
    if kind < 0.70:
        return rng.randrange(100, 3900)
    if kind < 0.88:
        return rng.randrange(3900, 4300)
    if kind < 0.97:
        return rng.randrange(4300, 100_000)
    return rng.randrange(100_000, 900_000)


def body(tag, length):
    return (tag * (length // len(tag) + 1))[:length]


def shared_value(key, writer, version, length):
    head = b"%s|%s|%d|%d|" % (key, writer, version, length)
    return head + body(b"%s.%d;" % (writer, version), max(0, length - len(head)))


class Stream:
    """A connection that writes and reads at the same time, so that neither side can wait for the other for ever."""

    def __init__(self, address):
        self.sock = connect(address)
        self.sock.setblocking(False)
        self.pending = memoryview(b"")
        self.buffer = bytearray()

    def send(self, data):
        assert not self.pending
        self.pending = memoryview(data)
        self._move(0)

    def _move(self, timeout):
        readable, writable, _ = select.select([self.sock], [self.sock] if self.pending else [], [], timeout)
        if writable:
            self.pending = self.pending[self.sock.send(self.pending[:1 << 18]):]
        if readable:
            piece = self.sock.recv(1 << 18)
            assert piece, f"the server closed the connection; unread: {show(bytes(self.buffer))}"
            self.buffer += piece
        return readable or writable

    def _fill(self):
        assert self._move(30 * SLACK), f"no answer for {30 * SLACK:.0f} s; unread: {show(bytes(self.buffer))}"

    def finish_sending(self):
        while self.pending:
            self._fill()

    def line(self):
        while (end := self.buffer.find(b"\r\n")) < 0:
            self._fill()
        text = bytes(self.buffer[:end])
        del self.buffer[:end + 2]
        return text

    def exactly(self, length):
        while len(self.buffer) < length:
            self._fill()
        data = bytes(self.buffer[:length])
        del self.buffer[:length]
        return data

    def values(self):
        """One answer of get: [(key, flags, data)]."""
        found = []
        while (line := self.line()) != b"END":
            word, key, flags, length = line.split(b" ")[:4]
            assert word == b"VALUE", line
            data = self.exactly(int(length) + 2)
            assert data.endswith(b"\r\n"), show(data)
            found.append((key, int(flags), data[:-2]))
        return found


class Client:
    """One connection and what it knows. `talk` sends a pipeline; `hear` checks the answers."""

    def __init__(self, address, name, rng):
        self.stream = Stream(address)
        self.name = name
        self.rng = rng
        self.own = {}          # key -> value, or missing
        self.version = 0
        self.written = {}      # (shared key, writer) -> newest version seen or written here
        self.last_count = 0
        self.counted = 0
        self.expected = []     # callables that check the next answer each
        self.answers = 0

    def talk(self):
        request = []
        budget = 1_500_000
        for _ in range(self.rng.choice([1, 2, 5, 20])):
            step = self.rng.choice([self.own_set, self.own_get, self.own_get, self.own_change, self.own_multiget, self.shared_set, self.shared_get,
                                    self.shared_multiget, self.count])
            text = step()
            request.append(text)
            budget -= len(text)
            if budget < 0:
                break
        self.stream.send(b"".join(request))

    def hear(self):
        for check in self.expected:
            check()
        self.answers += len(self.expected)
        self.expected.clear()
        self.stream.finish_sending()  # a quiet command at the end
        assert not self.stream.buffer, f"more than was asked for: {show(bytes(self.stream.buffer))}"

    def expect_line(self, wanted):
        def check():
            line = self.stream.line()
            assert line == wanted, f"{self.name}: {show(line)} instead of {show(wanted)}"
        self.expected.append(check)

    # Keys of this connection alone
    def own_key(self):
        return b"%s-own%d" % (self.name, self.rng.randrange(OWN_KEYS))

    def own_set(self):
        key = self.own_key()
        self.version += 1
        value = body(b"%s:%d," % (key, self.version), random_size(self.rng))
        self.own[key] = value
        if self.rng.random() < 0.2:
            return b"set %s 3 0 %d noreply\r\n%s\r\n" % (key, len(value), value)
        self.expect_line(b"STORED")
        return b"set %s 3 0 %d\r\n%s\r\n" % (key, len(value), value)

    def expect_own(self, keys):
        wanted = [(key, 3, self.own[key]) for key in keys if key in self.own]

        def check():
            found = self.stream.values()
            assert [(k, f) for k, f, _ in found] == [(k, f) for k, f, _ in wanted], f"{self.name} asked for {keys}, got {[k for k, _, _ in found]}"
            for (key, _, data), (_, _, value) in zip(found, wanted):
                assert data == value, f"{self.name} {key}: {show(data)} instead of {show(value)}"
        self.expected.append(check)

    def own_get(self):
        key = self.own_key()
        self.expect_own([key])
        return b"get %s\r\n" % key

    def own_multiget(self):
        keys = [self.own_key() for _ in range(self.rng.choice([2, 5, 12]))]
        size = sum(len(self.own.get(key, b"")) for key in keys)
        if size > 2_000_000:
            keys = keys[:1]
        self.expect_own(keys)
        return b"get " + b" ".join(keys) + b"\r\n"

    def own_change(self):
        key = self.own_key()
        if self.rng.random() < 0.5:
            self.expect_line(b"DELETED" if key in self.own else b"NOT_FOUND")
            self.own.pop(key, None)
            return b"delete %s\r\n" % key
        if len(self.own.get(key, b"")) > 900_000:
            return b""
        self.expect_line(b"STORED" if key in self.own else b"NOT_STORED")
        if key in self.own:
            self.own[key] += b"++"
        return b"append %s 0 0 2\r\n++\r\n" % key

    # Keys of all
    def shared_set(self):
        key = b"shared%d" % self.rng.randrange(SHARED_KEYS)
        self.version += 1
        value = shared_value(key, self.name, self.version, random_size(self.rng))
        self.expect_line(b"STORED")
        version = self.version

        def remember():
            self.written[key, self.name] = version
        self.expected.append(remember)
        return b"set %s 9 0 %d\r\n%s\r\n" % (key, len(value), value)

    def expect_shared(self, keys):
        def check():
            found = self.stream.values()
            order = [key for key, _, _ in found]
            rest = iter(keys)
            assert all(key in rest for key in order), f"{self.name} asked for {keys}, got {order}"
            for key, flags, data in found:
                in_value, writer, version, length = data.split(b"|", 4)[:4]
                assert in_value == key and flags == 9, f"{self.name}: under {key} came {show(data)}"
                assert data == shared_value(key, writer, int(version), int(length)), f"{self.name} {key}: {show(data)}"
                newest = self.written.get((key, writer), 0)
                assert int(version) >= newest, f"{self.name} {key}: {writer}'s version {int(version)} after {newest}"
                self.written[key, writer] = int(version)
        self.expected.append(check)

    def shared_get(self):
        key = b"shared%d" % self.rng.randrange(SHARED_KEYS)
        self.expect_shared([key])
        return b"get %s\r\n" % key

    def shared_multiget(self):
        keys = [b"shared%d" % n for n in self.rng.sample(range(SHARED_KEYS), self.rng.choice([2, 5]))]
        self.expect_shared(keys)
        return b"get " + b" ".join(keys) + b"\r\n"

    def count(self):
        self.counted += 1

        def check():
            number = int(self.stream.line())
            assert number > self.last_count, f"{self.name}: the counter gave {number} after {self.last_count}"
            self.last_count = number
        self.expected.append(check)
        return b"incr counter 1\r\n"


def work(addresses, number, seed, results):
    """One process: all its connections are in flight together."""
    try:
        rng = random.Random(seed + number)
        clients = [Client(addresses[n % len(addresses)], b"w%d.%d" % (number, n), rng) for n in range(CONNECTIONS)]
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for client in clients:
                client.talk()
            rng.shuffle(clients)
            for client in clients:
                client.hear()
        results.put((None, sum(c.counted for c in clients), sum(c.answers for c in clients)))
    except BaseException:  # any failure goes to the parent
        results.put((traceback.format_exc(limit=4), 0, 0))


def run(addresses, check_address):
    stream = Stream(check_address)
    stream.send(b"set counter 0 0 1\r\n0\r\n")
    assert stream.line() == b"STORED"
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    seed = int(os.environ.get("EGRET_SEED", random.SystemRandom().randrange(1 << 31)))
    processes = [context.Process(target=work, args=(addresses, n, seed, results)) for n in range(PROCESSES)]
    for process in processes:
        process.start()
    outcomes = [results.get(timeout=SECONDS + 120 * SLACK) for _ in processes]
    for process in processes:
        process.join()
    failures = [failure for failure, _, _ in outcomes if failure]
    assert not failures, f"EGRET_SEED={seed}\n" + "\n".join(failures)
    stream.send(b"get counter\r\n")
    ((_, _, value),) = stream.values()
    assert int(value) == sum(counted for _, counted, _ in outcomes)
    print(f"{sum(answers for _, _, answers in outcomes)} answers checked")


def test_over_tcp_and_the_unix_socket_together(subject):
    """memcached has but one kind of socket, so there it is TCP alone."""
    addresses = [subject.address, subject.unix_address()] if subject.is_egret else [subject.address]
    run(addresses, subject.address)


def test_over_the_unix_socket_of_memcached():
    if SUT != "memcached":
        pytest.skip("Egret's Unix socket is in the other test")
    server = Memcached(unix=True)
    run([server.address], server.address)
    server.stop()


def test_through_two_proxies(egret_only):
    """The same, half of the connections through another proxy on the same backend."""
    from servers import start_subject
    server = start_subject(proxies=2)
    try:
        run([server.addresses[0], server.addresses[1], server.unix_address(0), server.unix_address(1)], server.address)
        server.check_alive()
    finally:
        server.stop()
