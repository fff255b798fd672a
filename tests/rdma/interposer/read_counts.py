#!/usr/bin/env python3
"""read_counts.py FILE [--registrations] [--since SNAPSHOT] [NAME ...]: prints what libegret_count_verbs.so has counted so far.

A line for each counter, `name value`; with names, those only. The process may run, have ended or have been killed. What
was printed earlier can be given as --since: then sums are printed as what came after it. --registrations lists the
memory regions instead: address, bytes, rights, state.

As a module: snapshot(path) -> {name: value}, difference(after, before), registrations(path). The layout is counter_file.h's.
"""
import argparse, pathlib, struct, sys

MAGIC = b"EGRETVC1"
ROW = struct.Struct("<48sQII")
REGISTRATION = struct.Struct("<QQIII36x")
MOST = 1
RIGHTS = {1: "local write", 2: "remote write", 4: "remote read", 8: "remote atomic", 16: "bind", 32: "zero based",
          64: "on demand", 128: "huge pages", 1 << 20: "RELAXED ORDERING"}
STATES = {1: "registered", 2: "deregistered", 3: "failed"}


def _read(path):
    data = pathlib.Path(path).read_bytes()
    if data[:8] != MAGIC:
        raise ValueError(f"{path} is no file of libegret_count_verbs (no verb has been called yet?)")
    return data


def _rows(path):
    data = _read(path)
    for i in range(struct.unpack_from("<I", data, 8)[0]):
        name, value, kind, _ = ROW.unpack_from(data, 64 + i * ROW.size)
        yield name.rstrip(b"\0").decode(), value, kind


class Snapshot(dict):
    """Counters by name; `most` names those that are a maximum and no sum."""
    most = frozenset()


def snapshot(path):
    rows = list(_rows(path))
    taken = Snapshot((name, value) for name, value, _ in rows)
    taken.most = frozenset(name for name, _, kind in rows if kind == MOST)
    return taken


def difference(after, before):
    """What happened in between. A maximum has no difference: it stays what it is at the end."""
    return {name: value if name in after.most else value - before.get(name, 0) for name, value in after.items()}


def registrations(path):
    data = _read(path)
    counters, places, _, made = struct.unpack_from("<IIII", data, 8)
    found = []
    for i in range(min(made, places)):
        address, length, access, state, rkey = REGISTRATION.unpack_from(data, 64 + counters * ROW.size + i * REGISTRATION.size)
        rights = [name for bit, name in RIGHTS.items() if access & bit]
        found.append({"address": address, "length": length, "rights": rights, "state": STATES.get(state, "?"), "rkey": rkey})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--since")
    parser.add_argument("--registrations", action="store_true")
    options = parser.parse_args()
    if options.registrations:
        for each in registrations(options.file):
            print(f"{each['address']:#x} {each['length']} {each['state']}: {', '.join(each['rights']) or 'local read'}")
        return 0
    counts = snapshot(options.file)
    if options.since:
        lines = pathlib.Path(options.since).read_text().splitlines()
        counts = difference(counts, {name: int(value) for name, value in map(str.split, lines)})
    unknown = [name for name in options.names if name not in counts]
    if unknown:
        print(f"no such counter: {', '.join(unknown)}", file=sys.stderr)
        return 2
    for name in options.names or counts:
        print(name, counts[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
