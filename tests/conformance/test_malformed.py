"""Malformed lines, wrong terminators, lengths that lie, bytes that are no text: the answers and what is left behind."""

import random

from dialog import Case, compare, converse
from servers import connect


def test_line_ends(oracle, subject):
    cases = [Case(text) for text in (
        b"get <k>\n", b"get <k>\r\n", b"get <k>\r\r\n", b"get <k> \r\n", b"get <k>\r \n", b"get <k>\n\r\nversion\n",
        b"version\nversion\r\nversion\n", b"\nversion\r\n", b"\n\n\n\n", b"\r\n\r\n\r\n", b"  \n", b" version\r\n", b"   version   \r\n",
        b"set <k> 0 0 1\na\r\nget <k>\r\n", b"set <k> 0 0 1\r\r\na\r\nget <k>\r\n", b"set <k> 0 0 1 \r\na\r\nget <k>\r\n",
        b"  set   <k>   0   0   1  \r\na\r\nget <k>\r\n", b"get <k>", b"get <k>\r", b"version", b"set <k> 0 0 1\r\n", b"", b"\r", b"v")]
    compare(oracle, subject, cases)


def test_value_terminators(oracle, subject):
    ends = [b"\n", b"\r", b"\n\r", b"\r\r", b"\n\n", b"  ", b"\r\n", b"\0\0", b"\r\r\n", b"x\r\n", b"xx\r\n", b"\\r\\n", b""]
    cases = []
    for command in (b"set <k> 0 0 %d", b"add <k> 0 0 %d", b"replace <k> 0 0 %d", b"append <k> 0 0 %d", b"prepend <k> 0 0 %d",
                    b"cas <k> 0 0 %d 5", b"set <k> 0 0 %d noreply"):
        for length in (0, 1, 5, 5000, 600_000):
            for end in ends:
                text = command % length + b"\r\n" + b"a" * length + end + b"get <k>\r\nversion\r\n"
                if length < 10_000 or command.startswith(b"set <k> 0 0 %d"):
                    cases.append(Case(b"set <k> 0 0 3\r\nold\r\n" + text, after=b"get <k>\r\n"))
    compare(oracle, subject, cases, at_once=50)


