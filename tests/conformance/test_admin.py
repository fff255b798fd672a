"""The operator's commands beside a real memcached: dumps, the memory limit, shutdown, and what has no meaning here."""

import re
import socket
import subprocess
import time
import urllib.request

import pytest

import binary
import servers
from dialog import Case, compare, converse
from servers import ask, connect, stats_of, wait_for

TOOL = "/usr/share/memcached/scripts/memcached-tool"


def start(**proxy):
    if servers.SUT != "egret":
        return servers.Memcached()
    return servers.Egret(proxy=proxy)


@pytest.fixture(scope="module")
def pair():
    """A memcached and a subject of this module's own: what is set here others would see."""
    both = servers.Memcached(), start()
    yield both
    for server in both:
        for daemon in server.daemons():
            daemon.check_alive()
        server.stop()


@pytest.fixture
def empty(pair):
    for server in pair:
        assert ask(server.address, b"flush_all\r\n") == b"OK\r\n"
        time.sleep(0)
    return pair


def say(server, *lines):
    """Each line's answer, up to a line that ends one."""
    with connect(server.address) as sock:
        answers = []
        for line in lines:
            sock.sendall(line + b"\r\n")
            answers.append(read_answer(sock, is_dump=line.startswith((b"lru_crawler metadump", b"lru_crawler mgdump"))))
        return answers


ENDS = re.compile(rb"(END|EN|HD|OK|STORED|DELETED|ERROR[^\n]*|CLIENT_ERROR[^\n]*|SERVER_ERROR[^\n]*|BADCLASS[^\n]*|BUSY[^\n]*|"
                  rb"MEMLIMIT[^\n]*|NOSPARE[^\n]*|SAME[^\n]*)\r\n\Z")


def read_answer(sock, is_dump=False):
    """Behind the OK that a dump begins with, more follows."""
    answer = b""
    while not ENDS.search(answer[-200:]) or (is_dump and answer == b"OK\r\n"):
        piece = sock.recv(1 << 16)
        if not piece:
            return answer + b"<closed>"
        answer += piece
    return answer


# --- Lines whose answer is always the same

LINES = [
    b"lru_crawler", b"lru_crawler x", b"lru_crawler metadump", b"lru_crawler metadump 0", b"lru_crawler metadump x",
    b"lru_crawler metadump 99", b"lru_crawler metadump 1 2", b"lru_crawler tocrawl 5", b"lru_crawler tocrawl x",
    b"lru_crawler tocrawl", b"lru_crawler sleep 100", b"lru_crawler sleep 1000001",
    b"lru_crawler sleep x", b"lru_crawler crawl 99", b"lru_crawler crawl x", b"lru_crawler enable x", b"lru_crawler a b c",
    b"cache_memlimit", b"cache_memlimit x", b"cache_memlimit 7", b"cache_memlimit 0", b"cache_memlimit 1 2 3",
    b"cache_memlimit 1000000001", b"cache_memlimit -1", b"cache_memlimit 7 noreply",
    b"slabs", b"slabs reassign", b"slabs reassign 1", b"slabs reassign 1 1", b"slabs reassign 1 2", b"slabs reassign a b",
    b"slabs reassign 300 1", b"slabs reassign 1 2 3", b"slabs automove", b"slabs automove 0", b"slabs automove 2",
    b"slabs automove 3", b"slabs automove x", b"slabs automove ratio", b"slabs automove ratio 0.7",
    b"slabs automove ratio x", b"slabs automove freeratio 0.1", b"slabs automove freeratio", b"slabs automove window 3",
    b"slabs automove window 2", b"slabs automove window 1801", b"slabs automove window x", b"slabs automove window", b"slabs automove 1 noreply",
    b"slabs automove x noreply", b"slabs reassign 1 2 noreply", b"lru_crawler sleep x noreply", b"lru_crawler mgdump x", b"lru_crawler mgdump",
    b"lru_crawler mgd x", b"sla automove 1", b"slabs auto 1", b"slabs auto r 0.5", b"lru t 10 20 0.1 2.0", b"lru tune 10 20 0.1", b"extstore item_s 5",
    b"extstore max 0.1", b"stats e", b"stats extstore", b"stats proxy", b"stats sizes_enable", b"debugtime 5", b"debugtime",
    b"shutdown noreply", b"slabs x y",
    b"lru", b"lru x", b"lru x y", b"lru tune 10 20 0.1 2.0", b"lru tune 50 40 1 1", b"lru tune 1 1 0 1", b"lru tune 1 2 3",
    b"lru tune 1 x 0.1 1", b"lru tune 10 20 0.1 2.0 noreply",
    b"extstore", b"extstore x y", b"extstore item_size 5", b"extstore item_size x", b"extstore max_frag 0.5",
    b"extstore free_memchunks 1 2", b"extstore free_memchunks 1", b"extstore low_ttl 1 noreply",
    b"shutdown", b"shutdown graceful", b"shutdown x",
    b"verbosity", b"verbosity 1", b"verbosity x", b"verbosity 0 noreply", b"verbosity 1 2 3",
    b"stats cachedump", b"stats cachedump 1", b"stats cachedump a b", b"stats cachedump 200 1", b"stats cachedump 1 x",
    b"stats cachedump 60 0", b"stats detail", b"stats detail x", b"watch x", b"watch fetchers x",
]


