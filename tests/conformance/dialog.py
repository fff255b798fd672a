"""What clients say and what they hear: byte streams sent in pieces, whole answers, and their comparison.

A `Case` is the bytes of one client connection, cut into pieces, and optionally what another connection asks afterwards.
`converse` plays many cases at once against one server: all connections get piece 1, a pause, piece 2, and so on; after the
last piece the sending side is closed, and the answer is everything up to the peer's close. So no answer's end has to be
guessed and no test sleeps for an answer. memcached answers all it was sent before it closes, and so must the subject.

In a case's text `<name>` stands for a key of this case alone (`<k>`, `<other>`), always 8 bytes long; `<name:250>` for one
of 250 bytes. So cases cannot disturb each other, and thousands can run at once on the same server.
"""

import functools
import itertools
import os
import re
import selectors
import socket
import time

from servers import SLACK, connect

AT_ONCE = 400  # connections open at the same time in one conversation
HANG_SECONDS = 20.0

_case_numbers = itertools.count(1)
_KEY = re.compile(rb"<([a-z][a-z0-9]*)(?::(\d+))?>")


class Case:
    """One client's bytes. `pieces` is bytes or a list of bytes; `after` is asked on a second connection when all cases of
    the conversation have ended. `unfinished`: the bytes end inside a value. There memcached keeps back even the answers it
    has, until the value is whole; a subject that gives them at once is as right."""

    def __init__(self, pieces, after=None, name=None, unfinished=False):
        self.unfinished = unfinished
        self.pieces = [pieces] if isinstance(pieces, bytes) else list(pieces)
        number = next(_case_numbers)
        names = {}

        def key(match):
            index = names.setdefault(match[1], len(names))
            text = b"%c%06x%c" % (b"k"[0], number & 0xFFFFFF, b"abcdefghijklmnopqrstuvwxyz"[index])
            return text.ljust(int(match[2]), b"_") if match[2] else text

        self.pieces = [_KEY.sub(key, piece) for piece in self.pieces]
        self.after = _KEY.sub(key, after) if after else None
        self.name = name

    def __str__(self):
        said = " | ".join(show(piece) for piece in self.pieces)
        return f"{self.name}: {said}" if self.name else said


def show(data, limit=400):
    """Bytes for people: escaped, the middle of long ones left out."""
    if data is None:
        return "-"
    if len(data) > limit:
        half = limit // 2
        return f"{show(data[:half])} ...({len(data)} bytes)... {show(data[-half:])}"
    return repr(bytes(data))[2:-1].replace("\\'", "'")


class _Client:
    """One connection of a conversation; never blocks."""

    def __init__(self, address, selector):
        self.sock = connect(address)
        self.sock.setblocking(False)
        self.selector = selector
        self.outgoing = memoryview(b"")
        self.close_when_sent = False
        self.received = []
        self.open = True
        self.hung = False
        selector.register(self.sock, selectors.EVENT_READ, self)

    def send(self, data, last):
        if not self.open:
            return
        self.outgoing = memoryview(data)
        self.close_when_sent = last
        self._write()

    def _write(self):
        try:
            while len(self.outgoing):
                self.outgoing = self.outgoing[self.sock.send(self.outgoing):]
        except BlockingIOError:
            self.selector.modify(self.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, self)
            return
        except (BrokenPipeError, ConnectionResetError):
            self.outgoing = memoryview(b"")  # the peer has closed; what it said before is still to be read
        self.selector.modify(self.sock, selectors.EVENT_READ, self)
        if self.close_when_sent and self.open:
            try:
                self.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    def on_event(self, mask):
        if mask & selectors.EVENT_READ:
            try:
                data = self.sock.recv(1 << 18)
            except BlockingIOError:
                data = None
            except ConnectionResetError:
                data = b""
            if data:
                self.received.append(data)
            elif data == b"":
                self.close()
                return
        if mask & selectors.EVENT_WRITE and self.open:
            self._write()

    def close(self):
        if self.open:
            self.open = False
            self.outgoing = memoryview(b"")
            self.selector.unregister(self.sock)
            self.sock.close()

    def answer(self):
        return b"".join(self.received) + (b"<the connection stays open>" if self.hung else b"")


