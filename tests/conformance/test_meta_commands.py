"""The meta commands: every flag of each, alone and in pairs, in every state of the item; modes, quiet pipelines, base64 keys, errors.

Where 1.6.45 answers otherwise, newer_memcached.py has the row and these tests leave the case out.
"""

import base64
import itertools
import random

import newer_memcached
from dialog import Case, compare, without_cas
from servers import ask
from test_cuts import Cut, expanded_length


def lines(*texts):
    return b"".join(text + b"\r\n" for text in texts)


def compare_all(oracle, subject, cases, **options):
    """Those that both versions of memcached answer alike."""
    cases = list(cases)
    alike = newer_memcached.comparable(cases)
    assert alike
    compare(oracle, subject, alike, **options)


# What an item may be before the command under test.
STATES = {
    "missing": b"",
    "there": lines(b"ms <k> 5 F5", b"hello"),
    "empty": lines(b"ms <k> 0", b""),
    "read": lines(b"ms <k> 5 F4294967295", b"hello", b"mg <k> v"),
    "with a time to live": lines(b"set <k> 7 100 5", b"hello"),
    "a number": lines(b"set <k> 0 0 2", b"17"),
    "stale": lines(b"ms <k> 5 T100", b"hello", b"md <k> I T30"),
    "stale and won": lines(b"ms <k> 5", b"hello", b"md <k> I", b"mg <k> v"),
    "made by mg": lines(b"mg <k> N30 v"),
    "made by ma": lines(b"ma <k> N0 J50"),  # in a number that grows, memcached forgets T: newer_memcached.py
    "expired": lines(b"ms <k> 5 T-1", b"hello"),
}
AFTERWARDS = lines(b"mg <k> v f t s h c", b"mg <k> l t c v u")
GET_FLAGS = [b"b", b"c", b"f", b"h", b"k", b"l", b"Oabc", b"q", b"s", b"t", b"u", b"v", b"N30", b"R30", b"R200", b"T60", b"T-1", b"T0", b"N-1"]


def flag_lists(flags, seed, more=60):
    """None, each, every pair in both orders, and some longer lists."""
    yield ()
    yield from itertools.product(flags)
    yield from itertools.permutations(flags, 2)
    chance = random.Random(seed)
    for _ in range(more):
        yield tuple(chance.sample(flags, chance.randrange(3, 9)))


def with_flags(head, flags):
    return b" ".join([head, *flags])


def test_mg_flags_in_every_state(oracle, subject):
    cases = []
    for state, before in STATES.items():
        for flags in flag_lists(GET_FLAGS, state):
            cases.append(Case(before + lines(with_flags(b"mg <k>", flags), b"mn") + AFTERWARDS, after=lines(b"get <k>"), name=state))
    compare_all(oracle, subject, cases)


SET_FLAGS = [b"b", b"c", b"C1", b"C0", b"F9", b"F0", b"I", b"k", b"Oxyz", b"q", b"T30", b"T-1", b"T0", b"MS", b"ME", b"MA", b"MP", b"MR", b"N50",
             b"v",
             b"t", b"f", b"h", b"l", b"u", b"R30", b"J5", b"D5", b"Phint", b"Lhint"]


def test_ms_flags_in_every_state(oracle, subject):
    cases = []
    for state, before in STATES.items():
        for flags in flag_lists(SET_FLAGS, state, more=200):
            if state in ("missing", "there", "stale") or len(flags) != 2:
                cases.append(Case(before + lines(with_flags(b"ms <k> 3", flags), b"new", b"mn") + AFTERWARDS, after=lines(b"gets <k>"), name=state))
    compare_all(oracle, subject, cases)


DELETE_FLAGS = [b"b", b"C1", b"C0", b"I", b"k", b"Oxyz", b"q", b"T30", b"T-1", b"v", b"c", b"f", b"s", b"t", b"u", b"N5", b"J5", b"D5", b"MS",
                b"F5", b"Phint"]


def test_md_flags_in_every_state(oracle, subject):
    cases = []
    for state, before in STATES.items():
        for flags in flag_lists(DELETE_FLAGS, state):
            cases.append(Case(before + lines(with_flags(b"md <k>", flags), b"mn") + AFTERWARDS, after=lines(b"get <k>"), name=state))
    compare_all(oracle, subject, cases)


