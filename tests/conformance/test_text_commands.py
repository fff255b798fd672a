"""Every command of the classic text protocol, in every state of the item it meets, and every error line it can give."""

from dialog import Case, compare
from servers import Memcached


def lines(*texts):
    return b"".join(text + b"\r\n" for text in texts)


STORES = [b"set", b"add", b"replace", b"append", b"prepend"]


def test_storage_commands_on_missing_and_present_items(oracle, subject):
    cases = []
    for command in STORES:
        for before in ([], [b"set <k> 5 0 3", b"old"]):
            for value in (b"", b"x", b"value", b"12"):
                for flags in (b"0", b"1", b"4294967295"):
                    text = lines(*before, command + b" <k> " + flags + b" 0 %d" % len(value), value, b"get <k>")
                    cases.append(Case(text, after=b"gets <k>\r\n"))
    compare(oracle, subject, cases)


def test_get_gets_with_one_key(oracle, subject):
    cases = [
        Case(lines(b"get <k>")),
        Case(lines(b"gets <k>")),
        Case(lines(b"set <k> 7 0 5", b"hello", b"get <k>", b"gets <k>", b"get <k> ", b" get  <k>  ", b"bget <k>")),
        Case(lines(b"set <k> 0 0 0", b"", b"get <k>", b"gets <k>")),
        Case(lines(b"set <k> 0 0 1", b"a", b"gets <k>", b"set <k> 0 0 1", b"a", b"gets <k>", b"gets <k> <k> <k>")),
    ]
    compare(oracle, subject, cases)


def test_gat_and_gats(oracle, subject):
    cases = [
        Case(lines(b"gat 0 <k>")),
        Case(lines(b"gats 0 <k>")),
        Case(lines(b"set <a> 1 0 1", b"a", b"set <c> 3 0 3", b"ccc", b"gat 100 <a> <b> <c>", b"gats 100 <a> <b> <c>")),
        Case(lines(b"set <a> 1 0 1", b"a", b"gats 10 <a>", b"gats 20 <a>", b"gets <a>")),
        Case(lines(b"set <a> 1 0 1", b"a", b"gat -1 <a>", b"get <a>")),
        Case(lines(b"set <a> 1 0 1", b"a", b"gat 1000000 <a>", b"get <a>")),
        Case(lines(b"gat", b"gats", b"gat 1", b"gats 1", b"gat x <k>", b"gats 1x <k>", b"gat <k> <k>", b"gat  <k>")),
        Case(lines(b"set <a> 1 0 1", b"a", b"gat 0 <a> <a> <b> <a>")),
        Case(lines(b"gat 4294967296 <k>", b"gat 99999999999999999999 <k>", b"gat 2147483648 <k>")),
        Case(lines(b"set <a> 0 0 1", b"a", b"gat 2147483648 <a>", b"get <a>")),
        Case(lines(b"set <a> 0 0 1", b"a", b"gat 4294967295 <a>", b"get <a>")),
    ]
    compare(oracle, subject, cases)


def test_delete_and_its_old_time_argument(oracle, subject):
    present = [b"set <k> 0 0 1", b"a"]
    cases = []
    for before in ([], present):
        for tail in (b"", b" ", b" 0", b" 0 ", b" noreply", b" 0 noreply", b" 1", b" 00", b" 0 0", b" noreply 0",
                     b" 0 noreply x", b" 1 noreply", b" x", b" noreply noreply", b" 0 NOREPLY", b" 0 0 noreply"):
            cases.append(Case(lines(*before, b"delete <k>" + tail, b"get <k>"), after=b"get <k>\r\n"))
    cases.append(Case(lines(b"delete", b"delete ", b"deletex <k>", b"DELETE <k>")))
    compare(oracle, subject, cases)