def _run(selector, clients, done, hang_seconds):
    """Moves bytes until done(), or until nothing has moved for hang_seconds."""
    last_progress = time.monotonic()
    while not done():
        events = selector.select(0.5)
        for key, mask in events:
            key.data.on_event(mask)
        now = time.monotonic()
        if events:
            last_progress = now
        elif now - last_progress > hang_seconds * SLACK:
            for client in clients:
                if client.open:
                    client.hung = True
                    client.close()
            return


def _converse_once(address, cases, pause, hang_seconds):
    with selectors.DefaultSelector() as selector:
        clients = [_Client(address, selector) for _ in cases]
        for turn in range(max(len(case.pieces) for case in cases)):
            if turn:
                time.sleep(pause)
            speakers = []
            for client, case in zip(clients, cases):
                if turn < len(case.pieces):
                    client.send(case.pieces[turn], last=turn == len(case.pieces) - 1)
                    speakers.append(client)
            _run(selector, clients, lambda: not any(len(c.outgoing) for c in speakers), hang_seconds)
        _run(selector, clients, lambda: not any(c.open for c in clients), hang_seconds)
        return [client.answer() for client in clients]


def converse(address, cases, pause=0.01, at_once=AT_ONCE, hang_seconds=HANG_SECONDS):
    """Plays all cases and returns [(answer, answer to case.after or None)]."""
    answers = []
    for start in range(0, len(cases), at_once):
        some = cases[start:start + at_once]
        first = _converse_once(address, some, pause, hang_seconds)
        asking = [case for case in some if case.after]
        follow = [Case([case.after]) for case in asking]
        second = iter(_converse_once(address, follow, pause, hang_seconds)) if follow else iter(())
        answers += [(answer, next(second) if case.after else None) for answer, case in zip(first, some)]
    return answers


_VALUE = re.compile(rb"VALUE ([^ ]+) (\d+) (\d+)(?: (\d+))?\r\n")


def without_cas(answer, of_a_pool=False):
    """The answer with each CAS number replaced by its place of first appearance: servers number items differently, but
    two items have equal numbers on one server exactly when they have on the other. Backends of a pool number their items
    each for itself, so there only numbers of the same key are compared."""
    out = []
    at = 0
    seen = {}
    while True:
        line = _VALUE.match(answer, at)
        if line:
            if line[4] is not None:
                order = seen.setdefault((line[4], line[1] if of_a_pool else None), len(seen) + 1)
                out.append(answer[at:line.start(4)] + b"#%d\r\n" % order)
            else:
                out.append(line[0])
            end = min(line.end() + int(line[3]) + 2, len(answer))
            out.append(answer[line.end():end])
        else:
            end = answer.find(b"\n", at) + 1
            if end == 0:
                out.append(answer[at:])
                return b"".join(out)
            out.append(answer[at:end])
        at = end


def _first_difference(left, right):
    for at, (a, b) in enumerate(zip(left, right)):
        if a != b:
            return at
    return min(len(left), len(right))


def describe(case, expected, heard, which="answer"):
    at = _first_difference(expected, heard)
    low = max(0, at - 60)
    place = f"\n  they part at byte {at}: ...{show(expected[low:at + 80])}\n                 against: ...{show(heard[low:at + 80])}"
    return (
        f"  sent:      {case}\n"
        + (f"  then asked: {show(case.after)}\n" if which == "after" else "")
        + f"  memcached: {show(expected)}\n  subject:   {show(heard)}"
        + (place if max(len(expected), len(heard)) > 200 else "")
    )


def compare(oracle, subject, cases, pause=0.01, normalise=None, at_once=AT_ONCE):
    """Plays the cases on both and fails with every difference (the first 20 in full)."""
    normalise = normalise or functools.partial(without_cas, of_a_pool=getattr(subject, "is_pool", False))
    cases = list(cases)
    assert cases
    expected = converse(oracle.address, cases, pause, at_once)
    heard = converse(subject.address, cases, pause, at_once)
    differences = []
    for case, wanted, got in zip(cases, expected, heard):
        for which, want, have in (("answer", wanted[0], got[0]), ("after", wanted[1], got[1])):
            if want is None or normalise(want) == normalise(have):
                continue
            if not (case.unfinished and which == "answer" and normalise(have).startswith(normalise(want))):
                differences.append(describe(case, want, have, which))
    report = os.environ.get("EGRET_DIFFERENCES")
    if differences and report:
        with open(report, "a") as out:
            out.write("\n\n".join(differences) + "\n\n")
    assert not differences, f"{len(differences)} differences in {len(cases)} cases\n\n" + "\n\n".join(differences[:20])