COUNT_FLAGS = [b"b", b"C1", b"N30", b"N0", b"N-1", b"J13", b"J0", b"D5", b"D0", b"D18446744073709551615", b"T60", b"T-1", b"MI", b"MD", b"M+",
               b"M-", b"Oxyz",
               b"q", b"t", b"c", b"v", b"k", b"f", b"s", b"h", b"u", b"l"]


def test_ma_flags_in_every_state(oracle, subject):
    cases = []
    for state in ("missing", "there", "empty", "a number", "made by ma", "expired"):
        for flags in flag_lists(COUNT_FLAGS, state):
            # In pieces: behind an unsent answer that holds the item, memcached does not pad a shorter number.
            cases.append(Case([STATES[state], lines(with_flags(b"ma <k>", flags), b"mn"), AFTERWARDS], after=lines(b"get <k>"), name=state))
    compare_all(oracle, subject, cases, pause=0.03)


def test_stale_win_and_recache(oracle, subject):
    """One client wins, the others are told so; what is set ends it; an older set leaves it stale."""
    reader = b"mg <k> v c t"
    scripts = [
        [b"md <k> I", reader, reader, reader, b"ms <k> 3\r\nnew", reader, reader],
        [b"md <k> I T30", reader, b"md <k> I T30", reader, reader],
        [b"md <k> I T-1", reader],
        [b"md <k> I", reader, b"ms <k> 3 C1 I\r\nnew", reader, reader, b"ms <k> 3 C1\r\nnew", reader],
        [b"md <k> I", reader, b"ms <k> 3 C999999999999 I\r\nnew", reader],
        [b"ms <k> 3 C1 I\r\nnew", reader, reader], [b"ms <k> 3 I\r\nnew", reader, reader],
        [b"ms <k> 3 C1 I MR\r\nnew", reader, reader], [b"ms <k> 3 C1 I ME\r\nnew", reader], [b"ms <k> 3 C1 I MA\r\nnew", reader, reader],
        [b"ms <k> 3 C1 MA\r\nnew", b"ms <k> 3 C1 MP\r\nnew", b"ms <k> 3 C1 ME\r\nnew", b"ms <k> 3 C1 MR\r\nnew", b"ms <k> 3 C1 MS\r\nnew", reader],
        [b"md <k> I q", b"mn", reader, reader], [b"md <k> I k Oa", reader], [b"md <k> C1 I", reader], [b"md <k> C1", reader],
        [b"md <k> C1 q", reader],
        [b"mg <k> R200 T100", b"mg <k> R200 t", b"mg <k> R200 t"], [b"mg <k> T100 R200 v", b"mg <k> R200", b"touch <k> 100", b"mg <k> R30",
                                                                    b"mg <k> R200"],
        [b"mg <k> R30", b"mg <k> T100", b"mg <k> R30", b"mg <k> R200", b"ms <k> 3 T100\r\nnew", b"mg <k> R200", b"mg <k> R200"],
        [b"md <k>", b"mg <k> N30 v t", b"mg <k> N30 v t", b"mg <k> v t", b"add <k> 0 0 1\r\nx", b"ms <k> 3 T0\r\nnew", b"mg <k> N30 v t"],
        [b"md <k>", b"mg <k> N30 R200 v t", b"mg <k> N30 R200 v t"], [b"md <k>", b"mg <k> N100 v t k Oa", b"md <k> I", b"mg <k> v", b"mg <k> v"],
        [b"md <k> I", b"get <k>", b"gets <k>", b"mg <k> v", b"mg <k> v"], [b"md <k> I", b"append <k> 0 0 1\r\nx", reader, reader],
        [b"md <k> I", b"touch <k> 100", reader, reader], [b"md <k> I", b"gat 100 <k>", reader], [b"md <k> I", b"set <k> 0 0 1\r\nx", reader],
        [b"set <k> 0 0 1\r\n5", b"md <k> I", b"incr <k> 1", reader, reader], [b"set <k> 0 0 1\r\n5", b"md <k> I", b"ma <k> v", reader],
        [b"md <k> I", b"mg <k>", b"delete <k>", reader], [b"md <k> I", b"replace <k> 0 0 1\r\nx", reader],
        [b"md <k> I", b"mg <k> q v", b"mg <k> q v", b"mn"],
    ]
    compare_all(oracle, subject, [Case([STATES["there"]] + [lines(step) for step in script], after=lines(b"mg <k> v t")) for script in scripts],
                pause=0.01)


