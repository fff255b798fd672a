#!/usr/bin/env python3
"""prove.py BUILD LIBRARY: what a session does with the options of the fabric, and on devices and links that give less. Runs in a guest.

The release binaries under libegret_count_verbs.so (LIBRARY), which sees from outside what rdma_cm was told, and can make the device give less
(limits.h). What the queue pairs then have stands in the session's line of either log, which asks the device for it.
"""
import os, pathlib, re, subprocess, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from under import *


def serve_once(at=f"rdma:{ADDRESS}:11311", options=None, **verbs):
    """A proxy of its own: what its session's line says, and what the library has counted."""
    proxy = start_proxy(at, options, **verbs)
    check_served(proxy)
    said, counts = proxy.path_of_session(), proxy.counts()
    proxy.stop()
    return said, counts


def complains(complaint, options, at=f"rdma:{ADDRESS}:11311", **verbs):
    """A proxy whose session cannot open says why, in one line."""
    proxy = start_proxy(at, options, **verbs)
    servers.wait_for(lambda: re.search(complaint, proxy.log()), f"the proxy to say '{complaint}'")
    proxy.stop()


def has(what, said, *words):
    for word in words:
        check(f"{what}: '{word}' is in '{said}'", re.search(rf"(^|[ ,;]){re.escape(word)}($|[ ,;])", said) is not None, True)


def gids():
    """address → index"""
    found = {}
    for index in range(16):
        raw = pathlib.Path(f"/sys/class/infiniband/rxe0/ports/1/gids/{index}").read_text().strip().replace(":", "")
        if raw.strip("0"):
            found[raw] = index
    return found


def gid_of(address):
    mapped = "0" * 20 + "ffff" + "".join(f"{int(part):02x}" for part in address.split("."))
    servers.wait_for(lambda: mapped in gids(), f"a gid of {address}")
    return gids()[mapped]


def prove_options():
    backend = start_backend(options={"ack_timeout": 17})
    said, counts = serve_once()
    has("nothing is set", said, "tos 0", "ack_timeout 16")
    check("rdma_cm is told", (counts["option_tos"], counts["option_ack_timeout"]), (0, 16))

    proxy = start_proxy(options={"tos": 104, "ack_timeout": 18})
    check_served(proxy)
    has("the proxy's end", proxy.path_of_session(), "tos 104", "ack_timeout 18")
    has("the backend's end", backend.path_of_session(), "tos 104", "ack_timeout 17")
    check("rdma_cm is told", (proxy.counts()["option_tos"], proxy.counts()["option_ack_timeout"]), (104, 18))
    # A reload is for the sessions that come after it.
    proxy.reload(tos=32, ack_timeout=19)
    has("the session that is open", proxy.path_of_session(), "tos 104", "ack_timeout 18")
    backend.stop()
    backend = start_backend()
    servers.wait_for(lambda: "ack_timeout 19" in proxy.path_of_session(), "a session as the reload says")
    has("the next", proxy.path_of_session(), "tos 32", "ack_timeout 19")
    proxy.stop()

    ip("addr", "add", f"{SECOND}/24", "dev", LINK)
    index = gid_of(SECOND)
    said, _ = serve_once(options={"gid_index": index, "pkey": "0xffff"})
    has("gid_index", said, f"gid {index} = ::ffff:{SECOND} (RoCE v2)")
    check("whom the backend sees", SECOND in backend.log(), True)
    first = gid_of(ADDRESS)
    complains(rf"there is no gid_index 99: rxe0 port 1 has .*{first} = ::ffff:{re.escape(ADDRESS)} \(RoCE v2\)", {"gid_index": 99})
    complains(r"gid_index 0 is no IPv4 address, as the backend's is: rxe0 port 1 has 0 = fe80::", {"gid_index": 0})
    complains(r"there is no pkey 0x8001: rxe0 port 1 is RoCE, and has 0xffff only", {"pkey": "0x8001"})
    backend.stop()


