"""No address of the store is inside a memory that the device may touch: seen from outside, in the real daemon.

The interposer lists what egret-backend registers. Values that can be recognised are planted through a proxy and looked for in
the daemon's memory (/proc/PID/mem): they must be somewhere, for there the store is, and that mapping and all registered
ranges must have no byte in common. Slots hold copies of values, rightly; so they are written over by other traffic first,
but for the last value: that it is found in a slot proves that this search finds what is registered.
"""

import os
import re
import secrets
import time

import read_counts
import servers

PLANTED = 24
WINDOW = 4
FILLERS = 40  # several on each of three partitions
LIBRARY = servers.BUILD / "libegret_count_verbs.so"
ALLOWED = {("local write",), ("local write", "remote write"), ("remote read",)}


def start_counted(counts):
    """One worker, so one session, with a backend that runs under the interposer."""
    egret = servers.Egret(backend={"memory": "16MiB", "window": WINDOW}, proxy={"workers": 1}, start=False)
    os.environ.update(LD_PRELOAD=str(LIBRARY), EGRET_COUNT_VERBS_FILE=str(counts))
    try:
        egret.start_backend()
    finally:
        del os.environ["LD_PRELOAD"]
    egret.add_proxy()
    return egret


def talk(file, request, lines):
    file.write(request)
    file.flush()
    return [file.readline() for _ in range(lines)]


def store(file, key, value):
    assert talk(file, b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value), 1) == [b"STORED\r\n"]


def fetch(file, key, value):
    assert talk(file, b"get %s\r\n" % key, 3)[1] == value + b"\r\n"


def write_over_the_slots(file):
    """More messages than any lane has slots, each longer than what was planted, both ways."""
    filler = b"." * 3500
    for number in range(FILLERS):
        for _ in range(WINDOW // 2):
            store(file, b"filler%d" % number, filler)
            fetch(file, b"filler%d" % number, filler)


def mappings(pid):
    with open(f"/proc/{pid}/maps") as lines:
        for line in lines:
            found = re.match(r"([0-9a-f]+)-([0-9a-f]+) (r\S+)", line)
            if found and "[v" not in line:  # vvar, vsyscall: not to be read
                yield int(found[1], 16), int(found[2], 16)


def find(pid, pattern):
    """Where the pattern is in the process's memory: {address: mapping}."""
    places = {}
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for start, end in mappings(pid):
            try:
                memory.seek(start)
                data = memory.read(end - start)
            except OSError:  # a device's pages
                continue
            places |= {start + found.start(): (start, end) for found in re.finditer(re.escape(pattern), data)}
    return places


def test_no_address_of_the_store_is_registered(tmp_path):
    counts = tmp_path / "counts"
    egret = start_counted(counts)
    try:
        mark = b"mark-" + secrets.token_hex(8).encode()
        with servers.connect(egret.address) as sock, sock.makefile("rwb") as file:
            for number in range(PLANTED):
                store(file, b"planted%d" % number, mark + b"=%d;" % number + b"x" * 700)
                fetch(file, b"planted%d" % number, mark + b"=%d;" % number + b"x" * 700)
            write_over_the_slots(file)
            last = mark + b"=last;"
            store(file, b"last", last)
            fetch(file, b"last", last)
            time.sleep(0.1)  # nothing of it is under way
        registered = [each for each in read_counts.registrations(counts) if each["state"] == "registered"]
        ranges = [(each["address"], each["address"] + each["length"]) for each in registered]
        assert {tuple(each["rights"]) for each in registered} == ALLOWED, registered
        assert len(registered) == 3, "frames, requests and responses of one session, and nothing else"

        places = find(egret.backend.pid, mark)
        in_slots = {at for at in places if any(start <= at < end for start, end in ranges)}
        in_store = places.keys() - in_slots
        print(len(in_store), "places of planted values,", len(in_slots), "in slots,", len(ranges), "ranges registered")
        assert len(in_slots) in (1, 2), "the last value is in the slots that carried it, and no other"
        assert len(in_store) >= PLANTED + 1, "the store is not where this test looks"
        for start, end in {places[at] for at in in_store}:
            overlapping = [each for each in ranges if each[0] < end and start < each[1]]
            assert not overlapping, f"{overlapping} share a mapping with items: {start:#x}-{end:#x}"
        seen = read_counts.snapshot(counts)
        assert (seen["relaxed_ordering"], seen["uncounted"]) == (0, 0)
    finally:
        egret.stop()