def test_the_cas_that_an_item_has(oracle, subject):
    """Commands with the right CAS, and with others; a conversation cannot use what it hears, so these ask the servers one by one."""
    for command in (b"ms %s 3 C%d c\r\nnew\r\n", b"ms %s 3 C%d I\r\nnew\r\n", b"ms %s 3 C%d MR\r\nnew\r\n", b"ms %s 3 C%d MA\r\nnew\r\n",
                    b"ms %s 3 C%d MP\r\nnew\r\n", b"ms %s 3 C%d ME\r\nnew\r\n", b"ms %s 3 C%d MS T30 F6\r\nnew\r\n", b"md %s C%d\r\n",
                    b"md %s C%d I\r\n",
                    b"md %s C%d I T30\r\n", b"ma %s C%d v\r\n", b"ma %s C%d MD D2 v\r\n"):
        for off in (0, -1, 1):
            key = b"cas-known-%d" % random.getrandbits(48)
            heard = []
            for server in (oracle, subject):
                answer = ask(server.address, b"ms %s 2 c\r\n41\r\n" % key)
                number = int(answer.removeprefix(b"HD c"))
                heard.append(ask(server.address, command % (key, number + off) + b"mg %s v f t\r\nmg %s v\r\nmn\r\n" % (key, key), end=b"MN\r\n"))
            assert without_cas(heard[0]) == without_cas(heard[1]), (command, off, heard)


def test_quiet_pipelines(oracle, subject):
    keys = [b"<a>", b"<b>", b"<c>", b"<d>"]
    text = lines(b"ms <a> 1", b"1", b"ms <b> 2 T100", b"bb")
    quiet = [
        b"".join(lines(b"mg " + key + b" v q k O%d" % n) for n, key in enumerate(keys)),
        b"".join(lines(b"ms " + key + b" 1 q\r\n%d" % n) for n, key in enumerate(keys)),
        b"".join(lines(b"ms " + key + b" 1 q ME\r\n%d" % n) for n, key in enumerate(keys)),
        b"".join(lines(b"ms " + key + b" 1 q MR k\r\n%d" % n) for n, key in enumerate(keys)),
        b"".join(lines(b"ms " + key + b" 1 q C5 O%d\r\n%d" % (n, n)) for n, key in enumerate(keys)),
        b"".join(lines(b"md " + key + b" q O%d" % n) for n, key in enumerate(keys)),
        b"".join(lines(b"md " + key + b" q I") for key in keys), b"".join(lines(b"ma " + key + b" q v O1") for key in keys),
        b"".join(lines(b"ma " + key + b" q N0 J5") for key in keys), b"".join(lines(b"mg " + key + b" q N30 v") for key in keys),
        b"".join(lines(b"mg " + key + b" q s Oo q", b"mg " + key + b" !") for key in keys),
        lines(b"ms <a> 2 q", b"abc"), lines(b"ms <a> x q"), lines(b"ms <a> 2000000 q", b"x" * 2_000_000), lines(b"mg <a> q" * 2),
        lines(b"ma <b> q"),
    ]
    cases = [Case(text + body + end + b"mg <a> v\r\n") for body in quiet for end in (b"mn\r\n", b"mn\r\nmn\r\n", b"")]
    cases.append(Case(b"".join(b"ms <a> 4 q\r\n%04d\r\nmg <a> v\r\n" % n for n in range(1000)) + b"mn\r\n"))
    cases.append(Case(b"".join(b"mg <none> v q k O%d\r\n" % n for n in range(2000)) + b"mn\r\n"))
    compare_all(oracle, subject, cases)


def encoded(raw):
    return base64.b64encode(raw)