def prove_limits():
    """Either end of the session is on a device that gives little."""
    verbs = {"limit": "rd_atomic:1,inline:0,queue:16,cqe:64", "hide": "ack_timeout"}
    backend = start_backend(**verbs)
    said, counts = serve_once(options={"ack_timeout": 20}, **verbs)
    has("what is left", said, "read depth 1", "inline 0")
    check("what is refused is said", "; ack_timeout is not taken: Function not implemented" in said, True)
    check("READs under way, inline", (counts["reads_under_way"], counts["inline"]), (1, 0))
    check("the device refused something", counts["refused_by_limits"] > 0, True)
    said, counts = serve_once()
    has("the other end is as usual", said, "read depth 1", "ack_timeout 16")
    check("READs under way", counts["reads_under_way"], 1)
    # A completion queue has room for two queue pairs only: there are several.
    said, _ = serve_once(options={"qps_per_session": 4})
    has("queue pairs", said, "4 queue pairs")
    check("completion queues", backend.counts()["completion_queues"] > 1, True)
    backend.stop()


def prove_thread_domains():
    # 32 slots of 64 KiB fill a page of 2 MiB.
    backend = start_backend(options={"session_memory": "8MiB", "response_slot_size": "64KiB", "window": 32}, have="thread_domains")
    said, counts = serve_once(options={"qps_per_session": 2, "idle_window": 0}, have="thread_domains")
    has("the session's line", said, "thread domain", "2 queue pairs")
    check("a domain for the session, its queue pairs in it", (counts["thread_domains"] > 0, counts["thread_pairs"]), (True, counts["queue_pairs"]))
    counts = backend.counts()
    check("the backend's", counts["thread_pairs"], counts["queue_pairs"])
    fetched = [each for each in read_counts.registrations(backend.counters) if "remote read" in each["rights"]]
    check("large memories begin with a page of 2 MiB", {each["address"] % (2 << 20) for each in fetched if each["length"] >= 2 << 20}, {0})
    backend.stop()


def values(proxy):
    """Fifty connections that set and get at once, with values of less than a small slot and of more."""
    address = ("127.0.0.1", int(proxy.options["listen"][0].rsplit(":", 1)[1]))
    sockets = [servers.connect(address) for _ in range(50)]
    for size in (20, 1400, 3000):
        value = b"v" * size
        request = b"".join(b"set s%d 0 0 %d\r\n%s\r\nget s%d\r\n" % (n, size, value, n) for n in range(8))
        expected = b"".join(b"STORED\r\nVALUE s%d 0 %d\r\n%s\r\nEND\r\n" % (n, size, value) for n in range(8))
        for each in sockets:
            each.sendall(request)
        for each in sockets:
            seen = b""
            while len(seen) < len(expected):
                piece = each.recv(1 << 20)
                if not piece:
                    break
                seen += piece
            check(f"answers with values of {size}", seen == expected, True)
    for each in sockets:
        each.close()


def sizes(daemon):
    return re.findall(r"\d+ lanes? x (\d+) slots of (\d+) \+ (\d+)", daemon.log())


def prove_growth():
    """A session begins small, has all its slots under load, and gives them back when there is little to do."""
    backend = start_backend()
    proxy = start_proxy(options={"give_back_after": "4s", "window": 16})
    servers.wait_for(lambda: serves(proxy), "the proxy to serve")
    check("it begins with", sizes(proxy)[-1], ("2", "1216", "1216"))

    def is_large():
        values(proxy)
        return sizes(proxy)[-1] == ("16", "4096", "4096")
    servers.wait_for(is_large, "the session to grow")
    values(proxy)
    servers.wait_for(lambda: sizes(proxy)[-1] == ("2", "1216", "1216"), "the session to give its slots back")
    check_served(proxy)
    check("no session was lost", "session_lost" in proxy.log(), False)
    counts = backend.counts()
    check("the backend holds what its one session has", counts["registrations"] - counts["deregistrations"] > 0, True)
    proxy.stop()
    # A backend that has no room for a second session keeps the first one.
    backend.stop()
    backend = start_backend(options={"max_sessions": 1})
    proxy = start_proxy(options={"window": 16})
    servers.wait_for(lambda: serves(proxy), "the proxy to serve")

    def is_refused():
        values(proxy)
        return "[session_not_resized]" in proxy.log()
    servers.wait_for(is_refused, "the second session to be refused")
    check("why", "keeps its size: refused: max_sessions = 1" in proxy.log(), True)
    check_served(proxy)
    check("no session was lost", "session_lost" in proxy.log(), False)
    proxy.stop()
    backend.stop()


