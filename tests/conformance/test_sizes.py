"""Values of every size that matters: around a slot and two, large ones, and the border of what an item may be."""

from dialog import Case, compare, converse
from servers import ask, connect

ITEM_LIMIT = 1 << 20


def value_of(length, salt=0):
    """Bytes in which a shifted, lost or repeated piece shows: a counter every 8 bytes."""
    words = (length + 7) // 8
    return b"".join(b"%07x." % ((n + salt * 65_537) & 0xFFFFFFF) for n in range(words))[:length]


def set_get(length, command=b"set", key=b"<k>", flags=b"0", salt=0):
    return Case(command + b" " + key + b" " + flags + b" 0 %d\r\n" % length + value_of(length, salt) + b"\r\nget " + key + b"\r\n",
                after=b"gets " + key + b"\r\n")


def test_small_sizes(oracle, subject):
    compare(oracle, subject, [set_get(n) for n in list(range(0, 300)) + list(range(300, 3900, 37))])


def test_every_size_around_a_slot(oracle, subject):
    compare(oracle, subject, [set_get(n) for n in range(3900, 4201)])
    compare(oracle, subject, [set_get(n, key=b"<k:250>", flags=b"4294967295") for n in range(3600, 4201, 3)])


def test_sizes_around_two_and_more_slots(oracle, subject):
    compare(oracle, subject, [set_get(n) for n in range(8000, 8301)])
    compare(oracle, subject, [set_get(n) for k in (3, 4, 8, 16, 64) for n in range(4096 * k - 160, 4096 * k + 40, 9)])


def test_large_sizes(oracle, subject):
    sizes = [10_000, 16_384, 20_000, 32_768, 65_535, 65_536, 65_537, 99_999, 100_000, 102_400, 131_072, 262_144, 500_000, 524_288,
             524_289, 700_000, 900_000, 1_000_000]
    compare(oracle, subject, [set_get(n) for n in sizes], at_once=6)


def test_replacing_by_other_sizes(oracle, subject):
    sizes = [0, 1, 100, 3900, 4096, 4200, 9000, 100_000, 1, 0, 500_000, 10, 4096, 0]
    text = b"".join(b"set <k> 0 0 %d\r\n" % n + value_of(n, n) + b"\r\nget <k>\r\n" for n in sizes)
    compare(oracle, subject, [Case(text), Case(text.replace(b"set <k> 0 0", b"set <k> 77 1000"))])


def test_append_and_prepend_across_slot_sizes(oracle, subject):
    cases = []
    for first in (0, 1, 2000, 3900, 4060, 5000, 100_000):
        for more in (0, 1, 100, 3000, 4096, 10_000):
            for command in (b"append", b"prepend"):
                cases.append(Case(b"set <k> 6 0 %d\r\n" % first + value_of(first) + b"\r\n" + command + b" <k> 9 0 %d\r\n" % more
                                  + value_of(more, 1) + b"\r\nget <k>\r\n" + command + b" <k> 0 0 2 noreply\r\n..\r\ngets <k>\r\n",
                                  after=b"get <k>\r\n"))
    compare(oracle, subject, cases, at_once=20)


def test_other_stores_of_large_values(oracle, subject):
    cases = []
    for n in (4096, 9000, 200_000):
        cases += [set_get(n, b"add"), set_get(n, b"replace")]
        body = b" <k> 1 0 %d\r\n" % n + value_of(n, 5) + b"\r\nget <k>\r\n"
        old = b"set <k> 2 0 3\r\nold\r\n"
        cases += [Case(old + command + body) for command in (b"set", b"add", b"replace")]
        cases.append(Case(old + b"cas <k> 1 0 %d 99999999\r\n" % n + value_of(n) + b"\r\nget <k>\r\n"))
        cases.append(Case(b"cas <k> 1 0 %d 99999999\r\n" % n + value_of(n) + b"\r\nget <k>\r\n"))
        cases.append(Case(b"set <k> 1 0 %d noreply\r\n" % n + value_of(n) + b"\r\nget <k>\r\ntouch <k> 50\r\nincr <k> 1\r\ngat 10 <k>\r\n"
                          b"delete <k>\r\nget <k>\r\n"))
    compare(oracle, subject, cases, at_once=20)


def stores(server, key_length, flags, sizes):
    """Which of these sizes the server stores."""
    key = b"<k:%d>" % key_length
    cases = [Case(b"set " + key + b" %d 0 %d\r\n" % (flags, n) + b"v" * n + b"\r\n") for n in sizes]
    return [answer == b"STORED\r\n" for answer, _ in converse(server.address, cases, at_once=4)]