def test_base64_keys(oracle, subject):
    """A key of 8 letters and digits is base64 of 6 bytes."""
    cases = []
    for command in (b"mg <k> b v", b"mg <k> b k v", b"mg <k> k v b Oa", b"md <k> b", b"md <k> k b", b"ma <k> b N0 v", b"ma <k> k b",
                    b"ms <k> 1 b k\r\nx",
                    b"ms <k> 1 k b c\r\nx"):
        for before in (b"", lines(b"ms <k> 2 b", b"42"), lines(b"ms <k> 2", b"42")):
            # Of a number that ma has made, memcached gives the bytes of the key back: newer_memcached.py.
            after = b"mg <k> b v" if command.startswith(b"ma") else b"mg <k> b k v"
            cases.append(Case(before + lines(command, after, b"mg <k> k v")))
    compare_all(oracle, subject, cases)


def scripts_on_encoded_keys():
    """Lists of lines, on keys that are not a case's own."""
    serial = random.getrandbits(40)
    for size in (1, 2, 3, 4, 5, 16, 100, 185, 186, 187, 188, 189, 250):
        raw = (b"%d" % serial * 20)[:size]
        key = encoded(raw)
        yield [head % key for head in (b"mg %s b k v", b"ms %s 1 b k\r\nx", b"mg %s b k v", b"get %s", b"md %s b k", b"ma %s b N0 k")
               if len(key) <= 250]
        # A key that was stored as plain text, and one given in base64, are the same.
        yield [b"set %s 0 0 1\r\ny" % raw, b"mg %s b v" % key, b"mg %s k v" % raw]
        if len(key) <= 250:
            yield [b"ms %s 1 b\r\nz" % key, b"get %s" % raw, b"mg %s v" % raw, b"mg %s k v b" % key, b"md %s b" % key]
    for raw in (bytes(range(128)), bytes(range(128, 256)), b"\0", b"\r\n", b"two words", b"\xff" * 100):
        key = encoded(raw)
        yield [b"ms %s 1 b k\r\nx" % key, b"mg %s b k v" % key, b"ma %s b" % key, b"md %s b k q" % key, b"mn"]
    for key in (b"A", b"AA", b"AAA", b"AA==", b"AAA=", b"A===", b"====", b"AAAA=", b"AAAAA", b"!!!!", b"-_-_",
                b"+/+/"):
        yield [b"mg %s b k v" % key, b"ms %s 1 b\r\nx" % key, b"mn", b"mg %s k" % key]


def test_encoded_keys_of_all_lengths_and_bytes(oracle, subject):
    """Their keys are in common, so one after the other."""
    for script in scripts_on_encoded_keys():
        compare_all(oracle, subject, [Case(lines(*script))], pause=0)


def test_mn_and_me(oracle, subject):
    """me of items without a time to live; the others: newer_memcached.py."""
    cases = [Case(lines(text)) for text in (b"mn", b"mn x", b"mn  ", b"mn x y z", b"MN", b"mnx", b"m", b"mx <k>", b"mG <k>", b"MG <k>", b"me <k>",
                                            b"me <k> x",
                                            b"me <k> b", b"me <k:250>", b"me <k:251>", b"me !!!! b")]
    for before in (b"ms <k> 5", b"ms <k> 5 F8", b"ms <k> 5 b"):
        for after in (b"me <k>", b"me <k> b", b"me <k> v", b"me <k> b b", b"me  <k>  "):
            cases += [Case(lines(before, b"hello", after, b"mg <k> v", after, b"get <k>", after)), Case(lines(before, b"hello", b"get <k>", after))]
    compare(oracle, subject, cases)


