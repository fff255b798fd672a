#!/usr/bin/env python3
"""smoke_test.py EGRET_BENCH BUILD: `egret-bench client` drives a backend by libegret and a memcached by its socket and by libmemcached, and says when answers are wrong."""
import contextlib, ctypes, json, os, pathlib, re, socket, subprocess, sys, tempfile, threading, time

BENCH, BUILD = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def has_libmemcached():
    with contextlib.suppress(OSError):
        return ctypes.CDLL("libmemcached.so.11")


def bench(*arguments, runner=()):
    return subprocess.run([*runner, BENCH, "client", "--seconds", "0.05", "--rounds", "1", "--keys", "200", *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "EGRET_PRELOAD_LOG": f"{folder}/served"})


def wait_for(path):
    for _ in range(600):
        if pathlib.Path(path).exists():
            return
        time.sleep(0.05)
    sys.exit(f"{path} is not there")


def lie(listener):
    """A server that stores everything, and answers each get with another value."""
    connection, _ = listener.accept()
    while received := connection.recv(65536):
        if received.startswith(b"set"):
            connection.sendall(b"STORED\r\n" * received.count(b"set "))
        else:
            connection.sendall(b"VALUE client:0 0 5\r\nwrong\r\nEND\r\n")


with tempfile.TemporaryDirectory(prefix="egret-bench-client-") as folder:
    os.chmod(folder, 0o777)  # memcached makes its socket as nobody
    backend = subprocess.Popen([BUILD / "egret-backend", "--config", "/dev/null", *(word for option in (
        f"listen=shm:{folder}/backend", "admin=", "memory=64MiB", "populate=false", "partitions=2") for word in ("--set", option))], stderr=subprocess.DEVNULL)
    proxy = subprocess.Popen([BUILD / "egret-proxy", "--config", "/dev/null", *(word for option in (
        f"listen=unix:{folder}/proxy", f"backends=shm:{folder}/backend", "admin=", "workers=1") for word in ("--set", option))], stderr=subprocess.DEVNULL)
    memcached = subprocess.Popen(["memcached", "-s", f"{folder}/memcached", "-u", "nobody"])
    try:
        [wait_for(f"{folder}/{name}") for name in ("backend", "memcached", "proxy.slots")]
        said = bench("--backends", f"shm:{folder}/backend", "--socket", f"unix:{folder}/memcached", "--pids", str(backend.pid))
        assert said.returncode == 0, said
        rows = re.findall(r"^\| (get, one at a time|get, one a ms|multiget of 50|32 gets under way) \| ([^|]+) \| (\d+) \|", said.stdout, re.M)
        assert len(rows) == 8 and all(int(rate) > 0 for *_, rate in rows), said.stdout
        assert {side for _, side, _ in rows} == {"libegret", f"unix:{folder}/memcached"}, said.stdout
        said = bench("--proxy", f"unix:{folder}/proxy", "--pids", str(proxy.pid), str(backend.pid))
        assert said.returncode == 0, said
        sides = set(re.findall(r"^\| get, one a ms \| ([^|]+) \|", said.stdout, re.M))
        assert sides == {"libegret, told by the proxy", "libegret, relayed"}, said.stdout
        said = bench("--socket", f"unix:{folder}/memcached", "--kind", "multiget", "--kind", "processes", "--json", f"{folder}/rows")
        assert said.returncode == 0, said
        multiget, processes = json.loads(pathlib.Path(folder, "rows").read_text())
        assert (multiget["kind"], processes["kind"]) == ("multiget", "processes") and multiget["by"] == f"unix:{folder}/memcached", multiget
        assert 0 < multiget["p50_us"] <= multiget["p99_us"] and "p50_us" not in processes and processes["gets_per_s"] > 0, processes
        ways = ["--socket"]
        if has_libmemcached():
            ways.append("--libmemcached")
            for runner in ([], [BUILD / "egret-run"]):
                said = bench("--libmemcached", f"unix:{folder}/{'proxy' if runner else 'memcached'}", runner=runner)
                assert said.returncode == 0, said
                assert len(re.findall(r"^\| [^|]+ \| libmemcached, unix:[^|]+ \| [1-9]", said.stdout, re.M)) == 5, said.stdout
            assert re.search(r"[1-9]\d* ops by slots", pathlib.Path(folder, "served").read_text())
        for way in ways:
            listener = socket.create_server(("127.0.0.1", 0))
            threading.Thread(target=lie, args=(listener,), daemon=True).start()
            said = bench(way, f"127.0.0.1:{listener.getsockname()[1]}")
            assert said.returncode == 1 and "something else" in said.stderr, said
        said = bench("--backends", f"shm:{folder}/nobody")
        assert said.returncode == 1 and "nobody" in said.stderr, said
    finally:
        for server in (proxy, backend, memcached):
            server.terminate()
            server.wait()
print("egret-bench client measures, and notices wrong answers")
