#!/usr/bin/env python3
"""agent.py PORT: in the guest. Runs the commands that come in on a virtio port, one after the other, each a line of JSON:

    guest ─▶ {"ready": true}                             once, when the guest is up
    host  ─▶ {"command": "...", "seconds": 60}
    guest ─▶ {"status": 0, "output": "..."}              124 when it took longer
"""
import json, os, signal, subprocess, sys

OUT_OF_TIME = 124
os.environ.update(HOME="/root", LC_ALL="C.UTF-8", DEBIAN_FRONTEND="noninteractive",
                  PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")


def answer(command, seconds):
    process = subprocess.Popen(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True, cwd="/root")
    try:
        output = process.communicate(timeout=seconds)[0]
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, status = process.communicate()[0], OUT_OF_TIME
    return {"status": status, "output": output.decode(errors="replace")}


with open(sys.argv[1], "r+b", buffering=0) as port:
    def say(message):
        left = json.dumps(message).encode() + b"\n"
        while left:
            left = left[port.write(left):]

    say({"ready": True})
    line = b""
    while True:
        line += port.read(65536) or b""
        while b"\n" in line:
            first, line = line.split(b"\n", 1)
            say(answer(**json.loads(first)))
