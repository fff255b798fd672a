"""The table of what memcached 1.6.45 answers otherwise than 1.6.18 (newer_memcached.py): each row holds for the oracle, whichever of
the two it is, and for the subject."""

from typing import NamedTuple

import pytest

from binary import NOOP, answers, noop, packet
from dialog import Case, converse, show, without_cas
from newer_memcached import NEW_BUGS, OLD_PATTERNS, OWN_LINES, ROWS, differs
from servers import ORACLE_IS_OLD, SUT


class Bug(NamedTuple):
    """Of the binary protocol: answers are (opcode, status, opaque)."""

    name: str
    request: bytes
    memcached: list
    ours: list
    why: str


UNKNOWN = 0x30
OWN_BUGS = [
    Bug("an unknown opcode with a key", packet(UNKNOWN, b"<k:24>", opaque=1) + noop(2) + noop(3), [(UNKNOWN, 0x81, 1), (NOOP, 0, 3)],
        [(UNKNOWN, 0x81, 1), (NOOP, 0, 2), (NOOP, 0, 3)], "memcached drops key and extras twice: the second time out of what follows"),
]


def conversation(row):
    """The row's request as a case, and the two answers with the case's keys in them."""
    case = Case([row.request, row.old, row.new], name=row.name)
    old, new = case.pieces[1:]
    case.pieces = case.pieces[:1]
    return case, old, new


def as_told(answer, wanted):
    """The answer in the row's form: CAS numbers renamed if the row has renamed ones, else as they are."""
    return without_cas(answer) if b"c#" in wanted or b"cas=#" in wanted else without_cas(answer, rename=lambda number, key=None: number)


def check(server, row, newer):
    case, old, new = conversation(row)
    wanted = new if newer else old
    ((answer, _),) = converse(server.address, [case])
    assert as_told(answer, wanted) == wanted, f"sent {case}\n  wanted {show(wanted)}\n  heard  {show(answer)}"


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_row(oracle, subject, row):
    check(oracle, row, newer=not ORACLE_IS_OLD)
    check(subject, row, newer=SUT == "egret" or not ORACLE_IS_OLD)


@pytest.mark.parametrize("row", OWN_LINES, ids=[row.name for row in OWN_LINES])
def test_memcacheds_own_bug_in_text(oracle, subject, row):
    check(oracle, row, newer=False)
    check(subject, row, newer=SUT == "egret")


@pytest.mark.parametrize("row", NEW_BUGS, ids=[row.name for row in NEW_BUGS])
def test_the_newer_memcacheds_own_bug(oracle, subject, row):
    check(oracle, row, newer=not ORACLE_IS_OLD)
    check(subject, row, newer=SUT != "egret" and not ORACLE_IS_OLD)


@pytest.mark.parametrize("bug", OWN_BUGS, ids=[bug.name for bug in OWN_BUGS])
def test_memcacheds_own_bug(oracle, subject, bug):
    for server, wanted in ((oracle, bug.memcached), (subject, bug.ours if SUT == "egret" else bug.memcached)):
        ((answer, _),) = converse(server.address, [Case(bug.request)])
        assert [(header[1], header[5], header[7]) for header, _ in answers(answer)[0]] == wanted


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_row_is_found_in_requests(row):
    """So that no other test compares what must differ."""
    assert row.old != row.new and row.why
    assert differs(conversation(row)[0].pieces[0], OLD_PATTERNS)
