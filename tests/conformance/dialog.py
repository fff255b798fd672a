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

import newer_memcached
from servers import ORACLE_VERSION, SLACK, SUT, VERSION, connect

AT_ONCE = 400  # connections open at the same time in one conversation
HANG_SECONDS = 20.0
# libegret-preload.so leaves connections alone that are watched by epoll.
SELECTOR = selectors.PollSelector if "EGRET_PRELOAD_LOG" in os.environ else selectors.DefaultSelector

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
    with SELECTOR() as selector:
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
_META = re.compile(rb"(?:VA (\d+)|HD|EX|NS|NF|EN)((?: [^\r\n]+)?)\r\n")
_META_NUMBER = re.compile(rb"(?<= )([ctl])(-?\d+)(?= |$)")
_DEBUG = re.compile(rb"ME [^ ]+ exp=(-?\d+) la=(\d+) cas=(\d+) fetch=(?:yes|no) cls=(\d+) size=(\d+)\r\n")


def seconds(number):
    """A time to live, or since something, that may have ticked between two servers: in tens, rounded away from zero. Tests use
    times that are multiples of ten. Of a time in the past memcached has 2^32 less something left, by the server's own age."""
    value = int(number)
    if value >= 1 << 31:
        return b"-1"
    return b"%d" % (value if value == -1 else -(-value // 10) * 10 if value > 0 else value // 10 * 10)


class Renaming:
    """Numbers that each server deals out for itself (CAS), replaced by their order of appearance; 0 means none and stays. In a
    pool every backend has its own, so only numbers of the same key are compared there, where the answer has a key."""

    def __init__(self, of_a_pool=False):
        self.of_a_pool = of_a_pool
        self.seen = {}

    def __call__(self, number, key=None):
        if int(number) == 0:
            return b"0"
        if self.of_a_pool and key is None:
            return b"#"
        return b"#%d" % self.seen.setdefault((int(number), key if self.of_a_pool else None), len(self.seen) + 1)


def _meta_line(line, rename):
    def number(match):
        if match[1] == b"c":
            return b"c" + rename(match[2])
        return match[1] + (b"0" if match[1] == b"l" and int(match[2]) <= 3 else seconds(match[2]))

    return line[0][:line.start(2) - line.start()] + _META_NUMBER.sub(number, line[2]) + b"\r\n"


def _debug_line(line, rename):
    """Sizes and classes are each server's own."""
    text = line[0]
    start = line.start()
    for group, new in reversed([(1, seconds(line[1])), (2, b"0" if int(line[2]) <= 3 else line[2]), (3, rename(line[3])), (4, b"#"), (5, b"#")]):
        text = text[:line.start(group) - start] + new + text[line.end(group) - start:]
    return text


def without_cas(answer, of_a_pool=False, rename=None):
    """The answer with each CAS number replaced by its place of first appearance: servers number items differently, but
    two items have equal numbers on one server exactly when they have on the other. In answers to meta commands, times are rounded, too.
    Another `rename` keeps or changes the numbers otherwise."""
    out = []
    at = 0
    rename = rename or Renaming(of_a_pool)
    while at < len(answer):
        length = None
        if line := _VALUE.match(answer, at):
            out.append(answer[at:line.start(4)] + rename(line[4], line[1]) + b"\r\n" if line[4] is not None else line[0])
            length = int(line[3]) + 2
        elif line := _META.match(answer, at):
            out.append(_meta_line(line, rename))
            length = int(line[1]) + 2 if line[1] is not None else 0
        elif line := _DEBUG.match(answer, at):
            out.append(_debug_line(line, rename))
        if line:
            end = min(line.end() + (length or 0), len(answer))
            out.append(answer[line.end():end])
        else:
            end = answer.find(b"\n", at) + 1 or len(answer)
            out.append(answer[at:end])
        at = end
    return b"".join(out)


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


def with_our_version(answer):
    """What the oracle has said, as if it had the version that the subject says it has."""
    if SUT == "memcached" or answer is None:
        return answer
    return answer.replace(*(b"%d.%d.%d" % version for version in (ORACLE_VERSION, VERSION)))


def compare(oracle, subject, cases, pause=0.01, normalise=None, at_once=AT_ONCE):
    """Plays the cases on both and fails with every difference (the first 20 in full). Cases to which an oracle of its version is known to
    answer otherwise are left out: newer_memcached.py."""
    normalise = normalise or functools.partial(without_cas, of_a_pool=getattr(subject, "is_pool", False))
    cases = list(cases)
    assert cases
    cases = newer_memcached.comparable(cases)
    expected = converse(oracle.address, cases, pause, at_once)
    heard = converse(subject.address, cases, pause, at_once)
    differences = []
    for case, wanted, got in zip(cases, expected, heard):
        for which, want, have in (("answer", wanted[0], got[0]), ("after", wanted[1], got[1])):
            want = with_our_version(want)
            if want is None or normalise(want) == normalise(have):
                continue
            if not (case.unfinished and which == "answer" and normalise(have).startswith(normalise(want))):
                differences.append(describe(case, want, have, which))
    report = os.environ.get("EGRET_DIFFERENCES")
    if differences and report:
        with open(report, "a") as out:
            out.write("\n\n".join(differences) + "\n\n")
    assert not differences, f"{len(differences)} differences in {len(cases)} cases\n\n" + "\n\n".join(differences[:20])
