"""Debian's python3-pylibmc (libmemcached): pylibmc_client.py HOST PORT text|binary."""

import sys

import pylibmc

LARGE = bytes(range(256)) * 3_600
binary = sys.argv[3] == "binary"
client = pylibmc.Client([f"{sys.argv[1]}:{sys.argv[2]}"], binary=binary, behaviors={"cas": True, "tcp_nodelay": True})
key = f"pl-{sys.argv[3]}-"
failed = 0


def check(what, is_so):
    global failed
    print("pass " if is_so else "FAIL ", what)
    failed |= not is_so


def raises(kind, call, *arguments):
    try:
        call(*arguments)
    except kind:
        return True
    return False


check("set, get", client.set(key + "a", "text") and client.get(key + "a") == "text" and client.get(key + "none") is None)
for value in (b"bytes", 42, {"a": [1, 2]}, True, "käse\r\n", b""):
    check(f"value {value!r}", client.set(key + "v", value) and client.get(key + "v") == value)
check("multi", client.set_multi({f"{key}m{n}": n for n in range(200)}) == []
      and client.get_multi([f"{key}m{n}" for n in range(0, 400, 2)]) == {f"{key}m{n}": n for n in range(0, 200, 2)})
client.delete(key + "b")
check("add, replace", client.add(key + "b", "b") and not client.add(key + "b", "c") and client.replace(key + "b", "bb"))
# What libmemcached makes of the binary protocol's "not found" differs from the text protocol's "not stored".
check("replace of nothing", raises(pylibmc.NotFound, client.replace, key + "none", "x") if binary else not client.replace(key + "none", "x"))
check("append, prepend", client.append(key + "b", ">") and client.prepend(key + "b", "<") and client.get(key + "b") == "<bb>")
value, number = client.gets(key + "a")
check("cas", value == "text" and client.cas(key + "a", "new", number) and not client.cas(key + "a", "newer", number)
      and client.get(key + "a") == "new")
check("incr, decr", client.set(key + "n", "10") and client.incr(key + "n", 5) == 15 and client.decr(key + "n", 20) == 0)
check("incr of nothing", raises(pylibmc.NotFound, client.incr, key + "none"))
check("touch", client.touch(key + "a", 100) and client.get(key + "a") == "new")
check("expiry in the past", client.set(key + "x", "x", 2_592_001) and client.get(key + "x") is None)
check("delete", client.delete(key + "a") and not client.delete(key + "a") and client.get(key + "a") is None)
check("delete_multi", client.delete_multi([f"{key}m{n}" for n in range(200)]) and client.get(key + "m2") is None)
check("900 KiB", client.set(key + "large", LARGE) and client.get(key + "large") == LARGE)
check("too large", raises(pylibmc.Error, client.set, key + "huge", b"x" * (1 << 20)))
((_, stats),) = client.get_stats()
check("stats", int({str(name).strip("b'"): found for name, found in stats.items()}["curr_items"]) > 0)
check("flush_all", client.flush_all() and client.get(key + "b") is None)
sys.exit(failed)