def test_lines_are_answered_as_memcached_answers_them(pair):
    compare(*pair, [Case(line + b"\r\nmn\r\n") for line in LINES])


def test_watching_and_dumping_are_not_to_be_pipelined(pair):
    compare(*pair, [Case(before + line + b"\r\nmn\r\n") for line in (b"lru_crawler metadump all", b"lru_crawler mgdump all", b"watch")
                    for before in (b"mg <k> v\r\n", b"version\r\n", b"set <k> 0 0 1\r\nx\r\n")])


# --- Dumps

def fill(server, count=40):
    text = b"".join(b"set dump%d 0 %d %d\r\n%s\r\n" % (n, 1000 * (n % 2), n, b"v" * n) for n in range(count))
    text += b"set od%d:/~ 7 0 1\r\nx\r\nget dump3\r\n"
    ((answer, _),) = converse(server.address, [Case(text)])
    assert answer.startswith(b"STORED\r\n" * (count + 1) + b"VALUE")


RECORD = re.compile(rb"key=(\S+) exp=(-1|\d+) la=(\d+) cas=(\d+) fetch=(yes|no) cls=(\d+) size=(\d+)(?: flags=(\d+) )?")


def is_newer(server):
    return server.is_egret or not servers.ORACLE_IS_OLD


def records(dump):
    """Newer ones begin with OK and tell the client flags."""
    assert dump.endswith(b"END\r\n")
    newer = dump.startswith(b"OK\r\n")
    found = {}
    for line in dump[4 if newer else 0:-5].split(b"\n")[:-1]:
        match = RECORD.fullmatch(line)
        assert match and newer == (match[8] is not None), line
        assert match[1] not in found
        found[match[1]] = match
    return found


@pytest.mark.parametrize("what", [b"all", b"hash"])
def test_metadump_says_what_memcached_says(empty, what):
    dumps = []
    for server in empty:
        fill(server)
        (dump,) = say(server, b"lru_crawler metadump " + what)
        assert dump.startswith(b"OK\r\n") == is_newer(server)
        dumps.append(records(dump))
    theirs, ours = dumps
    assert set(theirs) == set(ours) and len(ours) == 41 and b"od%25d%3A%2F~" in ours
    for key, wanted in theirs.items():
        got = ours[key]
        assert wanted[5] == got[5] and wanted[7] == got[7], (wanted[0], got[0])  # fetch, size
        assert wanted[8] in (got[8], None)  # client flags
        assert (wanted[2] == b"-1") == (got[2] == b"-1")
        assert abs(int(wanted[2]) - int(got[2])) <= 3 and abs(int(wanted[3]) - int(got[3])) <= 3
    assert not empty[1].is_egret or ours[b"od%25d%3A%2F~"][8] == b"7"
    (gets,) = say(empty[1], b"gets dump5")
    assert gets.split()[4] == ours[b"dump5"][4]