BAD = [b"!", b"q q", b"v s v", b"k k", b"Oa Ob", b"y", b"z", b"a", b"d", b"1", b"-", b"\x80", b"\x7f", b"{", b"~", b"Tx", b"T", b"T1x", b"T 1",
       b"T1.5", b"T-1", b"T+5",
       b"T2147483648", b"T99999999999", b"T2592001", b"T2592000", b"T4294967295", b"Nx", b"N", b"Rx", b"R", b"Cx", b"C", b"C-1",
       b"C18446744073709551616", b"Fx", b"F", b"F-1", b"F4294967296",
       b"F4294967295", b"Dx", b"D", b"D-1", b"Jx", b"J", b"J-1", b"Mx", b"M!", b"Me", b"Ms", b"Ma", b"Mi", b"Md", b"M0", b"O", b"Oa",
       b"O" + b"a" * 31, b"O" + b"a" * 32,
       b"O" + b"a" * 33, b"O" + b"a" * 200, b"O\t", b"O\x00", b"kx", b"vx", b"qx", b"q1", b"sx", b"cx", b"b1", b"Ix", b"P", b"L",
       b"P" + b"a" * 300, b"S5", b"S", b"W", b"X", b"Z", b"noreply",
       b"0", b"5", b"i", b"r", b"e", b"g", b"n", b"p", b"w", b"m", b"o", b"j", b"A", b"B", b"G", b"H", b"K", b"Q", b"U", b"V", b"Y", b"\t", b"\\"]


def test_bad_and_odd_flags(oracle, subject):
    cases = []
    for bad in BAD:
        for head, value in ((b"mg <k>", []), (b"ms <k> 2", [b"hi"]), (b"md <k>", []), (b"ma <k>", []), (b"mg <k> v q", []),
                            (b"ms <k> 2 q", [b"hi"]), (b"ma <n>", [])):
            for before in (b"", lines(b"set <k> 1 0 2", b"42")):
                cases.append(Case(before + lines(head + b" " + bad, *value, b"mn", b"get <k>"), after=lines(b"get <k>")))
    compare_all(oracle, subject, cases)


def test_ms_lines_and_values(oracle, subject):
    tails = [b"2\r\nhi", b"2\r\nhi\r\n", b"2\nhi", b"0\r\n", b"-1\r\nhi", b"x\r\nhi", b"2x\r\nhi", b"S2\r\nhi", b"2 S2\r\nhi", b"2\r\nh",
             b"2\r\nhix", b"2\r\nhixx", b"2 q\r\nhixx", b"2\r\nhi\n",
             b"2147483647\r\nhi", b"2147483646\r\nhi", b"4294967296\r\nhi", b"99999999999999999999\r\nhi", b"\r\nhi", b"", b"2 T0 v\r\nhi",
             b"+2\r\nhi", b"02\r\nhi", b" 2 \r\nhi",
             b"2 noreply\r\nhi", b"0 0 2\r\nhi", b"2 MS MS\r\nhi", b"2 Oabcdefghijklmnopqrstuvwxyzabcdefghijk\r\nhi",
             b"2000000\r\n" + b"v" * 2_000_000,
             b"2000000 y\r\n" + b"v" * 2_000_000, b"1048577 q\r\n" + b"v" * 1_048_577, b"5 !\r\n\r\nmn\r", b"4 MX\r\nmn\r\n", b"4 b\r\nmn\r\n"]
    cases = []
    for before in (b"", lines(b"set <k> 3 0 3", b"old")):
        for tail in tails:
            swallows = tail.startswith((b"2147483646", b"2\r\nh\r", b"2\r\nh")) and tail != b"2\r\nhi"
            cases.append(Case(before + b"ms <k> " + tail + b"\r\nmn\r\nget <k>\r\n", after=lines(b"get <k>"), unfinished=swallows))
    compare_all(oracle, subject, cases, at_once=20)


def test_keys_at_the_limit(oracle, subject):
    cases = []
    for size in (249, 250, 251, 252, 300, 1000):
        for text in (b"mg <k:%d> v k", b"md <k:%d> k", b"ma <k:%d> N0 k v", b"mg <k:%d>", b"mg <k:%d> q", b"me <k:%d>"):
            cases.append(Case(lines(text % size, b"mn")))
        if size <= 250:
            cases.append(Case(lines(b"ms <k:%d> 2 k c" % size, b"hi", b"mg <k:%d> v k" % size, b"get <k:%d>" % size)))
    compare_all(oracle, subject, cases)


def test_every_command_without_arguments_and_with_many(oracle, subject):
    cases = [Case(lines(command + b" " + b" ".join([b"<k>"] * count), b"mn")) for command in (b"mg", b"md", b"ma", b"me", b"mn")
             for count in (0, 1, 2, 5, 16)]
    cases += [Case(lines(command + b" <k>" + spaces + b"v" + spaces + b"q", b"mn")) for command in (b"mg", b"ma")
              for spaces in (b" ", b"  ", b"   ", b"\t")]
    cases += [Case(command + end + b"mn\r\n") for command in (b"mg <k> v", b"md <k> q", b"mn")
              for end in (b"\n", b"\r\n", b"\r\r\n", b" \r\n", b"\0\r\n")]
    compare_all(oracle, subject, cases)