def test_lengths_that_lie(oracle, subject):
    cases = []
    for command in (b"set", b"add", b"append"):
        for said, sent in ((1, 0), (1, 2), (1, 3), (1, 4), (0, 1), (0, 2), (2, 1), (3, 1), (10, 3), (3, 10), (3, 4), (100, 99), (99, 100),
                           (100, 101), (100, 102), (100, 103), (5000, 100), (5000, 4999), (100, 5000), (4096, 4097),
                           (100_000, 10), (1_000_000, 999_999), (999_999, 1_000_000), (1_048_577, 5), (2_000_000, 100)):
            value = (b"0123456789" * (sent // 10 + 1))[:sent]
            text = command + b" <k> 0 0 %d\r\n" % said + value + b"\r\nversion\r\nget <k>\r\nversion\r\n"
            cases.append(Case(text, after=b"get <k>\r\n", unfinished=said > sent))
    compare(oracle, subject, cases, at_once=50)


def test_a_value_that_never_comes_whole_is_not_stored(oracle, subject):
    cases = []
    for length in (1, 100, 4096, 5000, 500_000, 1_000_000):
        for sent in {0, 1, length // 2, length - 1, length, length + 1}:
            cases.append(Case(b"set <k> 0 0 3\r\nold\r\nset <k> 0 0 %d\r\n" % length + (b"x" * length + b"\r\n")[:sent],
                              after=b"get <k>\r\n", unfinished=True))
    compare(oracle, subject, cases)


def test_values_that_look_like_commands(oracle, subject):
    values = [b"\r\n", b"\r\n\r\n", b"\r\nget <k>\r\n", b"get <k>\r\n", b"END\r\n", b"\r\nEND\r\n", b"\nquit\r\n", b"quit\r\n", b"\0" * 10,
              b"VALUE <k> 0 1\r\na\r\nEND\r\n", bytes(range(256)), bytes(range(256)) * 40, b"\r" * 100, b"\n" * 100,
              b"\x80" * 24, b"\r\n" * 3000, b"set <k> 0 0 1\r\na\r\n" * 300]
    cases = []
    for value in values:
        if b"<k>" in value:  # the key has 8 bytes, its mark 3
            length = len(value) + 5 * value.count(b"<k>")
        else:
            length = len(value)
        cases.append(Case(b"set <k> 0 0 %d\r\n" % length + value + b"\r\nget <k>\r\ngets <k> <k>\r\n", after=b"get <k>\r\n"))
    compare(oracle, subject, cases)


def test_bytes_that_are_no_text_in_keys_and_lines(oracle, subject):
    cases = []
    for byte in range(256):
        if byte in (0x0A, 0x3C, 0x3E):
            continue
        odd = bytes([byte])
        cases.append(Case(b"set <k>" + odd + b"z 0 0 1\r\na\r\nget <k>" + odd + b"z\r\nversion\r\n", after=b"get <k> <k>z\r\n"))
        cases.append(Case(b"get <k>" + odd + b"\r\nversion\r\n"))
        cases.append(Case(b"set <k> 0 0 1" + odd + b"\r\na\r\nget <k>\r\n"))
        cases.append(Case(b"incr <k> 1" + odd + b"\r\nversion\r\n"))
        if byte != 0x80:  # a first byte of 0x80 chooses the binary protocol
            cases.append(Case(odd + b"get <k>\r\nversion\r\n"))
            cases.append(Case(odd * 3 + b"\r\nversion\r\n"))
    compare(oracle, subject, cases)


def test_nul_ends_a_line_early(oracle, subject):
    cases = [Case(text) for text in (
        b"get <k>\0junk\r\nversion\r\n", b"\0\r\nversion\r\n", b"\0get <k>\r\nversion\r\n", b"version\0x\r\n", b"get\0 <k>\r\nversion\r\n",
        b"set <k> 0 0 1\0 noreply\r\na\r\nget <k>\r\n", b"set <k> 0 0 1 \0noreply\r\na\r\nget <k>\r\n", b"delete <k>\0 x y z\r\n",
        b"set <k> 0\0 0 1\r\na\r\nget <k>\r\n", b"incr <k> 1\0\r\n", b"set <k> 0 0 1\r\na\r\nget <k> \0<other>\r\n",
        b"get" + b" <k>" * 40 + b"\0" + b" <k>" * 10 + b"\r\nversion\r\n")]
    compare(oracle, subject, cases)


def test_binary_junk(oracle, subject):
    junk = random.Random(20)
    cases = []
    for _ in range(400):
        size = junk.choice((1, 2, 3, 10, 50, 200, 1000, 1800))
        data = junk.randbytes(size).replace(b"<", b"(").replace(b"\x80", b"\x81")
        cases.append(Case(data + b"\r\nversion\r\n"))
    for _ in range(200):
        size = junk.choice((10, 100, 1000))
        data = bytes(junk.choice(b"\r\n\0 getsda0159\xff") for _ in range(size))
        cases.append(Case(data + b"\r\nversion\r\n"))
    compare(oracle, subject, cases)


def test_long_lines(oracle, subject):
    """Without a newline in the first 2048 bytes memcached closes the connection, unless the line begins with get or gets."""
    cases = []
    for size in (1000, 2000, 2040, 2047, 2048):
        for start in (b"x", b"set ", b"get ", b"gets ", b"gat 0 ", b"incr ", b"delete ", b"touch ", b"  get "):
            cases.append(Case((start + b"a" * size)[:size - 1] + b"\nversion\r\n"))
            cases.append(Case((start + b"a b " * size)[:size - 1] + b"\nversion\r\n"))
    for size in (2049, 2100, 4000, 8000, 12_000, 100_000):
        for start in (b"x", b"set ", b"incr ", b"delete ", b"getx ", b" " * 101 + b"get ", b"flush_all "):
            cases.append(Case([(start + b"a" * size)[:size], b"\r\nversion\r\n"]))
    compare(oracle, subject, cases, pause=0.03)


def test_a_long_line_whole_in_one_packet(oracle, subject):
    cases = []
    for size in (2060, 4000, 8000, 12_000, 16_000):
        for start in (b"x ", b"gat 0 ", b"get ", b"delete ", b"set <k> 0 0 1 ", b"version ", b"touch <k> 0 ", b"flush_all x "):
            cases.append(Case(start + b"a " * (size // 2) + b"\r\nversion\r\n"))
            cases.append(Case(start + b" " * size + b"\r\nversion\r\n"))
    compare(oracle, subject, cases)


def test_spaces_before_a_long_get(oracle, subject):
    cases = []
    for spaces in (0, 1, 50, 100):
        line = b" " * spaces + b"get" + b" <k>" * 400
        cases.append(Case([line, b" <k>\r\nversion\r\n"]))
        cases.append(Case([line[:2100], line[2100:] + b"\r\nversion\r\n"]))
    compare(oracle, subject, cases, pause=0.03)


def test_an_endless_line_is_cut_off_while_the_client_still_sends(subject):
    with connect(subject.address) as sock:
        sock.sendall(b"a" * 4096)
        assert sock.recv(100) == b"", "the connection must be closed"
    ((answer, _),) = converse(subject.address, [Case(b"version\r\n")])
    assert answer.startswith(b"VERSION")


def test_too_large_a_value_is_thrown_away_as_it_comes(oracle, subject):
    """What looks like commands inside it is not obeyed, and the next command is found behind it."""
    junk = b"version\r\n" * 333_333 + b"..."
    text = b"set <k> 0 0 3\r\nold\r\nset <k> 0 0 %d\r\n" % len(junk) + junk + b"\r\nget <k>\r\nversion\r\n"
    compare(oracle, subject, [Case(text), Case(text.replace(b"0 0 %d" % len(junk), b"0 0 %d noreply" % len(junk)))])