def test_metadump_of_classes_tells_of_their_items_only(empty):
    _, subject = empty
    fill(subject)
    everything = records(*say(subject, b"lru_crawler metadump all"))
    classes = sorted({int(match[6]) for match in everything.values()})
    assert len(classes) > 1
    by_items = {int(name.split(":")[1]) for name in stats_of(subject.address, b"items")}
    assert set(classes) <= by_items
    for wanted in [classes[:1], classes[-1:], classes[:2]]:
        some = records(*say(subject, b"lru_crawler metadump " + b",".join(b"%d" % number for number in wanted)))
        assert set(some) == {key for key, match in everything.items() if int(match[6]) in wanted}


@pytest.mark.parametrize("what", [b"all", b"hash"])
def test_mgdump_lists_the_commands_that_read_the_items(empty, what):
    dumps = []
    for server in filter(is_newer, empty):
        fill(server, 10)
        say(server, b"ms YQBi 1 b\r\nx")
        (dump,) = say(server, b"lru_crawler mgdump " + what)
        lines = dump.split(b"\r\n")
        assert lines[0] == b"OK" and lines[-2:] == [b"EN", b""]
        dumps.append(sorted(lines[1:-2]))
        with connect(server.address) as sock:
            sock.sendall(b"".join(line + b" v\r\n" for line in dumps[-1]) + b"mn\r\n")
            answer = b""
            while not answer.endswith(b"MN\r\n"):
                answer += sock.recv(1 << 16)
            assert answer.count(b"VA ") == 12
    for dump in dumps:
        assert dump == sorted([b"mg dump%d" % n for n in range(10)] + [b"mg od%d:/~", b"mg YQBi b"])


def test_nothing_expired_or_flushed_is_dumped(empty):
    for server in empty:
        say(server, b"set gone 0 -1 1\r\nx", b"set stays 0 0 1\r\nx")
        assert list(records(*say(server, b"lru_crawler metadump all"))) == [b"stays"]
        say(server, b"flush_all")
        assert records(*say(server, b"lru_crawler metadump all")) == {}


def test_cachedump(empty):
    theirs, ours = [], []
    for server, lists in zip(empty, (theirs, ours)):
        say(server, b"set one 5 0 3\r\nabc", b"set two 0 100 2\r\nab")
        number = next(iter(records(say(server, b"lru_crawler metadump all")[0]).values()))[6]
        lists += say(server, b"stats cachedump %s 0" % number, b"stats cachedump %s 1" % number)
    form = re.compile(rb"ITEM (\S+) \[(\d+) b; (\d+) s\]")
    tables = [{match[1]: match for match in form.finditer(each[0])} for each in (theirs, ours)]
    # memcached lists what was flushed, too, until somebody comes upon it.
    assert set(tables[0]) >= set(tables[1]) == {b"one", b"two"}
    for key in tables[1]:
        assert tables[0][key][2] == tables[1][key][2] and abs(int(tables[0][key][3]) - int(tables[1][key][3])) <= 3
    assert tables[1][b"one"][3] == b"0"
    assert theirs[1].count(b"ITEM") == ours[1].count(b"ITEM") == 1
    assert ours[0].endswith(b"]\r\nEND\r\n") and ours[1].endswith(b"]\r\nEND\r\n")


def test_cachedump_of_class_1_has_the_small_items(empty):
    """Those that memcached keeps in its class 1, in which no item is here."""
    listed = []
    for server in empty:
        text = b"".join(b"set small%02d 0 0 %d\r\n%s\r\n" % (size, size, b"v" * size) for size in range(60))
        converse(server.address, [Case(text + b"set flagged 7 0 20\r\n" + b"v" * 20 + b"\r\nms YQBi 1 b\r\nx\r\n")])
        (dump,) = say(server, b"stats cachedump 1 0")
        listed.append({line.split()[1]: line for line in dump.split(b"\r\n") if line.startswith(b"ITEM small") or b"flagged" in line})
        (some,) = say(server, b"stats cachedump 1 5")
        assert some.count(b"ITEM") == 5
    assert listed[0] == listed[1] and 10 < len(listed[1]) < 60


