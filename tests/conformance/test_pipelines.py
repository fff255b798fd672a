"""Many commands in one stream: answers in request order, noreply without a trace, multigets of every width."""

import random

from dialog import Case, compare


def test_pipelines_of_every_command(oracle, subject):
    step = (b"set <a> 1 0 1\r\na\r\nget <a>\r\nadd <a> 0 0 1\r\nb\r\nadd <b> 0 0 2\r\n10\r\nincr <b> 5\r\ndecr <b> 7\r\nappend <b> 0 0 1\r\n1\r\n"
            b"prepend <b> 0 0 1\r\n2\r\nget <b> <a> <none>\r\nreplace <a> 2 0 3\r\nxyz\r\ngets <a>\r\ntouch <a> 100\r\ngat 50 <a>\r\n"
            b"delete <b>\r\ndelete <b>\r\nfoo\r\nincr <b> 1\r\nset <c> 0 0 9 noreply\r\n123456789\r\nget <c>\r\ndelete <c> noreply\r\nget <c>\r\n"
            b"version\r\nverbosity 0\r\n")
    compare(oracle, subject, [Case(step), Case(step * 2), Case(step * 30), Case(step * 300)])


def test_noreply_everywhere(oracle, subject):
    quiet = [b"set <k> 0 0 1 noreply\r\na\r\n", b"add <k> 0 0 1 noreply\r\na\r\n", b"replace <k> 0 0 1 noreply\r\nb\r\n",
             b"append <k> 0 0 1 noreply\r\nc\r\n", b"prepend <k> 0 0 1 noreply\r\nd\r\n", b"cas <k> 0 0 1 1 noreply\r\ne\r\n",
             b"incr <k> 1 noreply\r\n", b"decr <k> 1 noreply\r\n", b"delete <k> noreply\r\n", b"delete <k> 0 noreply\r\n",
             b"touch <k> 0 noreply\r\n", b"verbosity 0 noreply\r\n",
             # Errors that noreply keeps quiet, and errors that it does not.
             b"set <k:251> 0 0 1 noreply\r\n", b"set <k> x 0 1 noreply\r\n", b"set <k> 0 0 1 noreply\r\nabc\r\n", b"incr <k> x noreply\r\n",
             b"touch <k> x noreply\r\n", b"delete <k> 1 noreply\r\n", b"set <k> 0 0 1 noreply x\r\n", b"set <k> 0 0 noreply\r\n",
             b"incr <k> noreply\r\n", b"touch <k> noreply\r\n", b"verbosity noreply\r\n", b"verbosity x noreply\r\n", b"get noreply\r\n",
             b"version noreply\r\n", b"set <k> 0 0 1 NOREPLY\r\na\r\n", b"set <k> 0 0 1 noreplyx\r\na\r\n", b"set <k> 0 0 2000000 noreply\r\n" + b"v" * 2_000_000 + b"\r\n",
             b"foo noreply\r\n"]
    cases = []
    for text in quiet:
        lacks_value = text.startswith(b"set") and text.count(b"\r\n") == 1  # which is waited for
        for before in (b"", b"set <k> 0 0 2\r\n15\r\n"):
            cases.append(Case(before + text + b"get <k>\r\n", after=b"get <k>\r\n", unfinished=lacks_value))
            cases.append(Case(before + text + text + b"version\r\n" + text, after=b"get <k>\r\n", unfinished=lacks_value))
    cases.append(Case(b"".join(quiet[:12]) * 50 + b"get <k>\r\n"))
    cases.append(Case(b"set <k> 0 0 1 noreply\r\na\r\n" * 2000, after=b"gets <k>\r\n"))
    compare(oracle, subject, cases)


def test_quiet_commands_before_the_close_take_effect(oracle, subject):
    """A client may send noreply commands and close; they count, and they count before a later connection's commands."""
    cases = [Case(b"".join(b"set <k> 0 0 %d noreply\r\n%s\r\n" % (len(b"%d" % n), b"%d" % n) for n in range(count)), after=b"get <k>\r\n")
             for count in (1, 2, 10, 100, 1000)]
    compare(oracle, subject, cases)


