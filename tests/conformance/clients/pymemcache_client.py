"""Debian's python3-pymemcache: pymemcache_client.py HOST PORT. What test_clients.py does not ask of it: CAS, and the serializer."""

import sys

from pymemcache import serde
from pymemcache.client.base import Client

LARGE = b"0123456789" * 92_160
client = Client((sys.argv[1], int(sys.argv[2])), timeout=20, default_noreply=False, serde=serde.pickle_serde)
failed = 0


def check(what, is_so):
    global failed
    print("pass " if is_so else "FAIL ", what)
    failed |= not is_so


check("set, get", client.set("pc-a", ["one"]) and client.get("pc-a") == ["one"])
check("multi", client.set_many({f"pc-m{n}": n for n in range(200)}) == []
      and client.get_many([f"pc-m{n}" for n in range(0, 400, 2)]) == {f"pc-m{n}": n for n in range(0, 200, 2)})
value, number = client.gets("pc-a")
check("cas", client.cas("pc-a", "two", number) is True and client.cas("pc-a", "three", number) is False)
check("incr", client.set("pc-n", b"10") and client.incr("pc-n", 5) == 15)
check("touch", client.touch("pc-a", 100) and not client.touch("pc-none", 100))
check("delete", client.delete("pc-a") and client.get("pc-a") is None)
check("900 KiB", client.set("pc-large", LARGE) and client.get("pc-large") == LARGE)
sys.exit(failed)
