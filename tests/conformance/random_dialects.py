"""Random requests, valid and nearly so, in the text, meta and binary protocols, from a seed.

A *history* is a list of rounds; a round is (dialect, commands, places): one connection that says the commands and is cut at those places
(fractions of the whole). Commands are bytes with marks, so that a history can be played again on other keys and servers:

    {key 3}     key 3 of the life           {raw 3}    the bytes that key 3 is in base64
    {cas 17}    CAS 17 of those heard so far, in decimal     {b 0017}   the same in 8 bytes, for the binary protocol
"""

import base64
import random
import re
import struct

import binary
import newer_memcached
import servers
from binary import count, noop, packet, store, touch
from dialog import Case, Renaming, converse, without_cas

KEYS = 12
COUNTERS = range(4)  # the only keys that are counted up and down; they are not appended to (see test_random.py)
LONG_KEY = 11  # of 248 bytes
KNOWN_CAS = 60
DIALECTS = ["text", "meta", "binary"]


def key_of(prefix, number):
    """Letters and digits, a multiple of 4 of them: text as well as base64."""
    key = b"%s%04d" % (prefix, number)
    return key.ljust(248, b"L") if number == LONG_KEY else key


def marked_as_numbers(command):
    return re.sub(rb"\{cas \d+\}", b"1", command)