def test_order_within_one_key(oracle, subject):
    text = b"".join(b"set <k> %d 0 %d\r\n%s\r\nget <k>\r\nincr <k> 1\r\ndelete <k>\r\nget <k>\r\n" % (n, len(b"%d" % n), b"%d" % n)
                    for n in range(500))
    compare(oracle, subject, [Case(text)])


def test_order_within_one_key_with_large_values(oracle, subject):
    """A value of many slots is followed at once by reads and writes of the same key, and of others."""
    text = b""
    for n, size in enumerate((100_000, 10, 300_000, 5000, 0, 50_000, 4096)):
        value = bytes([97 + n]) * size
        text += (b"set <k> 0 0 %d\r\n%s\r\nset <o> 0 0 1\r\n%d\r\nget <o> <k> <o>\r\nappend <k> 0 0 3\r\nend\r\nget <k>\r\n" % (size, value, n)
                 + b"set <k> 0 0 1 noreply\r\nx\r\nget <k>\r\nset <k> 0 0 %d noreply\r\n%s\r\ndelete <k>\r\nget <k>\r\n" % (size, value))
    compare(oracle, subject, [Case(text), Case(text), Case(text)])


def test_multigets_of_1_to_500_keys(oracle, subject):
    rng = random.Random(7)
    names = [b"<%c%d>" % (97 + n, n) for n in range(20)]
    fill = b"".join(b"set %s %d 0 %d noreply\r\n%s\r\n" % (name, n, n * 11, b"v" * (n * 11)) for n, name in enumerate(names) if n % 3)
    cases = []
    for count in list(range(1, 60)) + [99, 100, 127, 128, 129, 200, 255, 256, 257, 333, 500]:
        for command in (b"get", b"gets"):
            keys = b" ".join(rng.choice(names) for _ in range(count))
            cases.append(Case(fill + b"version\r\n" + command + b" " + keys + b"\r\nversion\r\n"))
    compare(oracle, subject, cases)


def test_gat_of_many_keys(oracle, subject):
    cases = []
    for count in (1, 2, 20, 21, 22, 23, 24, 25, 46, 47, 48, 100, 200):
        for command in (b"gat 100 ", b"gats 100 "):
            cases.append(Case(b"set <k> 0 0 1\r\na\r\n" + command + b" ".join([b"<k>", b"<n>"] * (count // 2) + [b"<k>"]) + b"\r\nget <k>\r\n"))
    compare(oracle, subject, cases)


def test_multiget_of_ten_thousand_keys(oracle, subject):
    """Distinct keys, every third a hit, in one line of 90 kB; then the same key ten thousand times."""
    def name(n):
        return b"many%05d" % n
    fill = b"".join(b"set %s %d 0 5 noreply\r\n%05d\r\n" % (name(n), n, n) for n in range(0, 10_000, 3))
    ask = b"get " + b" ".join(name(n) for n in range(10_000)) + b"\r\n"
    compare(oracle, subject, [Case(fill + b"version\r\n")])
    compare(oracle, subject, [Case(ask), Case(ask.replace(b"get ", b"gets ", 1)), Case(ask * 3 + b"version\r\n"),
                              Case(b"set <k> 0 0 3\r\nabc\r\n" + b"get" + b" <k>" * 10_000 + b"\r\nversion\r\n"),
                              Case([ask[n:n + 1500] for n in range(0, len(ask), 1500)])], pause=0.001)


def test_multiget_of_large_values_many_times(oracle, subject):
    fill = b"set <a> 0 0 50000\r\n" + b"a" * 50_000 + b"\r\nset <b> 0 0 5000\r\n" + b"b" * 5000 + b"\r\n"
    compare(oracle, subject, [Case(fill + b"get" + b" <a> <b> <none>" * 100 + b"\r\nversion\r\n" + b"get <a>\r\nget <b>\r\n" * 50)])


def test_many_clients_say_the_same_at_once(oracle, subject):
    """The cases share no key, but their messages share slots."""
    text = (b"set <k> 1 0 4\r\nword\r\nget <k>\r\nset <l> 0 0 6000\r\n" + b"l" * 6000 + b"\r\nget <k> <l> <none>\r\nincr <n> 1\r\nadd <n> 0 0 1\r\n1\r\n"
            b"incr <n> 41\r\nget <n>\r\ndelete <n>\r\n")
    compare(oracle, subject, [Case(text * 5) for _ in range(300)], at_once=300)