def value_of(length):
    return (b"0123456789abcdef" * (length // 16 + 1))[:length]


SIZES = [0, 1, 2, 100, 1000, 3900, 4000, 4050, 4096, 4097, 5000, 8192, 16_384, 65_536, 100_000, 500_000, 1_000_000, 1_048_400]


def test_values_of_all_sizes(oracle, subject):
    cases = []
    for size in SIZES:
        value = value_of(size)
        cases.append(Case(lines(b"ms <k> %d T100 F3 c" % size, value, b"mg <k> v s f t c k Oo", b"mg <k> s", b"mg <k> v q", b"mn", b"md <k> I",
                                b"mg <k> v", b"mg <k> v", b"mg <k> s"),
                          after=lines(b"get <k>")))
        cases.append(Case(lines(b"ms <k> %d q" % size, value, b"ms <k> %d MA" % min(size, 20_000), value[:20_000], b"ms <k> 3 MP", b"abc",
                                b"mg <k> v s"), after=lines(b"gets <k>")))
        cases.append(Case(lines(b"ms <k> %d C5" % size, value, b"ms <k> %d ME k" % size, value, b"ms <k> %d ME k" % size, value,
                                b"ms <k> %d MR" % size, value, b"mg <k> v")))
        cases.append(Case(lines(b"ms <k> %d" % size, value + b"..", b"mn", b"mg <k> v"), after=lines(b"mg <k> v")))
        cases.append(Case(lines(b"ms <k> %d y" % size, value, b"mn")))
    compare_all(oracle, subject, cases, at_once=10)


def test_beyond_the_largest_item(oracle, subject):
    cases = []
    for size in (1_048_500, 1_048_576, 1_048_577, 2_000_000):
        for flags in (b"", b" q", b" ME", b" MR", b" MA", b" C5", b" k Oo c"):
            cases.append(Case(lines(b"ms <k> 3", b"old", b"ms <k> %d" % size + flags, value_of(size), b"mn", b"mg <k> v"),
                              after=lines(b"mg <k> v")))
    compare_all(oracle, subject, cases, at_once=4)


COMMANDS = [
    b"mg <k>\r\n", b"mg <k> v f c k Oabc t s h l\r\n", b"mg <none> v k Oabc\r\n", b"mg <none> q v\r\nmn\r\n", b"mg <new> N30 v t\r\n",
    b"ms <k> 5\r\nhello\r\n",
    b"ms <k> 2 T100 F5 c k Ox\r\nhi\r\n", b"ms <k> 0 q\r\n\r\nmn\r\n", b"ms <k> 2 b\r\nhi\r\nmg <k> b k v\r\n",
    b"ms <k> 3 MA\r\nabc\r\nms <k> 2 MP q\r\nxy\r\n",
    b"ms <k> 2 !\r\nhi\r\nmn\r\n", b"ms <k> 2\r\nhixx\r\nmn\r\n", b"ms <k>\r\nmn\r\n", b"md <k> q k\r\nmn\r\n",
    b"md <k> I T30 Oabc\r\nmg <k> v\r\n", b"ma <n> v t c k\r\n",
    b"ma <new> N0 J9 D3 v\r\nma <new> MD D2 v\r\n", b"ma <k>\r\n", b"mn\r\nmn\r\n", b"me <none>\r\n", b"mg <k> q q\r\nmn\r\n",
    b"mg <k> v\nmn\nms <k> 1\nx\r\n",
]


def test_cut_at_every_byte(oracle, subject):
    compare_all(oracle, subject, [Cut(command, [at]) for command in COMMANDS for at in range(1, expanded_length(command))], pause=0.02, at_once=600)


def test_byte_by_byte(oracle, subject):
    compare_all(oracle, subject, [Cut(command, range(1, expanded_length(command))) for command in COMMANDS], pause=0.004)
