"""Debian's python3-memcache: python_memcache.py HOST PORT."""

import sys

import memcache

LARGE = b"0123456789" * 92_160
client = memcache.Client([f"{sys.argv[1]}:{sys.argv[2]}"], cache_cas=True, socket_timeout=20)
failed = 0


def check(what, is_so):
    global failed
    print("pass " if is_so else "FAIL ", what)
    failed |= not is_so


client.flush_all()
check("set, get", client.set("pm-a", "one") and client.get("pm-a") == "one")
check("get of nothing", client.get("pm-none") is None)
check("objects and numbers", client.set("pm-o", {"käse": [1, 2]}) and client.get("pm-o") == {"käse": [1, 2]} and client.set("pm-7", 7)
      and client.get("pm-7") == 7)
check("add, replace", client.add("pm-b", "b") and not client.add("pm-b", "c") and client.replace("pm-b", "bb")
      and not client.replace("pm-none", "x"))
check("append, prepend", client.append("pm-b", ">") and client.prepend("pm-b", "<") and client.get("pm-b") == "<bb>")
check("multi", client.set_multi({f"pm-m{n}": n for n in range(200)}) == []
      and client.get_multi([f"pm-m{n}" for n in range(0, 400, 2)]) == {f"pm-m{n}": n for n in range(0, 200, 2)})
check("noreply", client.set("pm-q", "q", noreply=True) is not None and client.get("pm-q") == "q")
check("cas", client.set("pm-c", "1") and client.gets("pm-c") == "1" and client.cas("pm-c", "2"))
client.gets("pm-c")
client.set("pm-c", "3")
check("cas of what has changed", not client.cas("pm-c", "4") and client.get("pm-c") == "3")
check("incr, decr", client.set("pm-n", "10") and client.incr("pm-n", 5) == 15 and client.decr("pm-n", 20) == 0
      and client.incr("pm-none") is None)
check("touch", client.touch("pm-b", 100) and not client.touch("pm-none", 100))
check("delete", client.delete("pm-b") and client.get("pm-b") is None and client.delete_multi([f"pm-m{n}" for n in range(200)])
      and client.get("pm-m2") is None)
check("900 KiB", client.set("pm-large", LARGE) and client.get("pm-large") == LARGE)
((_, stats),) = client.get_stats()
check("stats", int(stats["curr_items"]) > 0)
sys.exit(failed)
