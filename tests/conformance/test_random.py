"""Random streams of commands, cut at random places, given to both servers and compared in full.

A *life* is a few hundred rounds over a dozen keys; everything in it follows from its seed. A round is one connection: a
stream of up to sixty commands in up to six pieces. A failure names the seed of the life:

    EGRET_SEED=<seed> /usr/bin/python3 -m pytest tests/conformance/test_random.py

replays that life alone. Without EGRET_SEED lives follow each other for EGRET_SOAK_SECONDS (10 s).
"""

import os
import random
import re
import time

from dialog import Case, converse, describe, without_cas
from newer_memcached import differs
from servers import ORACLE_IS_OLD, SOAK_SECONDS

ROUNDS = 150
SECONDS = SOAK_SECONDS or 10
_CAS = re.compile(rb"\r\nVALUE \S+ \d+ \d+ (\d+)(?=\r\n)")

WEIGHTS = {"get": 14, "gets": 10, "multiget": 8, "gat": 4, "set": 20, "add": 6, "replace": 6, "append": 6, "prepend": 6, "cas": 8, "incr": 8,
           "decr": 8, "delete": 6, "touch": 4, "junk": 4, "flush": 1, "other": 2}
JUNK = [b"\r\n", b"foo\r\n", b"get\r\n", b"set k 0 0\r\n", b"incr k\r\n", b"set k a 0 1\r\nx\r\n", b"set k 0 0 -1\r\n", b"delete\r\n", b"touch k\r\n",
        b"incr k x\r\n", b"set " + b"k" * 251 + b" 0 0 1\r\nx\r\n", b"gat x k\r\n", b"verbosity\r\n", b"flush_all x\r\n", b"delete k 7\r\n", b"GET k\r\n",
        b"  \r\n", b"cas k 0 0 1\r\nx\r\n", b"stats bogus\r\n"]


