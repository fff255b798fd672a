"""The test's side of libegret_fail_calls.so: which calls of a process fail, and how many have been made and failed.

    calls = FailingCalls(path)                 the file that EGRET_FAIL_CALLS_FILE names; its layout is call_file.h's
    calls.fail("mmap", rate=1.0)  …  calls.stop()
    calls.failed()["mmap"]
"""

import mmap
import pathlib
import struct

import servers

MAGIC = b"EGRETFC1"
HEADER = 64
KIND = struct.Struct("<24sQQQI12x")
LIBRARY = servers.BUILD / "libegret_fail_calls.so"


def preloaded(argv, path, nth=""):
    """`argv`, under the library. `nth`: calls that fail from the start, as "mmap:3,open:1"."""
    assert LIBRARY.exists(), f"{LIBRARY} is missing: build egret_fail_calls"
    return ["/usr/bin/env", f"LD_PRELOAD={LIBRARY}", f"EGRET_FAIL_CALLS_FILE={path}", f"EGRET_FAIL_CALLS={nth}", *argv]


class FailingCalls:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        servers.wait_for(self._is_there, f"{path}: the library's file")
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)
        self.names = [self._row(number)[0].rstrip(b"\0").decode() for number in range(self._kinds())]

    def _is_there(self):
        return self.path.exists() and self.path.read_bytes()[:8] == MAGIC

    def _kinds(self):
        return struct.unpack_from("<I", self.map, 8)[0]

    def _row(self, number):
        return KIND.unpack_from(self.map, HEADER + number * KIND.size)

    def seed(self, seed):
        struct.pack_into("<Q", self.map, 16, seed)

    def fail(self, name, rate):
        """Of the calls of that kind this part fails from now on; 1.0: all."""
        struct.pack_into("<I", self.map, HEADER + self.names.index(name) * KIND.size + 48, round(rate * 65536))

    def stop(self):
        for name in self.names:
            self.fail(name, 0)

    def calls(self):
        return {name: self._row(number)[1] for number, name in enumerate(self.names)}

    def failed(self):
        return {name: self._row(number)[2] for number, name in enumerate(self.names)}