def while_asked_now_and_then(backend, proxy, gets=40):
    """What either daemon's library counts while a client asks again and again, the worker having gone to sleep each time."""
    with servers.connect(("127.0.0.1", int(proxy.options["listen"][0].rsplit(":", 1)[1]))) as client:
        def get():
            client.sendall(b"get nothing\r\n")
            check("the answer", client.recv(100), b"END\r\n")
            time.sleep(0.03)
        for _ in range(5):  # how it waited for the handshake's frames shows once more
            get()
        before = [each.counts() for each in (backend, proxy)]
        for _ in range(gets):
            get()
        return [read_counts.difference(each.counts(), start) for each, start in zip((backend, proxy), before)]


def prove_interrupts():
    """An op of an idle session interrupts nobody, but for the deliveries and rings that were asked for."""
    awake = {"lane_idle": "1s"}
    fetching = {"spin": "10ms", "fetch_mode": "fetch", "workers": 2}
    for refused in (), ("proxy",), ("backend",):
        verbs = {name: {"limit": "solicited:0"} if name in refused else {} for name in ("backend", "proxy")}
        backend = start_backend(options=awake, **verbs["backend"])
        proxy = start_proxy(options=fetching, **verbs["proxy"])
        check_served(proxy)
        counts = dict(zip(("backend", "proxy"), while_asked_now_and_then(backend, proxy)))
        print(f"refused by {refused}:", {side: {name: seen[name] for name in ("completion_events", "recv_completions", "arms", "solicited_arms")}
                                         for side, seen in counts.items()}, flush=True)
        for side, daemon in ("backend", backend), ("proxy", proxy):
            if side in refused:
                check(f"the {side} asks for solicited events", daemon.counts()["solicited_arms"], 0)
            else:
                # A link whose send queue is full for a moment asks for any event, until there is room.
                held_up = counts[side]["arms"] - counts[side]["solicited_arms"]
                check(f"the {side} takes no more events than the other one solicits, but while it is held up",
                      counts[side]["completion_events"] <= counts[side]["recv_completions"] + held_up, True)
                check(f"the {side} is hardly ever held up", held_up <= 4, True)
        if "proxy" in refused:
            check("each get interrupts", counts["proxy"]["completion_events"] > 20, True)
        # Soft-RoCE has a vector for each processor.
        check("completion queues take the vectors in turn", proxy.counts()["completion_vector"] > 0, os.cpu_count() > 1)
        proxy.stop()
        backend.stop()


def prove_orders():
    """What a card may do and Soft-RoCE does not: lines of a READ or a WRITE take place one by one, the first at first and the others in any order; completions
    are told late; a channel wakes its thread for nothing. Every answer is right and no session ends, whether results are fetched or pushed, and whether the
    worker polls or sleeps."""
    for mode in "fetch", "reply", "auto":
        proxy_tears = "write:64:shuffled:5" if mode == "reply" else "write:64:shuffled:5,read:64:shuffled:5:later"
        backend = start_backend(tear="write:64:shuffled:5", withhold="3", spurious="every 2")
        proxy = start_proxy(options={"fetch_mode": mode, "workers": 2}, tear=proxy_tears, withhold="3", spurious="every 2")
        check_served(proxy)
        values(proxy)
        while_asked_now_and_then(backend, proxy)
        for daemon in backend, proxy:
            seen = daemon.counts()
            print(f"{mode}, {daemon.daemon.name}:", {name: seen[name] for name in ("torn", "pieces", "withheld", "spurious_events", "completion_events")}, flush=True)
            check("verbs are torn, completions withheld, events spurious", [seen[name] > 0 for name in ("torn", "withheld", "spurious_events")], [True] * 3)
        check("no session was lost", "session_lost" in proxy.log(), False)
        proxy.stop()
        backend.stop()