def test_touch(oracle, subject):
    cases = []
    for before in ([], [b"set <k> 9 0 1", b"a"]):
        for time in (b"0", b"100", b"-1", b"x", b"1x", b"", b"2592000", b"2592001", b"99999999999999999999", b"100 noreply",
                     b"100 x", b"100 2 3", b"noreply", b"-1 noreply", b"x noreply"):
            cases.append(Case(lines(*before, b"touch <k> " + time, b"gets <k>", b"get <k>"), after=b"get <k>\r\n"))
    cases.append(Case(lines(b"touch", b"touch <k>", b"touch  <k>  0 ")))
    compare(oracle, subject, cases)


DELTAS = [b"0", b"1", b"5", b"10", b"18446744073709551615", b"18446744073709551616", b"-1", b"-0", b"+1", b"x", b"1x", b"",
          b"01", b"-18446744073709551615", b"9223372036854775808", b"1.5", b"1\t2"]


def arithmetic_cases(values, deltas):
    return [Case(lines(b"set <k> 3 0 %d" % len(value), value, command + b" <k> " + delta, b"get <k>"), after=b"gets <k>\r\n")
            for command in (b"incr", b"decr") for value in values for delta in deltas]


def test_incr_and_decr(oracle, subject):
    values = [b"", b"0", b"1", b"9", b"10", b"99", b"100", b"18446744073709551616", b"9223372036854775807", b"-1", b"-5", b"+5", b"abc",
              b"12abc", b"12 abc", b"12 ", b" 12", b"0012", b"5\t", b"5\r\n6", b"1.5", b"0x10", b"1" * 21, b"0" * 30 + b"7",
              b"99999999999999999999", b"7" + b" " * 40]  # and nothing but spaces: memcached reads on behind the item
    cases = arithmetic_cases(values, DELTAS)
    for command in (b"incr", b"decr"):
        cases.append(Case(lines(command + b" <k> 1", command + b" <k> x", command + b" <k>", command)))
        cases.append(Case(lines(command + b" <k> 1 noreply", command + b" <k> 1 x", command + b" <k> 1 2 3")))
        cases.append(Case(lines(b"set <k> 0 0 2", b"99", command + b" <k> 1 noreply", command + b" <k> 1 x", b"get <k>")))
        cases.append(Case(lines(b"set <k> 0 0 2", b"99", command + b" <k> x noreply", b"get <k>")))
        cases.append(Case(lines(b"set <k> 0 0 1", b"a", command + b" <k> 1 noreply", b"get <k>")))
    compare(oracle, subject, cases)


def test_incr_and_decr_of_64_bits(subject):
    """With an oracle of its own: for numbers of 2^63 and more memcached looks for a minus sign in whatever memory follows
    the item, so its answer is only defined where no byte ever was a minus sign."""
    fresh = Memcached()
    try:
        values = [b"18446744073709551615", b"18446744073709551614", b"9223372036854775808", b"9223372036854775807", b"1" * 20]
        compare(fresh, subject, arithmetic_cases(values, [delta for delta in DELTAS if b"-" not in delta]))
    finally:
        fresh.stop()


def test_decr_pads_and_incr_grows(oracle, subject):
    """Sent step by step: behind an unsent answer that still holds the item, memcached does not pad, which nobody could copy."""
    steps = [b"decr <k> 1", b"decr <k> 95", b"decr <k> 5", b"decr <k> 100", b"incr <k> 12", b"append <k> 0 0 1\r\n0", b"incr <k> 1",
             b"decr <k> 1000", b"incr <k> 99999", b"decr <k> 99999", b"prepend <k> 0 0 1\r\n1", b"incr <k> 1",
             b"decr <k> 18446744073709551615", b"incr <k> 9223372036854775807", b"decr <k> 9223372036854775000"]
    cases = []
    for start in (b"105", b"1  ", b"100000", b"7"):
        pieces = [b"set <k> 0 0 %d\r\n" % len(start) + start + b"\r\n"]
        for step in steps:
            pieces += [step + b"\r\n", b"get <k>\r\n"]
        cases.append(Case(pieces))
    compare(oracle, subject, cases, pause=0.01)