class Life:
    def __init__(self, seed, oracle, subject):
        self.seed = seed
        self.rng = random.Random(seed)
        self.servers = (oracle, subject)
        prefix = b"r%x" % (seed & 0xFFFFFFFF)
        self.keys = [prefix + b"-%d" % n for n in range(10)] + [prefix.ljust(250, b"L"), prefix.ljust(200, b"M")]
        self.counters = self.keys[:4]  # the only keys that incr and decr are used on
        self.bad_end = False  # whether the command just made has a wrong terminator
        self.numbers = [(b"999999999999", b"999999999999")]  # CAS numbers that mean the same item state: (oracle's, subject's)

    # One command each. They return bytes with marks "{cas N}" for the Nth known pair of CAS numbers.
    def key(self):
        return self.rng.choice(self.keys)

    def value(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.35:
            return rng.choice([b"0", b"1", b"9", b"10", b"99", b"100", b"12345", b"5 ", b"-1", b"007"])
        if kind < 0.70:
            junk = bytes(rng.choice(b"abcdefgh\r\n 0123456789\0\xff") for _ in range(rng.randrange(0, 40)))
            # incr of nothing but spaces makes memcached read on into the memory behind the item: what it finds is chance.
            return junk if junk.strip() or not junk else b"-"
        if kind < 0.90:
            return b"%06d." % rng.randrange(10**6) * rng.randrange(0, 300)
        if kind < 0.985:
            return b"%04d" % rng.randrange(10**4) * rng.randrange(900, 5000)
        return b"%04d" % rng.randrange(10**4) * rng.randrange(20_000, 200_000)

    def exptime(self):
        return self.rng.choice([b"0"] * 12 + [b"1000", b"100000", b"3000000000", b"-1", b"2592001"])

    def noreply(self):
        return b" noreply" if self.rng.random() < 0.2 else b""

    def store(self, verb):
        value = self.value()
        # No number may grow to 2^63 by pieces: memcached's answer to incr is not defined from there on.
        key = self.key() if verb not in ("append", "prepend") else self.rng.choice(self.keys[4:])
        head = b"%s %s %d %s %d" % (verb.encode(), key, self.rng.choice([0, 0, 1, 65535, 4294967295]), self.exptime(), len(value))
        if verb == "cas":
            head += b" {cas %d}" % self.rng.randrange(max(0, len(self.numbers) - 6), len(self.numbers))
        self.bad_end = self.rng.random() >= 0.97 and not ORACLE_IS_OLD  # which answers what is left of it otherwise
        end = b"\r\n" if not self.bad_end else self.rng.choice([b"\n", b"..\r\n", b"xx", b""])
        return head + self.noreply() + b"\r\n" + value + end

    def command(self, kind):
        rng = self.rng
        if kind in ("set", "add", "replace", "append", "prepend", "cas"):
            return self.store(kind)
        if kind in ("get", "gets"):
            return b"%s %s\r\n" % (kind.encode(), self.key())
        if kind == "multiget":
            count = rng.choice([2, 3, 5, 10, 23, 24, 25, 60])
            return rng.choice([b"get ", b"gets "]) + b" ".join(rng.choice(self.keys[:10]) for _ in range(count)) + b"\r\n"
        if kind == "gat":
            keys = b" ".join(self.key() for _ in range(rng.randrange(1, 4)))
            return rng.choice([b"gat ", b"gats "]) + rng.choice([b"0", b"1000", b"-1"]) + b" " + keys + b"\r\n"
        if kind in ("incr", "decr"):
            delta = rng.choice([b"1", b"5", b"95", b"1000", b"0", b"x"])
            return b"%s %s %s%s\r\n" % (kind.encode(), rng.choice(self.counters), delta, self.noreply())
        if kind == "delete":
            return b"delete %s%s\r\n" % (self.key(), self.noreply())
        if kind == "touch":
            return b"touch %s %s%s\r\n" % (self.key(), self.exptime(), self.noreply())
        if kind == "flush":
            return b"flush_all" + rng.choice([b"", b" 0"]) + self.noreply() + b"\r\n"
        if kind == "junk":
            return rng.choice(JUNK)
        return rng.choice([b"verbosity 0\r\n", b"verbosity 0 noreply\r\n", b"get none\r\n", b"delete none\r\n"])

    def stream(self):
        """One round's bytes. It ends before an incr or decr of a key that this round has read: behind an unsent answer
        memcached does not pad the number. It ends after a value with a wrong terminator, since a long value taken for a line makes
        memcached hang up without the answers it has. The empty lines at its end complete a value that lacks its terminator: when a
        stream ends inside a value, memcached keeps back the answers it has."""
        commands = []
        read = set()
        for _ in range(self.rng.choice([1, 3, 10, 60])):
            self.bad_end = False
            kind = self.rng.choices(list(WEIGHTS), weights=WEIGHTS.values())[0]
            text = self.command(kind)
            words = text.split(b"\r\n")[0].split(b" ")
            if kind in ("get", "gets", "multiget", "gat"):
                read.update(words)
            if kind in ("incr", "decr") and words[1] in read:
                break
            if ORACLE_IS_OLD and differs(re.sub(rb"\{cas \d+\}", b"1", text)):
                continue
            commands.append(text)
            if self.bad_end:
                break
        return b"".join(commands) + (b"" if ORACLE_IS_OLD else b"\r\n\r\n")

    def pieces(self, stream):
        """Cut anywhere but inside a mark, which becomes a number only when it is sent."""
        marks = [mark.span() for mark in re.finditer(rb"\{cas \d+\}", stream)]
        places = sorted(self.rng.randrange(len(stream) + 1) for _ in range(self.rng.choice([0, 0, 0, 1, 2, 5])))
        places = [place for place in places if not any(start < place < end for start, end in marks)]
        edges = [0] + places + [len(stream)]
        return [stream[a:b] for a, b in zip(edges, edges[1:])]

    def play_round(self, number):
        pieces = self.pieces(self.stream())
        answers = []
        for side, server in enumerate(self.servers):
            said = [re.sub(rb"\{cas (\d+)\}", lambda m: self.numbers[int(m[1])][side], piece) for piece in pieces]
            case = Case([b""])
            case.pieces = said
            answers.append(converse(server.address, [case], pause=0.001)[0][0])
        wanted, got = answers
        if without_cas(wanted) != without_cas(got):
            case = Case([b""])
            case.pieces = pieces
            raise AssertionError(f"round {number} of the life with EGRET_SEED={self.seed}:\n{describe(case, wanted, got)}")
        self.numbers = (self.numbers + list(zip(_CAS.findall(b"\r\n" + wanted), _CAS.findall(b"\r\n" + got))))[-50:]


def live(seed, oracle, subject):
    life = Life(seed, oracle, subject)
    for number in range(ROUNDS):
        life.play_round(number)


def test_random_streams(oracle, subject):
    if "EGRET_SEED" in os.environ:
        live(int(os.environ["EGRET_SEED"], 0), oracle, subject)
        return
    seeds = random.SystemRandom()
    end = time.monotonic() + SECONDS
    lives = 0
    while time.monotonic() < end:
        live(seeds.randrange(1 << 31), oracle, subject)
        lives += 1
    print(f"{lives} lives")