def prove_networks():
    ip("addr", "add", f"{V6}/64", "dev", LINK, "nodad")
    backend = start_backend([f"rdma:[{V6}]:11312", "rdma:*:11311"])
    for mtu, of_device in (1500, 1024), (9000, 4096):
        ip("link", "set", LINK, "mtu", str(mtu))
        said, _ = serve_once()
        has(f"an MTU of {mtu}", said, f"mtu {of_device}")
    said, _ = serve_once(f"rdma:[{V6}]:11312")
    check("IPv6", f"= {V6} (RoCE v2)" in said, True)
    backend.stop()


def prove_namespaces():
    """A network namespace that has no device, where namespaces do not share them: rdma: is refused in a line, rdma+tcp: goes by TCP."""
    subprocess.run(["rdma", "system", "set", "netns", "exclusive"], check=True)
    ip("netns", "add", "bare")
    ip("-n", "bare", "link", "set", "lo", "up")
    within = ["ip", "netns", "exec", "bare"]
    done = subprocess.run([*within, BUILD / "egret-backend", "--set", "listen=rdma:127.0.0.1:11311", "--set", "memory=8MiB", "--set", "partitions=1",
                           "--set", "admin="], capture_output=True, text=True, timeout=60)
    check("a backend of rdma: alone ends", done.returncode, 1)
    check("it says why", [line for line in done.stderr.splitlines() if "cannot listen on rdma:127.0.0.1:11311" in line and "No such device" in line] != [], True)
    backend = start_backend("rdma+tcp:127.0.0.1:11311", within=within)
    socket = servers.scratch_directory() / "proxy.sock"
    proxy = start_proxy("rdma+tcp:127.0.0.1:11311", {"listen": [f"unix:{socket}"]}, within=within)
    def is_served():
        proxy.daemon.check_alive()
        try:
            return servers.ask(socket, b"set k 0 0 1\r\n1\r\n") == b"STORED\r\n"
        except OSError:
            return False
    servers.wait_for(is_served, "rdma+tcp: to go by TCP")
    proxy.stop()
    backend.stop()
    # Where namespaces have devices of their own, this host's own daemons have theirs as before.
    backend = start_backend()
    serve_once()
    backend.stop()
    ip("netns", "del", "bare")


def prove_refusals():
    """An iWARP device, as siw, is refused in a line by either side."""
    backend = start_backend()
    complains(r"rxe0 .*iWARP.* WRITE with immediate", {}, have="iwarp")
    backend.stop()
    done = subprocess.run(["env", f"LD_PRELOAD={LIBRARY}", "EGRET_VERBS_HAVE=iwarp", BUILD / "egret-backend", "--set", f"listen=rdma:{ADDRESS}:11311",
                           "--set", "memory=8MiB", "--set", "partitions=1", "--set", "admin="], capture_output=True, text=True, timeout=60)
    check("the backend ends", done.returncode, 1)
    check("it says why", [bool(re.search("iWARP.* WRITE with immediate", line)) for line in done.stderr.splitlines() if "cannot listen" in line], [True])


PARTS = {"options": prove_options, "limits": prove_limits, "thread_domains": prove_thread_domains, "growth": prove_growth, "interrupts": prove_interrupts, "orders": prove_orders, "networks": prove_networks, "namespaces": prove_namespaces, "refusals": prove_refusals}
run(PARTS, "EGRET_FABRIC_PARTS", "every option reached the queue pairs, and sessions served with less")