def test_flags_are_32_bits(oracle, subject):
    flags = [b"0", b"1", b"65535", b"65536", b"2147483647", b"2147483648", b"4294967295", b"4294967296", b"-1", b"-0", b"+7",
             b"x", b"1x", b"0x1", b"1.0", b"00012", b"18446744073709551615", b"18446744073709551616",
             b"-18446744073709551615", b"1\t", b"\t1", b"99999999999999999999"]
    compare(oracle, subject, [Case(lines(b"set <k> " + f + b" 0 1", b"a", b"get <k>"), after=b"get <k>\r\n") for f in flags])


def test_exptime_argument(oracle, subject):
    times = [b"0", b"1000", b"-1", b"-2147483648", b"-2147483649", b"2147483647", b"2147483648", b"4294967295", b"4294967296",
             b"2592000", b"2592001", b"x", b"1x", b"", b"+100", b"-0", b"1.0", b"9223372036854775807",
             b"9223372036854775808", b"99999999999999999999", b"1000\t"]
    cases = [Case(lines(b"set <k> 0 " + t + b" 1", b"a", b"get <k>"), after=b"get <k>\r\n") for t in times]
    compare(oracle, subject, cases)


def test_length_argument(oracle, subject):
    lengths = [b"1", b"+1", b"01", b"-1", b"-0", b"x", b"1x", b"", b"1.0", b"0x1", b"4294967297", b"4294967296", b"2147483647",
               b"2147483646", b"2147483645", b"2147483648", b"-2147483648", b"9223372036854775807", b"9223372036854775808",
               b"1\t", b"\t1"]
    cases = []
    for command in STORES:
        for length in lengths:
            # A length beyond the item limit makes the rest of the stream part of the value that is thrown away.
            cases.append(Case(lines(b"set <k> 0 0 1", b"o", command + b" <k> 0 0 " + length, b"a", b"get <k>"),
                              after=b"get <k>\r\n", unfinished=length == b"2147483645"))
    compare(oracle, subject, cases)


def test_number_of_arguments(oracle, subject):
    """Every command with none to eight arguments."""
    commands = STORES + [b"cas", b"get", b"gets", b"gat", b"gats", b"incr", b"decr", b"delete", b"touch", b"verbosity",
                         b"version"]
    cases = []
    for command in commands:
        for count in range(9):
            for argument in (b"0", b"1", b"noreply"):
                cases.append(Case(lines(command + b" <k>" * min(count, 1) + (b" " + argument) * (count - 1), b"a", b"version")))
        cases.append(Case(lines(command, b"a", b"version")))
    compare(oracle, subject, cases)


def test_keys_of_250_and_251_bytes(oracle, subject):
    cases = []
    for size in (249, 250, 251, 252, 255, 256, 257, 300, 500, 1000):
        key = b"<k:%d>" % size
        for command in STORES:
            cases.append(Case(lines(command + b" " + key + b" 0 0 1", b"a"), after=lines(b"get " + key)))
            cases.append(Case(lines(command + b" " + key + b" 0 0 1 noreply", b"a"), after=lines(b"get " + key)))
        cases.append(Case(lines(b"cas " + key + b" 0 0 1 5", b"a")))
        for text in (b"get %s", b"gets %s", b"gat 0 %s", b"gats 0 %s", b"incr %s 1", b"decr %s 1", b"delete %s", b"touch %s 0",
                     b"get <other> %s", b"get %s <other>", b"get <other> %s <third>", b"gat 0 <other> %s", b"delete %s 0",
                     b"delete %s noreply", b"touch %s 0 noreply", b"incr %s 1 noreply", b"incr %s x"):
            cases.append(Case(lines(text.replace(b"%s", key))))
            # A multiget with a bad key drops what it has found, whatever it was.
            cases.append(Case(lines(text.replace(b"%s", key)), after=lines(b"get <other> <third>")))
    compare(oracle, subject, cases)


