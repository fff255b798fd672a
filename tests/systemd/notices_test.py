#!/usr/bin/env python3
"""notices_test.py BUILD: the daemons say when they serve, and ping the watchdog while every one of their threads goes on."""
import contextlib, ctypes, os, pathlib, sys, time, unittest

from daemons import Daemons

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
WATCHDOG_USEC = 400_000
PING_SECONDS = WATCHDOG_USEC / 1e6
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, thread):
    if libc.ptrace(request, thread, None, None) != 0:
        raise PermissionError(ctypes.get_errno(), "ptrace")


def thread_of(pid, name):
    for thread in os.listdir(f"/proc/{pid}/task"):
        if pathlib.Path(f"/proc/{pid}/task/{thread}/comm").read_text().strip() == name:
            return int(thread)
    raise AssertionError(f"{pid} has no thread {name}")


@contextlib.contextmanager
def halted(thread):
    """One thread stands still; the others of its process go on."""
    ptrace(PTRACE_SEIZE, thread)
    ptrace(PTRACE_INTERRUPT, thread)
    os.waitpid(thread, WALL)
    try:
        yield
    finally:
        ptrace(PTRACE_DETACH, thread)


class Notices(unittest.TestCase):
    def setUp(self):
        self.daemons = Daemons(BUILD, environment={"WATCHDOG_USEC": str(WATCHDOG_USEC)})
        self.addCleanup(self.daemons.__exit__)

    def test_both_say_that_they_serve_when_they_do(self):
        self.assertIn("READY=1", self.daemons.backend_ready)
        self.assertIn("READY=1", self.daemons.proxy_ready)
        self.assertEqual(self.daemons.ask(b"get k\r\n", b"END\r\n"), b"END\r\n")

    def check_that_it_watches(self, daemon, thread_name):
        for _ in range(3):
            self.assertIsNotNone(daemon.notice("WATCHDOG=1"))
        try:
            with halted(thread_of(daemon.process.pid, thread_name)):
                # One ping may be on its way, and one may follow from an answer that was given before.
                pings = [daemon.notice("WATCHDOG=1", 2 * PING_SECONDS) for _ in range(3)]
                self.assertIsNone(pings[-1], f"pings while {thread_name} stands still")
        except PermissionError:
            self.skipTest("ptrace is not allowed here")
        self.assertIsNotNone(daemon.notice("WATCHDOG=1"), f"no pings after {thread_name} went on")

    def test_a_worker_that_hangs_stops_the_pings(self):
        self.check_that_it_watches(self.daemons.proxy, "worker-0")

    def test_a_partition_that_hangs_stops_the_pings(self):
        self.check_that_it_watches(self.daemons.backend, "partition-0")


class Unread(unittest.TestCase):
    def test_a_supervisor_that_does_not_read_halts_nobody(self):
        with Daemons(BUILD, environment={"WATCHDOG_USEC": "4000"}) as daemons:  # its queue is full in no time
            time.sleep(1)
            self.assertEqual(daemons.ask(b"get k\r\n", b"END\r\n"), b"END\r\n")
            for daemon in reversed(daemons.started):
                daemon.process.terminate()
                self.assertEqual(daemon.process.wait(30), 0)


class Unwatched(unittest.TestCase):
    def test_a_watchdog_of_somebody_else_is_not_pinged(self):
        with Daemons(BUILD, environment={"WATCHDOG_USEC": str(WATCHDOG_USEC), "WATCHDOG_PID": "1"}) as daemons:
            self.assertIsNone(daemons.proxy.notice("WATCHDOG=1", 2 * PING_SECONDS))
            self.assertIsNone(daemons.backend.notice("WATCHDOG=1", 0.1))


if __name__ == "__main__":
    unittest.main()
