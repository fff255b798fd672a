"""The release daemons in a guest, under libegret_count_verbs.so, for scripts that are called with BUILD LIBRARY: what they are asked, what their
counters and logs say, and what was not as expected."""
import json, os, pathlib, re, signal, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD, LIBRARY = map(pathlib.Path, sys.argv[1:3])
os.environ["EGRET_BUILD"] = str(BUILD)
os.environ.setdefault("EGRET_SLACK", "4")
sys.path[:0] = [str(HERE.parents[1] / "conformance"), str(HERE.parent / "interposer")]
import read_counts
import servers

ADDRESS = os.environ["EGRET_GUEST_ADDRESS"]
SECOND, V6, LINK = "10.9.0.7", "fd00:9::1", "dummy0"
wrong = []
under = []  # every daemon


def check(what, seen, expected):
    if seen == expected:
        return
    wrong.append(what)
    print(f"  WRONG {what}: {seen}, expected {expected}", flush=True)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


class Under:
    """A daemon under the library, with a file of options that a reload reads again. `within`: a command that runs it."""

    def __init__(self, name, options, within=(), **verbs):
        self.directory = servers.scratch_directory()
        self.counters, self.path = self.directory / "counts", self.directory / "options.yaml"
        self.options = options
        self.write()
        environment = [f"LD_PRELOAD={LIBRARY}", f"EGRET_COUNT_VERBS_FILE={self.counters}", "EGRET_VERBS_YIELD=1",
                       *(f"EGRET_VERBS_{key.upper()}={value}" for key, value in verbs.items())]
        under.append(self)
        self.daemon = servers.Daemon([*within, "env", *environment, BUILD / name, "--config", self.path], self.directory, name)

    def write(self):
        self.path.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in self.options.items()))

    def reload(self, **changes):
        self.options |= changes
        self.write()
        self.daemon.signal(signal.SIGHUP)
        servers.wait_for(lambda: "reloaded:" in self.log(), "the reload")

    def log(self, most=1 << 16):
        return self.daemon.log(most)

    def counts(self):
        servers.wait_for(self.counters.exists, "the library to count")
        return read_counts.snapshot(self.counters)

    def path_of_session(self):
        """What its last session's line says of the path and the queue pairs."""
        lines = re.findall(r"rxe0 port 1, gid .*", self.log())
        return lines[-1] if lines else ""

    def stop(self):
        servers.wait_for(lambda: self.daemon.catches(signal.SIGTERM), f"{self.daemon.name} to have started")
        check(f"{self.daemon.name} ends", self.daemon.stop(), 0)


def start_backend(at=f"rdma:*:11311", options=None, **verbs):
    listen = [at] if isinstance(at, str) else at
    return Under("egret-backend", {"listen": listen, "partitions": 1, "memory": "64MiB", "populate": False, "admin": "", **(options or {})}, **verbs)


def start_proxy(at=f"rdma:{ADDRESS}:11311", options=None, **verbs):
    client = f"tcp:127.0.0.1:{servers.free_port()}"
    return Under("egret-proxy", {"listen": [client], "backends": [at], "workers": 1, "admin": "", "op_timeout": "60s", "reconnect_max": "100ms",
                                 **(options or {})}, **verbs)


def ask(proxy, request, end=b"\r\n"):
    return servers.ask(("127.0.0.1", int(proxy.options["listen"][0].rsplit(":", 1)[1])), request, end, timeout=30)


def serves(proxy):
    proxy.daemon.check_alive()
    try:
        return ask(proxy, b"set ready 0 0 1\r\n1\r\n") == b"STORED\r\n"
    except OSError:
        return False


def check_served(proxy):
    """Values within a slot, of more than one READ, and of many slots come back as they went."""
    servers.wait_for(lambda: serves(proxy), "the proxy to serve")
    for size in (1, 300, 3000, 40_000):
        value = (b"%d." % size * size)[:size]
        check(f"set of {size}", ask(proxy, b"set k%d 0 0 %d\r\n%s\r\n" % (size, size, value)), b"STORED\r\n")
        check(f"get of {size} is right", ask(proxy, b"get k%d\r\n" % size, b"END\r\n") == b"VALUE k%d 0 %d\r\n%s\r\nEND\r\n" % (size, size, value), True)
    sets = b"".join(b"set p%d 0 0 4 noreply\r\n%04d\r\n" % (n, n) for n in range(200))
    ask(proxy, sets + b"mn\r\n")
    got = ask(proxy, b"get " + b" ".join(b"p%d" % n for n in range(200)) + b"\r\n", b"END\r\n")
    check("a get of 200", got, b"".join(b"VALUE p%d 0 4\r\n%04d\r\n" % (n, n) for n in range(200)) + b"END\r\n")


def run(parts, only, well):
    """The script: all parts, or those that the variable `only` names. What daemons have logged is shown of a part that does not get to its end."""
    for name in os.environ.get(only, " ".join(parts)).split():
        print(f"--- {name}", flush=True)
        under.clear()
        try:
            parts[name]()
        except BaseException:
            for daemon in under:
                for task in sorted(pathlib.Path(f"/proc/{daemon.daemon.process.pid}/task").glob("*")):
                    print(daemon.daemon.name, (task / "comm").read_text().strip(), (task / "stack").read_text().replace("\n", " ")[:600], (task / "syscall").read_text().strip(), flush=True)
                print(f"{daemon.daemon.name}:\n{daemon.log()}", flush=True)
            raise
    if wrong:
        sys.exit(f"{len(wrong)} wrong")
    print(well)
