"""What memcached 1.6.19 to 1.6.45 have mended: requests by which a client could crash memcached, make it wait or make it take memory without
bound. ASCII authentication has its own in test_client_authentication.py. A real memcached is asked only if it is as new as that."""

import re
import struct

import pytest

from binary import (ADD, APPEND, DELETE, GAT, GET, GETK, GETKQ, GETQ, INCREMENT, NOOP, PREPEND, REPLACE, SET, SETQ, TOUCH, answers, noop)
from dialog import Case, compare, converse
from servers import ORACLE_IS_OLD, ask, connect

MOST_PREFIXES = 65_536


def asked(oracle, subject):
    return [subject] if ORACLE_IS_OLD else [oracle, subject]


def check_serves(server):
    assert ask(server.address, b"set alive 0 0 1\r\nx\r\nget alive\r\n", end=b"END\r\n") == b"STORED\r\nVALUE alive 0 1\r\nx\r\nEND\r\n"


def test_lines_of_spaces_only(oracle, subject):
    cases = [Case(b" " * size + end + b"mn again\r\n") for size in [*range(10), 100, 2040, 2047] for end in (b"\r\n", b"\n")]
    cases.append(Case(b" \r\n" * 1000 + b"mn again\r\n"))
    cases += [Case(command + b" " * 500 + b"\r\nmn again\r\n") for command in (
        b"get", b"gat", b"set", b"incr", b"mg", b"ms", b"md", b"ma", b"me", b"stats detail", b"slabs", b"lru", b"watch x", b"flush_all", b"extstore")]
    compare(oracle, subject, cases)


HEADS = [SET, SETQ, ADD, REPLACE, APPEND, PREPEND, GET, GETQ, GETK, GETKQ, GAT, TOUCH, DELETE, INCREMENT, NOOP]


@pytest.mark.parametrize("body", [0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFF - 10, 0x7FFFFFFD])
def test_bodies_of_the_binary_protocol_that_overflow_a_number(oracle, subject, body):
    """Each on a connection of its own, with extras and a key as they should be: answered or hung up on, and nothing is stored."""
    cases = []
    for opcode in HEADS:
        extras = {SET: 8, SETQ: 8, ADD: 8, REPLACE: 8, GAT: 4, TOUCH: 4, INCREMENT: 20}.get(opcode, 0)
        key = b"" if opcode == NOOP else b"overflow"
        head = struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), extras, 0, 0, body, 7, 0)
        cases.append(Case(head + b"\0" * extras + key + b"x" * 1000))
    for server in asked(oracle, subject):
        for answer, _ in converse(server.address, cases):
            assert all(header[5] != 0 for header, _ in answers(answer)[0]), answer
        assert ask(server.address, b"get overflow\r\n", end=b"END\r\n") == b"END\r\n"
        ((answer, _),) = converse(server.address, [Case(noop(9))])
        assert [(header[1], header[5]) for header, _ in answers(answer)[0]] == [(NOOP, 0)]
        check_serves(server)


def test_prefixes_of_stats_detail_are_limited(oracle, subject):
    text = b"".join(b"get p%d:k\r\n" % number for number in range(MOST_PREFIXES + 2000))
    for server in asked(oracle, subject):
        assert ask(server.address, b"stats detail on\r\n") == b"OK\r\n"
        converse(server.address, [Case(text)])
        dump = ask(server.address, b"stats detail dump\r\n", end=b"END\r\n", timeout=30)
        assert dump.count(b"PREFIX ") == MOST_PREFIXES
        assert ask(server.address, b"stats detail off\r\n") == b"OK\r\n"
        assert ask(server.address, b"stats reset\r\n") == b"RESET\r\n"


def test_an_item_that_is_asked_for_more_often_than_a_16_bit_count_holds(oracle, subject):
    """In one line, while nothing is read: the item stays sound. memcached answers no more of them than it can count."""
    times = 70_000
    for server in asked(oracle, subject):
        assert ask(server.address, b"set counted 0 0 5\r\nvalue\r\n") == b"STORED\r\n"
        with connect(server.address) as sock:
            sock.sendall(b"get" + b" counted" * times + b"\r\n")
            found = b""
            while not found.endswith(b"END\r\n"):
                found += sock.recv(1 << 20)
        assert set(re.findall(rb"(?<=\r\n)[a-z]+(?=\r\n)", found)) == {b"value"}
        if server is subject:
            assert found.count(b"VALUE counted 0 5\r\n") == times
        assert ask(server.address, b"get counted\r\n", end=b"END\r\n") == b"VALUE counted 0 5\r\nvalue\r\nEND\r\n"
        assert ask(server.address, b"delete counted\r\n") == b"DELETED\r\n"
        assert ask(server.address, b"get counted\r\n", end=b"END\r\n") == b"END\r\n"


def test_meta_commands_that_fail_hold_no_item(oracle, subject):
    """Errors behind which memcached once kept a reference: more of them than are counted, and the item can still be changed and deleted."""
    failing = b"".join(line + b"\r\n" for line in (
        b"mg <k> v O" + b"o" * 40, b"md <k> C1 O" + b"o" * 40, b"ma <k> O" + b"o" * 40, b"mg <k> s k O" + b"o" * 40 + b" T30", b"md <k> x I C1"))
    case = Case([b"set <k> 0 0 5\r\nvalue\r\n" + failing * 14_000 + b"mg <k> v\r\nms <k> 3\r\nnew\r\nmg <k> v\r\nmd <k>\r\nmg <k> v\r\n"])
    for server in asked(oracle, subject):
        ((answer, _),) = converse(server.address, [case])
        assert answer.endswith(b"VA 5\r\nvalue\r\nHD\r\nVA 3\r\nnew\r\nHD\r\nEN\r\n"), answer[-200:]
