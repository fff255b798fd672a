"""Every command cut at every byte: the prefix in one packet, the rest in another; and every command byte by byte.

All cuts of a command run at the same time on connections and keys of their own, so the pause costs nothing.
"""

from dialog import Case, compare

COMMANDS = [
    b"get <k>\r\n", b"gets <k>\r\n", b"get <a> <b> <c>\r\n", b"gets <a> <b>\r\n", b"gat 100 <k>\r\n", b"gats 100 <k> <a>\r\n", b"bget <k>\r\n",
    b"set <k> 5 0 5\r\nhello\r\n", b"set <k> 5 100 5 noreply\r\nhello\r\n", b"set <k> 0 0 0\r\n\r\n", b"set <k> 0 0 2\r\n\r\n\r\n",
    b"set <k> 0 0 3\nabc\r\n", b"add <k> 5 0 5\r\nhello\r\n", b"add <new> 5 0 5\r\nhello\r\n", b"add <k> 5 0 5 noreply\r\nhello\r\n",
    b"replace <k> 5 0 5\r\nhello\r\n", b"replace <none> 5 0 5\r\nhello\r\n", b"append <k> 0 0 3\r\nabc\r\n", b"prepend <k> 0 0 3\r\nabc\r\n",
    b"append <none> 0 0 3\r\nabc\r\n", b"cas <k> 0 0 3 1\r\nabc\r\n", b"cas <none> 0 0 3 1\r\nabc\r\n",
    b"cas <k> 0 0 3 1 noreply\r\nabc\r\n", b"incr <n> 12\r\n", b"incr <n> 12 noreply\r\n", b"decr <n> 3\r\n", b"incr <none> 1\r\n",
    b"incr <k> 1\r\n", b"delete <k>\r\n", b"delete <k> noreply\r\n", b"delete <k> 0\r\n", b"delete <none>\r\n", b"touch <k> 100\r\n",
    b"touch <none> 100\r\n", b"touch <k> 100 noreply\r\n", b"verbosity 0\r\n", b"verbosity 0 noreply\r\n", b"quit\r\n",
    # Errors
    b"set <k> 0 0 x\r\nversion\r\n", b"set <k> 0 0 -1\r\nhello\r\n", b"set <k> 0 0\r\nhello\r\n", b"set <k> 0 0 3\r\nhello\r\n",
    b"set <k> 0 0 5\r\nhel\r\n\r\n", b"set <k> 0 0 3\r\nabcxx", b"set <k> 0 0 3 noreply\r\nabcde\r\n", b"foo bar\r\n", b"\r\n", b"\n", b"  \r\n",
    b"get\r\n", b"incr <n> x\r\n", b"touch <k> x\r\n", b"gat x <k>\r\n", b"delete <k> 5\r\n", b"get <k:251>\r\n", b"set <k:251> 0 0 1\r\na\r\n",
    # Several in one stream
    b"set <k> 0 0 1\r\na\r\nget <k>\r\ndelete <k>\r\nget <k>\r\n", b"get <k>\nget <k>\r\nget <k>\n",
    b"set <k> 0 0 1 noreply\r\na\r\nincr <n> 1 noreply\r\nget <k> <n>\r\n",
]
BEFORE = b"set <k> 1 0 2\r\nhi\r\nset <n> 0 0 2\r\n95\r\nset <a> 2 0 3\r\naaa\r\nset <c> 3 0 0\r\n\r\n"
AFTER = b"get <k> <n> <a> <b> <c> <new> <none>\r\n"


def expanded_length(command):
    """Bytes on the wire: a key mark stands for 8 bytes, or for as many as it says."""
    return len(Case(command).pieces[0])


class Cut(Case):
    """A command sent in pieces that end at the given places of the bytes on the wire."""

    def __init__(self, command, places):
        super().__init__([BEFORE, command], after=AFTER)
        text = self.pieces.pop()
        edges = [0] + list(places) + [len(text)]
        self.pieces += [text[a:b] for a, b in zip(edges, edges[1:])]


def test_cut_once_at_every_byte(oracle, subject):
    cases = [Cut(command, [at]) for command in COMMANDS for at in range(1, expanded_length(command))]
    compare(oracle, subject, cases, pause=0.02, at_once=600)


def test_cut_twice(oracle, subject):
    cases = []
    for command in COMMANDS:
        length = expanded_length(command)
        if length < 80:
            cases += [Cut(command, [at, at + step]) for step in (1, 2, 7) for at in range(1, length - step, 2)]
    compare(oracle, subject, cases, pause=0.01, at_once=600)


def test_byte_by_byte(oracle, subject):
    cases = [Cut(command, range(1, expanded_length(command))) for command in COMMANDS]
    compare(oracle, subject, cases, pause=0.004)


def test_large_values_cut_near_their_edges(oracle, subject):
    """Values of one and of many slots, cut around the header, the slots' ends and the terminator."""
    cases = []
    for length in (4000, 4096, 8192, 100_000):
        header = b"set <k> 0 0 %d\r\n" % length
        start = expanded_length(header)
        end = start + length
        spots = {start - 2, start - 1, start, start + 1, start + 4095, start + 4096, start + 4097, start + 2048, end - 1, end, end + 1}
        text = header + b"v" * length + b"\r\nget <k>\r\n"
        cases += [Cut(text, [at]) for at in sorted(spots) if 0 < at < end + 2]
        cases += [Cut(text, range(1000, end, max(1000, length // 20)))]
    compare(oracle, subject, cases, pause=0.01, at_once=100)


def test_large_values_in_runs_around_a_part(oracle, subject):
    """Runs of fewer than 8 KiB, which are not worth a part of their own, between longer ones; a command behind the last byte."""
    cases = []
    for length in (20_000, 100_000):
        header = b"set <k> 0 0 %d\r\n" % length
        start = expanded_length(header)
        text = header + b"".join(b"%07x." % n for n in range(length // 8)) + b"\r\nget <k>\r\ndelete <k>\r\n"
        for runs in ([8191], [8192], [8193], [16_000, 100], [100, 16_000], [30_000, 5000, 1], [1, 8191], [length - 1, 1], [length, 2, 3]):
            places, at = [], start
            for turn in range(1000):
                at += runs[turn % len(runs)]
                if at >= start + length + 20:
                    break
                places.append(at)
            cases.append(Cut(text, places))
            cases.append(Cut(text, [start, *places]))
    compare(oracle, subject, cases, pause=0.01, at_once=100)