def border(server, key_length, flags):
    """The largest value the server stores with such a key."""
    low, high = ITEM_LIMIT - 1024, ITEM_LIMIT + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if stores(server, key_length, flags, [middle])[0] else (low, middle)
    return low


def test_the_largest_value_that_fits(oracle, subject):
    """The item header counts towards memcached's limit of 1 MiB, so the border depends on key length and flags."""
    cases = []
    for key_length, flags in ((8, 0), (8, 1), (9, 0), (100, 0), (250, 0), (250, 4294967295)):
        edge = border(oracle, key_length, flags)
        key = b"<k:%d>" % key_length
        for n in (edge - 1, edge, edge + 1, edge + 2):
            text = b"set " + key + b" %d 0 %d\r\n" % (flags, n) + value_of(n) + b"\r\nversion\r\n"
            cases.append(Case(text, after=b"get " + key + b"\r\n", name=f"key of {key_length}, flags {flags}, border {edge}"))
    compare(oracle, subject, cases, at_once=4)


def test_one_mebibyte_and_beyond(oracle, subject):
    cases = []
    for n in (ITEM_LIMIT - 1, ITEM_LIMIT, ITEM_LIMIT + 1, ITEM_LIMIT + 2, 2 * ITEM_LIMIT, 5_000_000):
        for command in (b"set", b"add", b"replace", b"append", b"prepend"):
            old = b"set <k> 0 0 3\r\nold\r\n"
            for noreply in (b"", b" noreply"):
                text = command + b" <k> 0 0 %d" % n + noreply + b"\r\n" + b"v" * n + b"\r\nversion\r\nget <k>\r\n"
                if n < 2_000_000 or command == b"set":
                    cases.append(Case(old + text, after=b"get <k>\r\n"))
        cases.append(Case(b"set <k> 0 0 3\r\nold\r\ncas <k> 0 0 %d 1\r\n" % n + b"v" * n + b"\r\nversion\r\nget <k>\r\n"))
    compare(oracle, subject, cases, at_once=4)


def test_append_beyond_the_limit(oracle, subject):
    cases = []
    for command in (b"append", b"prepend"):
        for first, more in ((1_048_000, 300), (1_048_000, 600), (1_000_000, 100_000), (600_000, 600_000), (10, 1_048_500)):
            text = b"set <k> 0 0 %d\r\n" % first + b"v" * first + b"\r\n" + command + b" <k> 0 0 %d\r\n" % more + b"w" * more
            cases.append(Case(text + b"\r\nversion\r\n", after=b"get <k>\r\n"))
    compare(oracle, subject, cases, at_once=4)


def test_large_values_in_one_multiget(oracle, subject):
    sizes = [0, 1, 4000, 4096, 4097, 100_000, 3, 300_000, 10_000, 900_000, 0, 5]
    names = [b"<%c>" % (97 + n) for n in range(len(sizes))]
    text = b"".join(b"set %s %d 0 %d noreply\r\n" % (name, n, size) + value_of(size, n) + b"\r\n"
                    for n, (name, size) in enumerate(zip(names, sizes)))
    ask = b"get " + b" ".join(names) + b"\r\n"
    compare(oracle, subject, [Case(text + ask * 3 + b"gets " + b" ".join(reversed(names + names)) + b"\r\nversion\r\n")])


def test_large_values_for_clients_that_do_not_read(subject):
    """They keep nobody else waiting, and find every byte when they do read, whatever was fetched for others meanwhile."""
    values = [value_of(100_000 + 1000 * n, n) for n in range(30)]
    answers = [b"VALUE unread%d 0 %d\r\n" % (n, len(value)) + value + b"\r\nEND\r\n" for n, value in enumerate(values)]
    for n, value in enumerate(values):
        assert ask(subject.address, b"set unread%d 0 0 %d\r\n" % (n, len(value)) + value + b"\r\n") == b"STORED\r\n"
    idle = [connect(subject.address) for _ in values]
    try:
        for n, sock in enumerate(idle):
            sock.sendall(b"get unread%d\r\n" % n * 50)
        for _ in range(10):
            for n in range(len(values)):
                assert converse(subject.address, [Case(b"get unread%d\r\n" % n)])[0][0] == answers[n]
        for n, sock in enumerate(idle):
            wanted = answers[n] * 50
            with sock.makefile("rb") as stream:
                assert stream.read(len(wanted)) == wanted, n
    finally:
        for sock in idle:
            sock.close()