class Generator:
    """Makes rounds. It knows nothing of what servers answer."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.last = False  # whether the command just made has to be the round's last
        self.counts = False  # whether it counts up or down

    def pick(self, *choices):
        return self.rng.choice(choices)

    def key(self, numbers=range(KEYS)):
        return b"{key %d}" % self.rng.choice(numbers)

    def value(self):
        kind = self.rng.random()
        if kind < 0.4:
            return self.pick(b"0", b"1", b"9", b"10", b"99", b"100", b"12345", b"5 ", b"007", b"", b"word")
        if kind < 0.75:
            junk = bytes(self.rng.choice(b"abcdefgh\r\n 0123456789\0\xff") for _ in range(self.rng.randrange(0, 40)))
            return junk if junk.strip() or not junk else b"-"
        if kind < 0.97:
            return b"%06d." % self.rng.randrange(10**6) * self.rng.randrange(0, 900)
        return b"%04d" % self.rng.randrange(10**4) * self.rng.randrange(10_000, 60_000)

    def cas(self):
        """One of the numbers that were heard last, or a wrong one."""
        return self.rng.randrange(KNOWN_CAS)

    def exptime(self):
        return self.pick(*[b"0"] * 12, b"1000", b"100000", b"-1", b"2592001")

    # The text protocol
    def text(self):
        rng = self.rng
        kind = rng.choices(["get", "many", "gat", "store", "join", "count", "delete", "touch", "odd"], [8, 4, 3, 14, 5, 6, 4, 3, 2])[0]
        noreply = b" noreply" if rng.random() < 0.2 else b""
        if kind == "get":
            return b"%s %s\r\n" % (self.pick(b"get", b"gets"), self.key())
        if kind == "many":
            return b"gets " + b" ".join(self.key() for _ in range(rng.randrange(2, 12))) + b"\r\n"
        if kind == "gat":
            return b"%s %s %s %s\r\n" % (self.pick(b"gat", b"gats"), self.exptime(), self.key(), self.key())
        if kind in ("store", "join"):
            verb = self.pick(b"set", b"set", b"add", b"replace", b"cas") if kind == "store" else self.pick(b"append", b"prepend")
            value = self.value()
            key = self.key(range(len(COUNTERS), KEYS) if kind == "join" else range(KEYS))
            number = b" {cas %d}" % self.cas() if verb == b"cas" else b""
            head = b"%s %s %d %s %d%s%s\r\n" % (verb, key, self.pick(0, 0, 1, 65535, 4294967295), self.exptime(), len(value), number, noreply)
            self.last = rng.random() < 0.02 and not servers.ORACLE_IS_OLD  # which answers what is left of it otherwise
            return head + value + (self.pick(b"\n", b"..\r\n", b"xx") if self.last else b"\r\n")
        if kind == "count":
            self.counts = True
            return b"%s %s %s%s\r\n" % (self.pick(b"incr", b"decr"), self.key(COUNTERS), self.pick(b"1", b"5", b"95", b"1000", b"0", b"x"), noreply)
        if kind == "delete":
            return b"delete %s%s\r\n" % (self.key(), noreply)
        if kind == "touch":
            return b"touch %s %s%s\r\n" % (self.key(), self.exptime(), noreply)
        return self.pick(b"foo\r\n", b"mn\r\n", b"get\r\n", b"incr {key 0}\r\n", b"set {key 5} a 0 1\r\nx\r\n", b"verbosity 0\r\n", b"flush_all\r\n")

    # The meta protocol
    GET = [b"b", b"c", b"f", b"h", b"k", b"l", b"Oq1", b"q", b"s", b"t", b"u", b"v", b"N0", b"N1000", b"N-1", b"R30", b"R5000", b"T0", b"T1000",
           b"T-1"]
    SET = [b"b", b"c", b"C{cas}", b"C{cas}", b"F0", b"F77", b"I", b"k", b"Oq2", b"q", b"T0", b"T1000", b"T-1", b"MS", b"ME", b"MR", b"MA", b"MP",
           b"C0"]
    DELETE = [b"b", b"C{cas}", b"I", b"k", b"Oq3", b"q", b"T0", b"T1000", b"T-1"]
    # Not T: memcached loses it where the number grows.
    COUNT = [b"b", b"C{cas}", b"N0", b"N1000", b"J13", b"D5", b"D95", b"D0", b"MI", b"MD", b"M+", b"M-", b"Oq4", b"q", b"t", b"c", b"v",
             b"k"]
    ODD = [b"!", b"q", b"Tx", b"T", b"Cx", b"C", b"Fx", b"Dx", b"Jx", b"MX", b"O" + b"o" * 33, b"O", b"y", b"noreply", b"Phint", b"Lhint", b"S5",
           b"0"]

    def flags(self, known):
        # Not b with k: memcached gives the key back as the item's maker wrote it.
        left_out = self.pick(b"b", b"k")
        known = [flag for flag in known if flag != left_out]
        chosen = list({flag[:1]: flag for flag in self.rng.sample(known, self.rng.choice([0, 1, 1, 2, 2, 3, 4, 6]))}.values())
        if self.rng.random() < 0.06:
            chosen.insert(self.rng.randrange(len(chosen) + 1), self.rng.choice(self.ODD))
        return b"".join(b" " + flag.replace(b"{cas}", b"{cas %d}" % self.cas()) for flag in chosen)

    def meta(self):
        kind = self.rng.choices(["mg", "ms", "md", "ma", "mn", "odd"], [12, 12, 5, 6, 2, 1])[0]
        if kind == "mg":
            return b"mg %s%s\r\n" % (self.key(), self.flags(self.GET))
        if kind == "ms":
            value = self.value()
            # A CAS may be another key's: which of two is older is not defined, and I would ask.
            left_out = self.pick(b"I", b"C{cas}")
            flags = self.flags([flag for flag in self.SET if flag != left_out])
            key = self.key(range(len(COUNTERS), KEYS) if re.search(rb"M[AP]", flags) else range(KEYS))
            # No wrong terminators: behind one, 1.6.45 gives the next item of the connection (or of another with its descriptor) that ms's CAS.
            return b"ms %s %d%s\r\n%s" % (key, len(value), flags, value) + b"\r\n"
        if kind == "md":
            return b"md %s%s\r\n" % (self.key(), self.flags(self.DELETE))
        if kind == "ma":
            self.counts = True
            return b"ma %s%s\r\n" % (self.key(COUNTERS), self.flags(self.COUNT))
        return b"mn\r\n" if kind == "mn" else self.pick(b"mg {key 3} \r\n", b"ms {key 5}\r\n", b"ms {key 5} x\r\n", b"mx {key 5}\r\n",
                                                        b"mn mn\r\n", b"me {key 99}\r\n")

    # The binary protocol
    def binary_key(self, numbers=range(KEYS)):
        """As the text client names it, or the bytes that it is in base64: the key of a meta command with flag b."""
        return self.key(numbers) if self.rng.random() < 0.8 else self.key(numbers).replace(b"key", b"raw")

    def binary(self):
        rng = self.rng
        opaque = rng.getrandbits(32)
        number = self.cas() if rng.random() < 0.15 else None
        exptime = self.pick(0, 0, 0, 0, 1000, 100_000, 2_592_001)
        kind = rng.choices(["read", "store", "join", "count", "delete", "touch", "plain", "odd"], [10, 12, 4, 6, 4, 5, 2, 1])[0]
        if kind == "read":
            request = packet(self.pick(binary.GET, binary.GETQ, binary.GETK, binary.GETKQ), self.binary_key(), opaque=opaque)
        elif kind == "store":
            verb = self.pick(binary.SET, binary.SETQ, binary.ADD, binary.ADDQ, binary.REPLACE, binary.REPLACEQ)
            request = store(verb, self.binary_key(), self.value(), self.pick(0, 0, 1, 0xFFFFFFFF), exptime, opaque=opaque)
        elif kind == "join":
            verb = self.pick(binary.APPEND, binary.PREPEND, binary.APPENDQ, binary.PREPENDQ)
            request = packet(verb, self.binary_key(range(len(COUNTERS), KEYS)), b"", self.value(), opaque=opaque)
        elif kind == "count":
            self.counts = True
            verb = self.pick(binary.INCREMENT, binary.DECREMENT, binary.INCREMENTQ, binary.DECREMENTQ)
            request = count(verb, self.key(COUNTERS), self.pick(1, 5, 95, 0), self.pick(0, 7, 100), self.pick(0, 1000, binary.NO_CREATE),
                            opaque=opaque)
        elif kind == "delete":
            request = packet(self.pick(binary.DELETE, binary.DELETEQ), self.binary_key(), opaque=opaque)
        elif kind == "touch":
            request = touch(self.pick(binary.TOUCH, binary.GAT, binary.GATQ, binary.GATK, binary.GATKQ), self.binary_key(), exptime, opaque=opaque)
        elif kind == "plain":
            return self.pick(packet(binary.NOOP, opaque=opaque), packet(binary.VERSION), packet(0x30), packet(binary.SASL_LIST_MECHS),
                             packet(binary.STAT, b"bogus"))
        else:
            self.last = True  # memcached hangs up; not of a wrong magic, where it forgets the answers that it has not sent
            return self.pick(packet(binary.GET), packet(binary.SET, b"{key 1}"), packet(binary.NOOP, extras=b"abcd"),
                             packet(binary.GET, b"{key 1}", extras=b"1234"),
                             packet(binary.DELETE, b"{key 1}", value=b"x"), packet(binary.QUIT), packet(binary.QUITQ),
                             packet(binary.INCREMENT, b"{key 1}", extras=b"x" * 8),
                             packet(binary.GET, b"k" * 251))
        return request if number is None else request[:16] + b"{b %04d}" % number + request[24:]

    def round(self):
        """It ends before a key is counted that was read in it: behind an unsent answer memcached does not pad the number."""
        dialect = self.rng.choice(DIALECTS)
        commands = []
        read = set()
        for _ in range(self.rng.choice([1, 3, 10, 40])):
            self.last = False
            self.counts = False
            command = getattr(self, dialect)()
            keys = {int(number) for number in re.findall(rb"\{(?:key|raw) (\d+)\}", command)}
            if newer_memcached.differs(marked_as_numbers(command)) or (re.match(rb"ms .* O\S{32}", command) and not servers.ORACLE_IS_OLD):
                continue
            if self.counts and keys & read:
                break
            read |= keys
            commands.append(command)
            if self.last:
                break
        if dialect != "binary" and not servers.ORACLE_IS_OLD:
            commands.append(b"\r\n\r\n")  # completes a value that lacks its terminator
        if dialect == "binary" and not self.last:
            commands.append(noop())  # else 1.6.45 may give the last CAS of this connection to the first item of one that takes its place
        return dialect, commands, sorted(self.rng.random() for _ in range(self.rng.choice([0, 0, 0, 1, 2, 5])))


class Player:
    """Plays rounds on the oracle and the subject, with keys of its own, and compares what they say."""

    def __init__(self, servers, prefix):
        self.servers = servers
        self.prefix = prefix
        self.numbers = [(999_999_999_999, 999_999_999_999)] * KNOWN_CAS  # CAS numbers of the same item state, on each

    def filled(self, command, side):
        """The command with its marks replaced. In the binary protocol a key's length is in the header, and a mark has another."""
        def mark(match):
            number = int(match[2])
            if match[1] == b"cas":
                return b"%d" % self.numbers[-1 - number][side]
            if match[1] == b"b":
                return struct.pack(">Q", self.numbers[-1 - number][side])
            key = key_of(self.prefix, number)
            return base64.b64decode(key) if match[1] == b"raw" else key

        marks = re.compile(rb"\{(key|raw|cas|b) (\d+)\}")
        if command[:1] == b"\x80" and (key := re.search(rb"\{(?:key|raw) \d+\}", command)):
            magic, opcode, key_length, extras_length, data_type, vbucket, body_length, opaque, cas = binary.HEADER.unpack_from(command)
            more = len(marks.sub(mark, key[0])) - len(key[0])
            command = binary.HEADER.pack(magic, opcode, key_length + more, extras_length, data_type, vbucket, body_length + more, opaque,
                                         cas) + command[24:]
        return marks.sub(mark, command)

    def said(self, rounds_round, side):
        _, commands, places = rounds_round
        text = b"".join(self.filled(command, side) for command in commands)
        edges = [0] + [int(place * len(text)) for place in places] + [len(text)]
        case = Case(b"")
        case.pieces = [text[a:b] for a, b in zip(edges, edges[1:])]
        return case

    def play(self, rounds_round):
        """None, or (what the oracle said, what the subject said) if they differ."""
        heard = []
        seen = []
        for side, server in enumerate(self.servers):
            ((answer, _),) = converse(server.address, [self.said(rounds_round, side)], pause=0.001)
            rename = Renaming()
            plain = binary.comparable(answer, rename=rename) if rounds_round[0] == "binary" else coarse(without_cas(answer, rename=rename))
            heard.append((plain, answer))
            seen.append([number for number, _ in rename.seen])
        if heard[0][0] != heard[1][0]:
            return heard
        self.numbers = (self.numbers + list(zip(*seen)))[-KNOWN_CAS:]
        return None


def coarse(answer):
    """A life takes longer than the seconds that without_cas rounds."""
    return re.sub(rb" ([tl])\d+(?=[ \r])", rb" \1+", answer)


def shrunk(history, fails, tries=250):
    """A shorter history that still fails: rounds are taken out, then commands of the rounds that are left."""
    def without(items, rebuild):
        nonlocal tries
        size = max(1, len(items) // 2)
        while size:
            at = 0
            while at < len(items) and tries > 0:
                fewer = items[:at] + items[at + size:]
                tries -= 1
                if fewer and fails(rebuild(fewer)):
                    items = fewer
                else:
                    at += size
            size //= 2
        return items

    history = without(history, lambda rounds: rounds)
    for number in range(len(history)):
        dialect, commands, places = history[number]

        def rebuild(some, number=number, dialect=dialect, places=places):
            return history[:number] + [(dialect, some, places)] + history[number + 1:]

        history = rebuild(without(commands, rebuild))
    return history
