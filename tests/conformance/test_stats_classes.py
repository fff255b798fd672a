"""stats items, slabs and sizes: memcached's rows for Egret's size classes, and the tools that read them."""

import re
import subprocess

import pytest

import servers
from dialog import Case, converse
from servers import stats_of

TOOL = "/usr/share/memcached/scripts/memcached-tool"
LENGTHS = [1] * 40 + [100] * 30 + [1000] * 20 + [20_000] * 10 + [700_000] * 2


AS_IT_COMES = ("-o", "lru_maintainer,track_sizes")


@pytest.fixture(scope="module")
def subject():
    server = servers.start_subject() if servers.SUT == "egret" else servers.Memcached(*AS_IT_COMES)
    yield server
    for daemon in server.daemons():
        daemon.check_alive()
    server.stop()


@pytest.fixture(scope="module")
def segmented():
    """A memcached as it comes: with the LRU that has most rows, and histograms of sizes."""
    server = servers.Memcached(*AS_IT_COMES)
    yield server
    server.stop()


@pytest.fixture(scope="module", autouse=True)
def filled(segmented, subject):
    for server in (segmented, subject):
        text = b"".join(b"set class%d 0 0 %d\r\n%s\r\n" % (n, length, b"v" * length) for n, length in enumerate(LENGTHS))
        ((answer, _),) = converse(server.address, [Case(text)])
        assert answer == b"STORED\r\n" * len(LENGTHS)


def classes_of(server, group, pattern):
    """class → {name: value}, in the order of the rows; and the rows that belong to no class."""
    classes, others = {}, {}
    for name, value in stats_of(server.address, group).items():
        match = re.fullmatch(pattern, name)
        if match:
            classes.setdefault(int(match[1]), {})[match[2]] = int(value)
        else:
            others[name] = int(value)
    return classes, others


def items_of(server):
    return classes_of(server, b"items", r"items:(\d+):(\w+)")


def slabs_of(server):
    return classes_of(server, b"slabs", r"(\d+):(\w+)")


def test_every_class_has_memcacheds_rows_in_memcacheds_order(segmented, subject):
    for read in (items_of, slabs_of):
        (wanted, wanted_others), (got, got_others) = read(segmented), read(subject)
        names = list(next(iter(wanted.values())))
        assert len(got) >= 4
        for number, rows in got.items():
            assert list(rows) == names, number
        assert list(got_others) == list(wanted_others)
        assert list(got) == sorted(got) and min(got) >= 1


def test_the_figures_fit_together(segmented, subject):
    """The same for memcached, which proves that these are rules."""
    for server in (segmented, subject):
        (items, _), (slabs, totals), stats = items_of(server), slabs_of(server), stats_of(server.address)
        assert sum(rows["number"] for rows in items.values()) == int(stats["curr_items"]) >= len(LENGTHS)
        assert sum(rows["mem_requested"] for rows in items.values()) == int(stats["bytes"])
        for number, rows in items.items():
            assert rows["number"] == rows["number_hot"] + rows["number_warm"] + rows["number_cold"]
            if server.is_egret:  # memcached's large items are larger than a chunk
                assert rows["mem_requested"] <= rows["number"] * slabs[number]["chunk_size"]
        for rows in slabs.values():
            assert rows["total_chunks"] == rows["total_pages"] * rows["chunks_per_page"]
            assert rows["total_chunks"] == rows["used_chunks"] + rows["free_chunks"] + rows["free_chunks_end"]
        assert totals["active_slabs"] == len(slabs)
        assert totals["total_malloced"] >= int(stats["bytes"])
        sizes = stats_of(server.address, b"sizes")
        assert sum(int(count) for count in sizes.values()) == int(stats["curr_items"])
        assert all(name.isdigit() for name in sizes)


def test_items_of_one_size_are_in_one_class(subject):
    items, _ = items_of(subject)
    assert sorted(rows["number"] for rows in items.values())[-3:] == [20, 30, 40]


def tool(server, *mode):
    done = subprocess.run(["perl", TOOL, "%s:%d" % server.address, *mode], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.splitlines()


def test_memcached_tool_displays_the_classes(segmented, subject):
    tables = [tool(server) for server in (segmented, subject)]
    assert tables[0][0] == tables[1][0]
    for table in tables:
        rows = [line.split() for line in table[1:]]
        counts = [int(row[4]) for row in rows]
        assert sum(counts) >= len(LENGTHS)
        assert {40, 30, 20} <= set(counts)
        for row in rows:
            number, size, age, pages, _, full, evicted, evict_time, oom = row
            assert int(number) > 0 and re.fullmatch(r"\d+B|\d+\.\dK", size) and re.fullmatch(r"\d+s", age) and int(pages) > 0
            assert full in ("yes", "no") and evicted == evict_time == oom == "0"


@pytest.mark.parametrize("mode", ["stats", "settings", "sizes"])
def test_memcached_tool_lists(segmented, subject, mode):
    lists = []
    for server in (segmented, subject):
        lines = tool(server, mode)
        assert lines[0].startswith("#%s:%d" % server.address)
        lists.append(dict(line.split(None, 1) for line in lines[1:]))
    for name, value in stats_of(subject.address, {"stats": b""}.get(mode, mode.encode())).items():
        assert name in lists[1], name
    if mode == "stats":
        assert lists[0]["curr_items"] == lists[1]["curr_items"]
    if mode == "sizes":
        assert sum(map(int, lists[0].values())) == sum(map(int, lists[1].values()))


def test_what_is_deleted_is_counted_no_more(subject):
    """Last: it takes the classes away."""
    converse(subject.address, [Case(b"".join(b"delete class%d noreply\r\n" % n for n in range(len(LENGTHS))) + b"mn\r\n")])
    stats = stats_of(subject.address)
    items, _ = items_of(subject)
    assert sum(rows["number"] for rows in items.values()) == int(stats["curr_items"]) < len(LENGTHS)
