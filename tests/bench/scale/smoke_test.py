"""`egret-bench scale` as a whole, with few workers: each server has a row for each number, and no answer is wrong; no time is judged.

    smoke_test.py PATH-OF-EGRET-BENCH FOLDER-OF-THE-DAEMONS
"""

import json
import subprocess
import sys
import unittest

BENCH, DAEMONS = sys.argv[1:3]
del sys.argv[1:3]


def run(*arguments):
    return subprocess.run([BENCH, "scale", *arguments], capture_output=True, text=True, timeout=100)


class Scale(unittest.TestCase):
    def test_each_server_with_each_number_of_workers(self):
        done = run("--spawn-egret", DAEMONS, "--counts", "1", "2", "-c", "4", "-t", "0.05", "--rounds", "1", "-k", "500", "--memory", "64",
                   "--json")
        self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
        rows = json.loads(done.stdout)["rows"]
        self.assertEqual([(row["server"], row["workers"]) for row in rows],
                         [(server, count) for server in ("egret-memcached", "egret-proxy, egret-backend") for count in (1, 2)])
        for row in rows:
            self.assertGreater(row["ops/s"], 0)
        self.assertEqual([row["CPU/op ÷ 1"] for row in rows[::2]], [1, 1])

    def test_what_cannot_be_started_is_an_error(self):
        done = run("--spawn-egret", "/nowhere", "--counts", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("egret-bench scale:", done.stderr)


unittest.main()