def test_a_key_too_long_spoils_its_multiget_only(oracle, subject):
    """Sent piece by piece: memcached forgets unsent answers of earlier pipelined commands here, which nobody should copy."""
    cases = [
        Case([lines(b"set <a> 0 0 1", b"a"), lines(b"get <a> <k:251> <a>"), lines(b"get <a>")]),
        Case([lines(b"set <a> 0 0 1", b"a"), lines(b"get" + b" <a>" * 30 + b" <k:251>"), lines(b"get <a>")]),
        Case([lines(b"set <a> 0 0 1", b"a"), lines(b"get <k:251>" + b" <a>" * 30), lines(b"get <a>")]),
        Case([lines(b"set <a> 0 0 1", b"a"), lines(b"gat 0 <a> <k:251>"), lines(b"get <a>")]),
    ]
    compare(oracle, subject, cases, pause=0.05)


def test_verbosity_and_version(oracle, subject):
    cases = [Case(lines(text)) for text in (
        b"verbosity", b"verbosity 0", b"verbosity 1", b"verbosity 0 noreply", b"verbosity x", b"verbosity x noreply",
        b"verbosity noreply", b"verbosity 0 x", b"verbosity 0 0 0", b"verbosity -1", b"verbosity 0 0", b"verbosity 4294967296",
        b"verbosity 0", b"Version", b"VERSION", b"versio", b"versionx")]
    compare(oracle, subject, cases)


def test_version_line_has_its_shape(subject):
    import re
    from dialog import converse
    for text in (b"version\r\n", b"version x\r\n", b"version x y z\r\n"):
        ((answer, _),) = converse(subject.address, [Case(text)])
        assert re.fullmatch(rb"VERSION [0-9][!-~]*\r\n", answer), answer


def test_quit_closes_the_connection_after_all_answers(oracle, subject):
    from servers import connect
    for server in (oracle, subject):
        for text, wanted in ((b"quit\r\n", b""), (b"get q\r\nquit\r\n", b"END\r\n"), (b"quit now\r\n", b""),
                             (b"set q 0 0 1\r\na\r\nget q\r\nquit\r\n", b"STORED\r\nVALUE q 0 1\r\na\r\nEND\r\n"),
                             (b"delete q\r\nquit\n", b"DELETED\r\n"), (b"quit  \r\n", b"")):
            with connect(server.address) as sock:
                sock.sendall(text)
                answer = b""
                while piece := sock.recv(65536):
                    answer += piece
                assert answer == wanted, (server, text)


def test_what_is_not_a_command(oracle, subject):
    cases = [Case(text) for text in (
        b"\r\n", b"\n", b" \r\n", b"\r\r\n", b"x\r\n", b"xx\r\n", b"get\r\n", b"get \r\n", b"gets\r\n", b"GET <k>\r\n", b"Get <k>\r\n",
        b"set\r\n", b"sets <k> 0 0 1\r\na\r\n", b"getx <k>\r\n", b"ge <k>\r\n", b"g\r\n", b"s\r\n", b"foo bar baz\r\n", b"get\t<k>\r\n",
        b"\tget <k>\r\n", b"flush\r\n", b"flush_al\r\n", b"flush_allx\r\n", b"statsx\r\n", b"qui\r\n", b"quitx\r\n", b"shutdown\r\n",
        b"bget\r\n", b"incrx <k> 1\r\n", b"touchx <k> 1\r\n", b"casx <k>\r\n", b"c\r\n", b"ca\r\n", b"appendx <k> 0 0 1\r\na\r\n",
        b"add\r\n", b"a\r\n", b"d\r\n", b"i\r\n", b"t\r\n", b"verb 1\r\n", b"END\r\n", b"STORED\r\n", b"VALUE <k> 0 1\r\n",
        b"stats bogus\r\n", b"stats bogus more\r\n", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.0\r\n\r\n", b"zz HTTP/\r\nversion\r\n")]
    compare(oracle, subject, cases)
