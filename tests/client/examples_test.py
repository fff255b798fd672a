#!/usr/bin/env python3
"""examples_test.py BUILD: the examples of docs/client, which were compiled as C99 and C++20, do against a backend what they say."""
import os, pathlib, subprocess, sys, tempfile, time

BUILD = pathlib.Path(sys.argv[1])
EXPECTED = {
    "first-c": "set: stored\nget: hello\nincr: 42\n",
    "first-cc": "first\nsecond\nmiss\nstored\n",
    "event-loop": "1000 stored, 1000 found, 0 failed\n",
}


def run(example, environment):
    return subprocess.run([BUILD / f"client-example-{example}"], capture_output=True, text=True, env=environment, timeout=60)


with tempfile.TemporaryDirectory(prefix="egret-examples-") as folder:
    address = f"shm:{folder}/backend"
    pathlib.Path(folder, "client.yaml").write_text(f"backends: [{address}]\nreconnect_max: 50ms\n")
    environment = os.environ | {"EGRET_CONFIG": f"{folder}/client.yaml"}
    down = run("first-c", environment)
    assert down.returncode == 1 and "not done" in down.stderr and address.removeprefix("shm:") in down.stderr, down
    options = {"listen": address, "admin": "", "memory": "64MiB", "populate": "false", "partitions": "2"}
    backend = subprocess.Popen([BUILD / "egret-backend", "--config", "/dev/null", *(word for option in options.items() for word in ("--set", "=".join(option)))],
                               stderr=subprocess.DEVNULL)
    try:
        while run("first-c", environment).returncode != 0:
            assert backend.poll() is None, "the backend has ended"
            time.sleep(0.05)
        for example, expected in EXPECTED.items():
            said = run(example, environment)
            assert (said.returncode, said.stdout, said.stderr) == (0, expected, ""), (example, said)
    finally:
        backend.terminate()
        backend.wait()
print(f"{len(EXPECTED)} examples do what they say")