def test_cachedump_of_all_classes_in_turn_lists_each_item_once(empty):
    """As libmemcached's memcached_dump() does."""
    sizes = (0, 3, 30, 60, 100, 5000, 300_000)
    for server in empty:
        converse(server.address, [Case(b"".join(b"set item%d 0 0 %d\r\n%s\r\n" % (size, size, b"v" * size) for size in sizes))])
        lists = say(server, *(b"stats cachedump %d 0" % number for number in range(1, 64)))
        keys = re.findall(rb"ITEM (item\d+) ", b"".join(lists))
        assert sorted(keys) == sorted(b"item%d" % size for size in sizes), keys


def test_the_crawler_can_be_switched_off_and_on(pair):
    for server in pair:
        assert stats_of(server.address, b"settings")["lru_crawler"] == "yes"
        assert say(server, b"lru_crawler enable", b"lru_crawler disable") == [b"ERROR failed to start lru crawler thread\r\n", b"OK\r\n"]
        # While its thread is still about to end, memcached knows of an unknown error.
        wait_for(lambda: say(server, b"lru_crawler metadump all") == [b"CLIENT_ERROR lru crawler disabled\r\n"], "a crawler that is off")
        assert say(server, b"lru_crawler crawl 1", b"lru_crawler enable") == [b"CLIENT_ERROR lru crawler disabled\r\n", b"OK\r\n"]
        wait_for(lambda: say(server, b"lru_crawler metadump all")[0].endswith(b"END\r\n"), "a crawler that is on again")


def test_a_large_dump_waits_for_its_reader_and_holds_up_nobody(empty):
    """As many keys as would take tens of megabytes of text: the proxy keeps a few pages of it, whatever the client does."""
    _, subject = empty
    count = 200_000
    for begin in range(0, count, 20_000):
        text = b"".join(b"set large-dump-of-keys-%07d 0 0 1 noreply\r\nx\r\n" % n for n in range(begin, begin + 20_000))
        converse(subject.address, [Case(text + b"mn\r\n")])
    with connect(subject.address) as slow:
        slow.sendall(b"lru_crawler metadump all\r\nversion\r\n")
        first = slow.recv(1000)
        assert first.startswith(b"OK\r\n" if is_newer(subject) else b"key=")
        before = [daemon.rss_bytes() for daemon in subject.daemons()]
        assert say(subject, b"lru_crawler metadump all") == [b"BUSY currently processing crawler request\r\n"]
        for n in range(200):
            assert say(subject, b"set other%d 0 0 1\r\ny" % n) == [b"STORED\r\n"]
        after = [daemon.rss_bytes() for daemon in subject.daemons()]
        assert all(b - a < 8 << 20 for a, b in zip(before, after))
        rest = [first]
        while not rest[-1].endswith(b"\r\n") or b"VERSION" not in rest[-1]:
            rest.append(slow.recv(1 << 20))
            assert rest[-1]
    dump, _, version = b"".join(rest).rpartition(b"END\r\n")
    assert version.startswith(b"VERSION")
    keys = set(re.findall(rb"key=large-dump-of-keys-(\d+)", dump))
    assert len(keys) == count == dump.count(b"key=large-dump")


def test_a_dump_whose_reader_goes_lets_the_next_begin(pair):
    _, subject = pair
    with connect(subject.address) as gone:
        gone.sendall(b"lru_crawler metadump all\r\n")
        gone.recv(100)
    wait_for(lambda: say(subject, b"lru_crawler metadump all")[0].endswith(b"END\r\n"), "the next dump")


# --- The memory limit

def test_the_memory_limit_follows(pair):
    for server in pair:
        before = stats_of(server.address)["limit_maxbytes"]
        for megabytes in (100, 500, 1500, 64):
            assert say(server, b"cache_memlimit %d" % megabytes) == [b"OK\r\n"]
            assert stats_of(server.address)["limit_maxbytes"] == str(megabytes << 20)
            assert stats_of(server.address, b"settings")["maxbytes"] == str(megabytes << 20)
        assert say(server, b"cache_memlimit 1024") == [b"OK\r\n"]
        assert before == stats_of(server.address)["limit_maxbytes"] == str(1 << 30)


