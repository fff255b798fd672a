"""Memory that is full: with eviction everything is stored; without it, memcached's error line, and never a crash."""

import re

from dialog import Case, converse, show
from servers import SUT, Egret, Memcached, ask, stats_of

MEMORY_MIB = 16
FULL = b"SERVER_ERROR out of memory storing object\r\n"


def small_server(evict):
    if SUT == "memcached":
        return Memcached(*([] if evict else ["-M"]), memory_mib=MEMORY_MIB)
    return Egret(backend={"memory": f"{MEMORY_MIB}MiB", "partitions": 2, "evict": "true" if evict else "false"})


def fill(server, count, size, prefix=b"fill"):
    text = b"".join(b"set %s%d 0 0 %d\r\n%s\r\n" % (prefix, n, size, b"%d." % n * (size // len(b"%d." % n)) + b"." * (size % len(b"%d." % n)))
                    for n in range(count))
    return converse(server.address, [Case(text)])[0][0]


def test_full_without_eviction():
    server = small_server(evict=False)
    try:
        answers = fill(server, 6000, 5000)
        lines = answers.splitlines(keepends=True)
        assert len(lines) == 6000 and set(lines) == {b"STORED\r\n", FULL}, set(lines)
        stored = lines.count(b"STORED\r\n")
        assert stored * 5000 < MEMORY_MIB << 20
        assert stored * 5000 > (MEMORY_MIB << 20) // 3, f"only {stored} values of 5,000 bytes fit"
        first = lines.index(FULL)
        text = b"get fill0\r\nset fill%d 0 0 5000 noreply\r\n%s\r\nget fill%d\r\nversion\r\n" % (first, b"v" * 5000, first)
        answer = converse(server.address, [Case(text)])[0][0]
        assert answer.startswith(b"VALUE fill0 0 5000\r\n0.0."), show(answer)
        # A large value finds no room either (in memcached's pages it may), and what was under its key is gone.
        large = b"set fill1 0 0 900000\r\n" + b"l" * 900_000 + b"\r\nget fill1\r\nversion\r\n"
        answer = converse(server.address, [Case(large)])[0][0]
        refused = re.fullmatch(FULL + rb"END\r\nVERSION .*\r\n", answer)
        assert refused or (SUT == "memcached" and answer.startswith(b"STORED\r\nVALUE fill1 0 900000\r\nl")), show(answer)
        stats = stats_of(server.address)
        assert stats_of(server.address, b"settings")["evictions"] == "off"
        assert int(stats["evictions"]) == 0 and int(stats["store_no_memory"]) >= lines.count(FULL)
        # Room that is made is used again.
        converse(server.address, [Case(b"".join(b"delete fill%d\r\n" % n for n in range(first)))])
        again = fill(server, 100, 5000, b"again")
        assert again == b"STORED\r\n" * 100
        assert ask(server.address, b"flush_all\r\n") == b"OK\r\n"
    finally:
        server.stop()


def test_full_with_eviction():
    """Ten times the memory is written, in values of all sizes: all is stored, the newest is there, the rest made room."""
    server = small_server(evict=True)
    try:
        for size, count in ((100, 100_000), (5000, 20_000), (60_000, 1500), (900_000, 100)):
            answers = fill(server, count, size)
            assert answers == b"STORED\r\n" * count, f"values of {size}: {show(answers)}"
            newest = converse(server.address, [Case(b"get fill%d\r\n" % (count - 1))])[0][0]
            assert newest.startswith(b"VALUE fill%d 0 %d\r\n" % (count - 1, size)), show(newest)
        stats = stats_of(server.address)
        assert int(stats["evictions"]) > 1000
        assert stats_of(server.address, b"settings")["evictions"] == "on"
        assert int(stats["bytes"]) <= (MEMORY_MIB << 20) * 1.1  # memcached, too, keeps some more
        for daemon in server.daemons():
            daemon.check_alive()
    finally:
        server.stop()


def test_many_large_sets_at_once():
    """Forty clients send 900 kB each at the same time to a server of 64 MiB: all of them are stored."""
    server = Memcached(memory_mib=64) if SUT == "memcached" else Egret(defaults=True)
    try:
        value = b"v" * 900_000
        half = len(value) // 2
        cases = [Case([b"set <k> 0 0 %d\r\n" % len(value) + value[:half], value[half:] + b"\r\n"], after=b"get <k>\r\n") for _ in range(40)]
        answers = converse(server.address, cases, pause=0.05)
        assert [answer for answer, _ in answers] == [b"STORED\r\n"] * 40, {show(answer) for answer, _ in answers}
        assert sum(1 for _, found in answers if len(found) > len(value)) >= 30
    finally:
        server.stop()
