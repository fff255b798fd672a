#!/usr/bin/env python3
"""prove.py BUILD: a session with an rdma+tcp: backend goes on over TCP when the device is gone, and returns by itself. Runs in a guest.

The device is taken away and given back by `rdma link delete` and `rdma link add`, with the unmodified daemons on it and a client that counts: each of its
incr is done once, or not at all if it was answered by an error.
"""
import json, os, pathlib, re, subprocess, sys, threading, urllib.request

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv[1])
os.environ["EGRET_BUILD"] = str(BUILD)
os.environ.setdefault("EGRET_SLACK", "4")
sys.path[:0] = [str(HERE.parents[1] / "conformance")]
import servers

ADDRESS = os.environ["EGRET_GUEST_ADDRESS"]
WHERE = f"rdma+tcp:{ADDRESS}:11311"
LINK = "dummy0"
wrong = []


def check(what, seen, expected):
    if seen == expected:
        return
    wrong.append(what)
    print(f"  WRONG {what}: {seen}, expected {expected}", flush=True)


def take_device():
    print("rdma link delete rxe0", flush=True)
    subprocess.run(["rdma", "link", "delete", "rxe0"], check=True)


def give_device():
    print("rdma link add rxe0", flush=True)
    subprocess.run(["rdma", "link", "add", "rxe0", "type", "rxe", "netdev", LINK], check=True)


def start(name, options):
    directory = servers.scratch_directory()
    path = directory / "options.yaml"
    path.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in options.items()))
    return servers.Daemon([BUILD / name, "--config", path], directory, name)


def start_backend():
    return start("egret-backend", {"listen": [WHERE], "partitions": 1, "memory": "64MiB", "populate": False, "admin": "127.0.0.1:0"})


def start_proxy():
    port = servers.free_port()
    proxy = start("egret-proxy", {"listen": [f"tcp:127.0.0.1:{port}"], "backends": [WHERE], "workers": 1, "admin": "127.0.0.1:0", "reconnect_max": "100ms"})
    proxy.address = ("127.0.0.1", port)
    servers.wait_for(lambda: f"listening on tcp:127.0.0.1:{port}" in proxy.log(), "the proxy to listen", timeout=60)
    return proxy


def figure(daemon, pattern):
    found = re.search(r"admin address: (\S+)", daemon.log(1 << 20))
    if not found:
        return None
    with urllib.request.urlopen(f"http://{found[1]}/metrics", timeout=120) as answer:
        value = re.search(rf"^{pattern} (\S+)$", answer.read().decode(), re.M)
    return int(float(value[1])) if value else None


def sessions(proxy):
    """(by rdma, by tcp), as the proxy says."""
    return tuple(figure(proxy, rf'egret_proxy_backend_transport_sessions{{backend="[^"]*",transport="{name}"}}') for name in ("rdma", "tcp"))


def wait_until_by(transport, backend, proxy):
    expected = {"rdma": (1, 0), "tcp": (0, 1)}[transport]
    servers.wait_for(lambda: sessions(proxy) == expected, f"the session to go by {transport}", timeout=180)
    of_backend = rf'egret_backend_transport_sessions{{transport="{transport}"}}'
    servers.wait_for(lambda: figure(backend, of_backend) == 1, f"the backend to count it by {transport}", timeout=60)


def changes_of(proxy):
    """To TCP and back to RDMA, by its log; the same by its metrics."""
    log = proxy.log(1 << 20)
    logged = [log.count(f"[{event}]") for event in ("session_fell_back", "session_returned")]
    return logged + [figure(proxy, rf'egret_proxy_backend_{name}_total{{backend="[^"]*"}}') for name in ("fallbacks", "returns")]


class Counter(threading.Thread):
    """A client that adds one again and again."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.done, self.errors, self.odd = address, 0, 0, []
        self.stopping = threading.Event()
        servers.wait_for(lambda: servers.ask(address, b"set n 0 0 1\r\n0\r\n", timeout=60) == b"STORED\r\n", "the counter")
        self.start()

    def run(self):
        with servers.connect(self.address, timeout=120) as client, client.makefile("rb") as lines:
            while not self.stopping.is_set():
                client.sendall(b"incr n 1\r\n")
                answer = lines.readline()
                if answer.strip().isdigit():
                    self.done += 1
                elif answer.startswith(b"SERVER_ERROR"):
                    self.errors += 1
                    self.stopping.wait(0.01)
                else:
                    self.odd.append(answer)
                    return

    def goes_on(self, count=50):
        """So many more are done."""
        before = self.done
        servers.wait_for(lambda: self.odd or self.done >= before + count, f"{count} more", timeout=120)

    def end(self):
        self.stopping.set()
        self.join()
        check("answers that are neither", self.odd, [])
        value = int(servers.ask(self.address, b"get n\r\n", b"END\r\n", timeout=60).split(b"\r\n")[1])
        print(f"done {self.done}, errors {self.errors}, the value {value}", flush=True)
        check("each is done once; one that was answered by an error at most once", self.done <= value <= self.done + self.errors, True)


def prove_going_and_returning():
    backend, proxy = start_backend(), start_proxy()
    counter = Counter(proxy.address)
    wait_until_by("rdma", backend, proxy)
    before = changes_of(proxy)  # on a busy machine the first session may have gone by TCP
    for turn in range(2):
        counter.goes_on()
        take_device()
        wait_until_by("tcp", backend, proxy)
        counter.goes_on()
        errors = counter.errors
        give_device()
        wait_until_by("rdma", backend, proxy)
        counter.goes_on()
        check("errors while it returned", counter.errors - errors, 0)
    counter.end()
    falls_logged, *others = [after - earlier for earlier, after in zip(before, changes_of(proxy))]
    check("each return is logged, each change is counted", others, [2] * 3)
    check("each fall is logged", falls_logged >= 2, True)  # and a return that failed for a new reason is, too
    for daemon in proxy, backend:
        daemon.check_alive()
        check(f"{daemon.name} ends", daemon.stop(), 0)


def prove_a_start_without_the_device():
    take_device()
    backend, proxy = start_backend(), start_proxy()
    counter = Counter(proxy.address)
    wait_until_by("tcp", backend, proxy)
    counter.goes_on()
    errors = counter.errors
    give_device()
    wait_until_by("rdma", backend, proxy)
    counter.goes_on()
    check("errors while it went over", counter.errors - errors, 0)
    counter.end()
    for daemon in proxy, backend:
        check(f"{daemon.name} ends", daemon.stop(), 0)


prove_going_and_returning()
prove_a_start_without_the_device()
if wrong:
    sys.exit(f"{len(wrong)} wrong")
print("the session went over TCP and returned, and nothing was done twice")