def test_a_lower_limit_evicts_and_gives_memory_back(pair):
    _, subject = pair
    if not subject.is_egret:
        pytest.skip("memcached evicts later")
    value = b"v" * 10_000
    for begin in range(0, 16_000, 2_000):
        text = b"".join(b"set limit%d 0 0 10000 noreply\r\n%s\r\n" % (n, value) for n in range(begin, begin + 2_000))
        converse(subject.address, [Case(text + b"mn\r\n")])
    full = subject.backend.rss_bytes()
    assert say(subject, b"cache_memlimit 40") == [b"OK\r\n"]
    wait_for(lambda: int(stats_of(subject.address)["bytes"]) < 40 << 20, "evictions")
    if servers.SLACK == 1:
        wait_for(lambda: full - subject.backend.rss_bytes() > 80 << 20, "memory that goes back")
    answer = ask(subject.address, b"set after 0 0 5\r\nthere\r\n")
    assert answer == b"STORED\r\n" and ask(subject.address, b"get after\r\n", b"END\r\n").split()[-2] == b"there"
    assert say(subject, b"cache_memlimit 100000000") == [b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n"]
    assert say(subject, b"cache_memlimit 1024") == [b"OK\r\n"]


# --- What may be forbidden

def test_dumps_and_watching_can_be_forbidden():
    theirs = servers.Memcached("-X", "-W")
    ours = start(allow_dump="off", allow_watch="off") if servers.SUT == "egret" else servers.Memcached("-X", "-W")
    try:
        compare(theirs, ours, [Case(line + b"\r\nmn\r\n") for line in (
            b"lru_crawler metadump all", b"lru_crawler mgdump all", b"stats cachedump 1 1", b"watch",
            b"watch fetchers")])
        for server in filter(is_newer, (theirs, ours)):
            assert say(server, b"stats detail on", b"stats detail dump") == [b"CLIENT_ERROR stats detail not allowed\r\n"] * 2
        if ours.is_egret:
            assert stats_of(ours.address, b"settings")["dump_enabled"] == "no"
    finally:
        theirs.stop()
        ours.stop()


@pytest.mark.parametrize("line", [b"shutdown", b"shutdown graceful"])
def test_shutdown_ends_the_process_where_it_is_allowed(line):
    server = start(allow_shutdown="on") if servers.SUT == "egret" else servers.Memcached("-A")
    try:
        assert say(server, b"shutdown now") == [b"CLIENT_ERROR invalid shutdown mode\r\n"]
        with connect(server.address) as sock:
            sock.sendall(line + b"\r\n")
            assert sock.recv(100) == b""
        daemon = server.proxies[0] if server.is_egret else server.daemon
        assert daemon.wait() == 0
    finally:
        server.stop()


# --- stats detail

def test_prefixes_are_counted_as_memcached_counts_them(pair):
    said = (b"get a:b a:c nop\r\nset a:x 0 0 1\r\n1\r\ndelete a:x\r\ndelete a:x\r\nincr a:x 1\r\ntouch a:b 0\r\n"
            b"set :x 0 0 1\r\n1\r\nset b:x:y 0 0 1\r\n1\r\nget b:x:y\r\ngets b:x:y\r\ngat 0 b:x:y\r\nadd b:x:y 0 0 1\r\n1\r\n"
            b"cas b:no 0 0 1 1\r\n1\r\nset plain 0 0 1\r\n1\r\nmn\r\n")
    dumps = []
    for server in pair:
        assert say(server, b"stats detail on") == [b"OK\r\n"]
        converse(server.address, [Case(said)])
        (dump,) = say(server, b"stats detail dump")
        dumps.append(sorted(dump.split(b"\r\n")))
        assert stats_of(server.address, b"settings")["detail_enabled"] == "yes"
        assert say(server, b"stats detail off") == [b"OK\r\n"]
        converse(server.address, [Case(said)])
        (again,) = say(server, b"stats detail dump")
        assert sorted(again.split(b"\r\n")) == dumps[-1]
        ask(server.address, b"stats reset\r\n")
        assert say(server, b"stats detail dump") == [b"END\r\n"]
    assert dumps[0] == dumps[1]


# --- Keys and names that would break a line (issue 16, row 11)

EVIL = b"\r\nEND\r\nSTORED x\nSTAT pid 1\r\n\x1b[2J:"


@pytest.mark.skipif(servers.SUT != "egret", reason="memcached 1.6.45 prints prefixes of binary keys as they are")
def test_nobody_s_key_or_name_is_read_as_a_line_of_an_answer(tmp_path):
    """Everything that an operator may ask for, each line in its own form, and nothing of the key in the clear."""
    server = servers.Egret(proxy={"admin": f"127.0.0.1:{servers.free_port()}", "log_level": "debug"})
    key = EVIL + b"rest"
    name = str(tmp_path / "c\r\nSTAT 1:state x\r\nEND\r\n")
    asked = {
        b"stats detail dump": rb"PREFIX \S+ get \d+ hit \d+ set \d+ del \d+\r\n",
        b"stats conns": rb"STAT \d+:(addr|listen_addr|state|secs_since_last_cmd) \S+( 1>)?\r\n",
        b"lru_crawler metadump all": rb"key=\S+ exp=\S+ la=\d+ cas=\d+ fetch=\w+ cls=\d+ size=\d+ flags=\d+ \n",
        b"lru_crawler mgdump all": rb"mg \S+( b)?\r\n",
        b"stats cachedump 1 0": rb"ITEM \S+ \[\d+ b; \d+ s\]\r\n",
        b"stats egret": rb"STAT backend:\S+ \S+\r\n",
        b"stats": rb"STAT \w+ \S+( stable)?\r\n",
    }
    assert say(server, b"stats detail on") == [b"OK\r\n"]
    client, connections, named = connect(server.address), connect(server.address), socket.socket(socket.AF_UNIX)
    connections.sendall(b"watch connevents fetchers mutations deletions evictions\r\n")
    assert connections.recv(4) == b"OK\r\n"  # lines may follow at once
    named.settimeout(10)
    named.bind(name)
    named.connect(server.unix_address())
    named.sendall(b"mn\r\n")
    assert named.recv(100) == b"MN\r\n"
    for request in (binary.store(binary.SET, key, b"v"), binary.packet(binary.GET, key), binary.store(binary.SET, b"plain:x", b"v")):
        client.sendall(request)
        assert client.recv(1000)[6:8] == b"\0\0"
    for line, form in asked.items():
        (answer,) = say(server, line)
        answer = answer.removeprefix(b"OK\r\n")
        end = b"EN\r\n" if b"mgdump" in line else b"END\r\n"
        assert answer.endswith(end), line
        assert re.fullmatch(rb"(%s)*" % form, answer.removesuffix(end)), (line, answer)
        assert b"\x1b" not in answer and b"STORED x" not in answer, line
        if line != b"stats cachedump 1 0":
            assert answer != end, line  # it has something to tell
    client.sendall(binary.packet(binary.DELETE, key))
    assert client.recv(1000)[6:8] == b"\0\0"
    named.close()
    heard = b""
    while b"type=deleted" not in heard or b"conn_close" not in heard:
        heard += connections.recv(65536)
    assert re.fullmatch(rb"(ts=\d+\.\d+ gid=\d+ type=[^\r\n\x1b]*\n)*", heard), heard
    for daemon in server.daemons():
        assert "\x1b" not in daemon.log(1_000_000) and not re.search(r"^(END|STAT|STORED)", daemon.log(1_000_000), re.M)
    with urllib.request.urlopen(f"http://{server.proxy_options['admin']}/metrics") as page:
        assert all(re.match(rb"#|\w+(\{[^\r\n]*\})? \S+$", line) for line in page.read().splitlines())
    for sock in (client, connections):
        sock.close()
    server.check_alive()
    server.stop()


# --- The tool

def test_memcached_tool_dumps(empty):
    outputs = []
    for server in empty:
        fill(server, 20)
        done = subprocess.run(["perl", TOOL, "%s:%d" % server.address, "dump"], capture_output=True, timeout=30)
        assert done.returncode == 0, done.stderr
        adds = re.findall(rb"add (\S+) (\d+) (\d+) (\d+)\r\n(v*)", done.stdout)
        outputs.append({key: (flags, exptime != b"0", length, value) for key, flags, exptime, length, value in adds})
        keys = subprocess.run(["perl", TOOL, "%s:%d" % server.address, "keys"], capture_output=True, timeout=30)
        assert keys.stdout.count(b"key=") == 21
    assert outputs[0] == outputs[1] and len(outputs[1]) == 21
