"""`egret-bench fleet` as a whole, with few sessions. What is counted must be what the model says; no time is judged.

    smoke_test.py PATH-OF-EGRET-BENCH FOLDER-OF-THE-DAEMONS LIBRARY-OF-A-SHORT-BACKLOG
"""

import json
import os
import subprocess
import sys
import unittest

BENCH, DAEMONS, SHORT_BACKLOG = sys.argv[1:4]
del sys.argv[1:4]


def run(*arguments, **environment):
    return subprocess.run([BENCH, "fleet", "--spawn-egret", DAEMONS, "--duration", "0.05", *arguments], capture_output=True, text=True,
                          timeout=100, env={**os.environ, **environment})


def tables_of(done):
    return {table["name"]: table["rows"] for table in json.loads(done.stdout)}


class Fleet(unittest.TestCase):
    def counts_are_those_of_the_model(self, transport):
        done = run("--at", transport, "--sessions", "1", "10", "70", "--backends", "1", "12", "--lanes", "4", "--json")
        self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
        tables = tables_of(done)
        self.assertEqual([row["sessions x lanes"] for row in tables["counts"]], ["1 x 1", "10 x 1", "70 x 1", "1 x 4", "12 x 4"])
        for row in tables["counts"]:
            self.assertEqual(row["open"], row["sessions"])
            # It has up to four more than it had before the first session.
            self.assertIn(row["descriptors of the backend"] - row["by the model"], range(5), (transport, row))
            self.assertEqual(row["descriptors of the proxy"], row["by the model too"], (transport, row))
            self.assertEqual(row["region bytes"], row["region bytes by the model"])
        self.assertEqual(len(tables["backend"]), 3)
        self.assertEqual(len(tables["proxy"]), 2)
        self.assertEqual(tables["restart"], [])

    def test_counts_are_those_of_the_model_over_shared_memory(self):
        self.counts_are_those_of_the_model("shm")

    def test_counts_are_those_of_the_model_over_tcp(self):
        self.counts_are_those_of_the_model("tcp")

    def test_more_sessions_than_the_backend_takes(self):
        done = run("--sessions", "5", "--backends", "1", "--backend-set", "max_sessions=4")
        self.assertEqual(done.returncode, 1)
        self.assertIn("max_sessions = 4", done.stderr)

    def some_are_back(self, sessions, *transport, **environment):
        """The further worker comes back at a moment of its own: seldom as the last of all, and then it gets nothing meanwhile."""
        for _ in range(3):
            done = run("--at", *transport, "--sessions", str(sessions), "--restart", str(sessions), "--backends", "1", "--json", **environment)
            self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
            (row,) = tables_of(done)["restart"]
            self.assertEqual(row["sessions"], str(sessions))
            if row["gets meanwhile"] > 0:
                return row
        return self.fail("nobody was served while sessions came back, three times")

    def test_after_a_restart_of_the_backend_all_are_back(self):
        """Two attempts each in the model (tests/sim/storm_test.cc). Here a busy machine may cost more; a fifth would count as a failure of the backend."""
        row = self.some_are_back(300, "shm")
        self.assertLessEqual(row["attempts at most"], 4, row)

    def test_where_four_connections_may_wait_at_once_they_are_back_too(self):
        """Who finds no place tries again, by the system's own pause: that is no attempt that the backend sees."""
        self.some_are_back(300, "tcp", LD_PRELOAD=SHORT_BACKLOG, EGRET_BACKLOG="4")

    def test_after_a_restart_a_thousand_hosts_are_heard_before_any_is_turned_away(self):
        """All connect over TCP at one moment. Who is closed unheard, for the next one's sake, tries again, and so do all: nine attempts and more. Here
        one may be the killed backend's, whose system had taken the connection."""
        row = self.some_are_back(1000, "tcp", "--hosts", "1000")
        self.assertLessEqual(row["attempts at most"], 5, row)


unittest.main()
