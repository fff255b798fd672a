"""cas: the numbers differ between servers, so each server is given its own; what equals what must agree."""

import re

from dialog import Case, compare, converse, without_cas
from servers import connect


class Talker:
    """One connection that remembers CAS numbers by name: `{name}` in a request is replaced by the number read then."""

    def __init__(self, address):
        self.sock = connect(address)
        self.numbers = {}

    def say(self, text, answer_lines, learn=None):
        for name, number in self.numbers.items():
            text = text.replace(b"{" + name.encode() + b"}", number)
        self.sock.sendall(text)
        answer = b""
        while answer.count(b"\n") < answer_lines:
            piece = self.sock.recv(65536)
            assert piece, f"closed after {answer!r}"
            answer += piece
        if learn:
            self.numbers[learn] = re.search(rb"VALUE \S+ \d+ \d+ (\d+)\r\n", answer)[1]
        return without_cas(answer)


DIALOGUE = [
    (b"set K 5 0 1\r\na\r\n", 1, None),
    (b"gets K\r\n", 3, "first"),
    (b"cas K 6 0 2 {first}\r\nbb\r\n", 1, None),          # STORED
    (b"cas K 7 0 3 {first}\r\nccc\r\n", 1, None),         # EXISTS
    (b"gets K\r\n", 3, "second"),
    (b"cas K 8 0 3 {second} noreply\r\nddd\r\nget K\r\n", 3, None),
    (b"cas K 8 0 3 {second} noreply\r\neee\r\nget K\r\n", 3, None),
    (b"gets K\r\n", 3, "third"),
    (b"touch K 100\r\n", 1, None),                        # touching keeps the number
    (b"cas K 0 0 1 {third}\r\n1\r\n", 1, None),
    (b"gets K\r\n", 3, "fourth"),
    (b"gats 100 K\r\n", 3, "fifth"),
    (b"cas K 0 0 1 {fourth}\r\n2\r\n", 1, None),
    (b"gets K\r\n", 3, "sixth"),
    (b"incr K 5\r\n", 1, None),                           # a change in place is a change
    (b"cas K 0 0 1 {sixth}\r\n3\r\n", 1, None),
    (b"gets K\r\n", 3, "seventh"),
    (b"append K 0 0 1\r\n5\r\n", 1, None),
    (b"cas K 0 0 1 {seventh}\r\n3\r\n", 1, None),
    (b"gets K\r\n", 3, "eighth"),
    (b"delete K\r\n", 1, None),
    (b"cas K 0 0 1 {eighth}\r\n3\r\n", 1, None),          # NOT_FOUND
    (b"set K 0 0 1\r\na\r\n", 1, None),
    (b"cas K 0 0 1 {eighth}\r\n3\r\n", 1, None),          # EXISTS: numbers are not used again
    (b"set K 0 0 9000\r\n" + b"v" * 9000 + b"\r\n", 1, None),
    (b"gets K\r\n", 3, "large"),
    (b"cas K 0 0 20000 {large}\r\n" + b"w" * 20000 + b"\r\n", 1, None),
    (b"cas K 0 0 20000 {large}\r\n" + b"x" * 20000 + b"\r\n", 1, None),
    (b"get K\r\n", 3, None),
    (b"gets K\r\n", 3, "last"),
    (b"cas K 0 0 2000000 {last}\r\n" + b"x" * 2000000 + b"\r\nget K\r\n", 4, None),  # too large; the old value stays
    (b"cas K 0 0 3 {last}\r\nabcdexx\r\nget K\r\n", 5, None),  # a bad terminator changes nothing
    (b"cas K 0 -1 3 {last}\r\nabc\r\nget K\r\n", 2, None),  # stored, and expired at once
]


def test_a_dialogue_with_cas(oracle, subject):
    for key in (b"cas-1", b"cas-key-number-2", b"c" * 250):
        left, right = Talker(oracle.address), Talker(subject.address)
        for number, (text, count, learn) in enumerate(DIALOGUE):
            text = text.replace(b" K ", b" " + key + b" ").replace(b" K\r\n", b" " + key + b"\r\n")
            wanted = left.say(text, count, learn)
            assert right.say(text, count, learn) == wanted, f"step {number}: {DIALOGUE[number]}"


def test_numbers_are_unique_over_keys_and_changes(subject):
    text = b"".join(b"set unique%d 0 0 1\r\na\r\ngets unique%d\r\nset unique%d 0 0 1\r\nb\r\ngets unique%d\r\n" % (n, n, n, n)
                    for n in range(200))
    ((answer, _),) = converse(subject.address, [Case(text)])
    for key in range(200):
        numbers = re.findall(rb"VALUE unique%d 0 1 (\d+)\r\n" % key, answer)
        assert len(numbers) == 2 and numbers[0] != numbers[1]


def test_one_of_many_wins(oracle, subject):
    """A hundred connections use the same number: exactly one is stored, all others exist."""
    for server in (oracle, subject):
        for value in (b"v", b"w" * 5000, b"x" * 50_000):
            talker = Talker(server.address)
            talker.say(b"set race 0 0 1\r\na\r\n", 1)
            talker.say(b"gets race\r\n", 3, "n")
            number = talker.numbers["n"]
            answers = converse(server.address, [Case(b"cas race 0 0 %d %s\r\n%s\r\n" % (len(value), number, value)) for _ in range(100)])
            heard = sorted(answer for answer, _ in answers)
            assert heard == [b"EXISTS\r\n"] * 99 + [b"STORED\r\n"], (server, len(value), set(heard))


def test_error_lines_of_cas(oracle, subject):
    cases = []
    for before in (b"", b"set <k> 3 0 1\r\na\r\n"):
        for tail in (b"1", b"0", b"-1", b"x", b"1x", b"", b"18446744073709551615", b"18446744073709551616", b"1 noreply", b"x noreply",
                     b"1 noreply x", b"1 2", b"+5", b"0x5", b"-18446744073709551615"):
            cases.append(Case(before + b"cas <k> 0 0 1 " + tail + b"\r\nb\r\nget <k>\r\n", after=b"get <k>\r\n"))
    cases += [Case(text) for text in (
        b"cas\r\n", b"cas <k>\r\n", b"cas <k> 0\r\n", b"cas <k> 0 0\r\n", b"cas <k> 0 0 1\r\nb\r\n", b"cas <k> x 0 1 1\r\nb\r\n",
        b"cas <k> 0 x 1 1\r\nb\r\n", b"cas <k> 0 0 x 1\r\nb\r\n", b"cas <k> 0 0 -1 1\r\nb\r\n", b"cas <k> 0 0 1 1\r\nbcd\r\n")]
    compare(oracle, subject, cases)
