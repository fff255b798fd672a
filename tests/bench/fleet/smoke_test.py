"""`egret-bench fleet` as a whole, with few sessions. What is counted must be what the model says; no time is judged.

    smoke_test.py PATH-OF-EGRET-BENCH FOLDER-OF-THE-DAEMONS
"""

import json
import subprocess
import sys
import unittest

BENCH, DAEMONS = sys.argv[1], sys.argv[2]
del sys.argv[1:3]


def run(*arguments):
    return subprocess.run([BENCH, "fleet", "--spawn-egret", DAEMONS, "--duration", "0.05", *arguments], capture_output=True, text=True,
                          timeout=100)


class Fleet(unittest.TestCase):
    def test_counts_are_those_of_the_model(self):
        done = run("--sessions", "1", "10", "70", "--backends", "1", "12", "--lanes", "4", "--json")
        self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
        tables = {table["name"]: table["rows"] for table in json.loads(done.stdout)}
        self.assertEqual([row["sessions x lanes"] for row in tables["counts"]], ["1 x 1", "10 x 1", "70 x 1", "1 x 4", "12 x 4"])
        for row in tables["counts"]:
            self.assertEqual(row["open"], row["sessions"])
            # It has up to four more than it had before the first session.
            self.assertIn(row["descriptors of the backend"] - row["by the model"], range(5))
            self.assertEqual(row["descriptors of the proxy"], row["by the model too"])
            self.assertEqual(row["region bytes"], row["region bytes by the model"])
        self.assertEqual(len(tables["backend"]), 3)
        self.assertEqual(len(tables["proxy"]), 2)

    def test_more_sessions_than_the_backend_takes(self):
        done = run("--sessions", "5", "--backends", "1", "--backend-set", "max_sessions=4")
        self.assertEqual(done.returncode, 1)
        self.assertIn("max_sessions = 4", done.stderr)


unittest.main()
