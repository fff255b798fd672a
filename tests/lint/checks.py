#!/usr/bin/env python3
"""checks.py: EGRET_CHECK, which ends the process, stays out of files that handle what peers, disks, devices and limits bring.

Such a thing is an error of one session or request. What remains in these folders is listed, with its number and why nobody but a bug of ours can
fail it (memory that cannot be had ends the process everywhere, as std::bad_alloc does)."""
import collections, pathlib, re, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("protocol/admin", "protocol/base/local", "protocol/discovery", "protocol/events", "protocol/pool", "protocol/memcache", "protocol/rpc", "protocol/transport", "protocol/wire",
          "proxy", "backend")
TOLERATED = {
    "backend/store/memory/arena.cc": (1, "a populate() without a map() before it"),
    "backend/store/index/index.cc": (2, "room for the first page is checked by the options, for a line of overflow by grow()"),
    "backend/store/set.cc": (3, "room was made before: ensure_room()"),
    "backend/store/store.cc": (2, "the configuration, which the options have checked"),
    "backend/store/memory/value.cc": (1, "room was made before: ensure_room()"),
    "protocol/admin/http_server.cc": (1, "memory"),
    "backend/partition.cc": (1, "a message of ours to the wrong thread"),
    "protocol/admin/metrics.cc": (2, "two tables of ours"),
    "protocol/pool/ketama.cc": (2, "the number of members, which options and discovery have checked"),
    "protocol/pool/pool.cc": (1, "a session that is not the pool's"),
    "protocol/pool/rendezvous.cc": (3, "number and weights of members, which options and discovery have checked; an index of ours"),
    "protocol/events/event.cc": (3, "memory: a timer takes no descriptor; an event that is not in the loop"),
    "protocol/rpc/large/large_get.cc": (1, "its owner destroys it with fetches under way"),
    "protocol/wire/proof.cc": (2, "a proof without a secret; memory"),
    "proxy/client/tls.cc": (4, "memory; what the options have checked"),
    "proxy/client/tls_socket.cc": (1, "memory"),
    "proxy/worker_context.cc": (1, "the size of a buffer, at the start"),
}

held = collections.Counter()
for place in PLACES:
    for path in sorted((ROOT / place).rglob("*")):
        if path.suffix in (".cc", ".h"):
            held[str(path.relative_to(ROOT))] += len(re.findall(r"^(?!\s*//).*\b(?:EGRET_CHECK\(|check_failed\()", path.read_text(), re.M))
if not held:
    sys.exit("checks: no sources found")
allowed = {file: count for file, (count, _) in TOLERATED.items()}
wrong = [f"{file}: {count} EGRET_CHECK, at most {allowed.get(file, 0)}: what fails here must be an error of one session" for file, count in held.items()
         if count > allowed.get(file, 0)]
wrong += [f"{file}: only {held[file]} EGRET_CHECK by now: correct the list in tests/lint/checks.py" for file, count in allowed.items() if held[file] < count]
print("\n".join(wrong) or f"{len(held)} sources, {sum(held.values())} EGRET_CHECK, all of them accounted for")
sys.exit(1 if wrong else 0)
