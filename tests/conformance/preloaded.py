"""Programs that egret-run starts, with libegret-preload.so before libc; and what the library has said of their sockets."""

import os
import re
import shutil
import subprocess
import textwrap

from servers import BUILD, SLACK, scratch_directory

RUN = BUILD / "egret-run"
PYTHON = "/usr/bin/python3"
# What every program begins with: a connection, and one command at a time.
PROGRAM = """
import os, select, signal, socket, subprocess, sys, threading, time
HOST, PORT = sys.argv[1], int(sys.argv[2])
def connect():
    return socket.create_connection((HOST, PORT), timeout=30)
def ask(sock, text, end=b"\\r\\n"):
    sock.sendall(text)
    heard = b""
    while not heard.endswith(end):
        more = sock.recv(65536)
        if not more:
            return heard + b"(closed)"
        heard += more
    return heard
def say(*words):
    print(*words, flush=True)
"""


class Preloaded:
    """Runs programs with the library before libc; knows what it has said of each socket."""

    def __init__(self):
        self.directory = scratch_directory()
        self.log_path = self.directory / "log"
        self.programs = []

    def start(self, text, *arguments, **environment):
        program = subprocess.Popen([RUN, PYTHON, "-c", PROGRAM + textwrap.dedent(text), *map(str, arguments)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env={**os.environ, "EGRET_PRELOAD_LOG": str(self.log_path), **environment})
        self.programs.append(program)
        return program

    def run(self, text, *arguments, **environment):
        program = self.start(text, *arguments, **environment)
        said, _ = program.communicate(timeout=60 * SLACK)
        assert program.returncode == 0, said + self.log()
        return said.splitlines()

    def run_client(self, argv):
        """A program of another language, as it is. Its output."""
        done = subprocess.run([RUN, *map(str, argv)], capture_output=True, text=True, timeout=120 * SLACK, check=False,
                              env={**os.environ, "EGRET_PRELOAD_LOG": str(self.log_path)})
        assert done.returncode == 0 and "FAIL" not in done.stdout, done.stdout + done.stderr + self.log()
        return done.stdout

    def log(self):
        return self.log_path.read_text() if self.log_path.exists() else ""

    def served(self):
        """(ops by slots, commands over the connection), of all sockets that were closed."""
        counts = re.findall(r"(\d+) ops by slots, (\d+) commands", self.log())
        return tuple(sum(int(each[i]) for each in counts) for i in (0, 1))

    def stop(self):
        for program in self.programs:
            if program.poll() is None:
                program.kill()
            program.communicate()
        shutil.rmtree(self.directory)
