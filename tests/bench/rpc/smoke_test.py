"""`egret-bench rpc` as a whole, with so few items that it takes seconds. Shape and correctness; no time is judged.

    smoke_test.py PATH-OF-EGRET-BENCH FOLDER-OF-THE-DAEMONS
"""

import json
import subprocess
import sys
import unittest

BENCH, DAEMONS = sys.argv[1], sys.argv[2]
del sys.argv[1:3]


def run(*arguments, keys=20000):
    tiny = ["--keys", str(keys), "--duration", "0.05"]
    return subprocess.run([BENCH, "rpc", "--spawn-egret", DAEMONS, *tiny, *arguments], capture_output=True, text=True, timeout=100)


def tables(*arguments):
    done = run(*arguments, "--json")
    assert done.returncode == 0, (done.stdout, done.stderr)
    return {table["name"]: table for table in json.loads(done.stdout)}


class Rpc(unittest.TestCase):
    def test_sessions(self):
        found = tables("--sessions", "1", "8", "70", "--rounds", "2", "--window", "4")
        rows = {row["sessions, active"]: row for row in found["sessions"]["rows"]}
        self.assertEqual(list(rows), ["1, one", "8, one", "8, in turn", "70, one", "70, in turn"])
        self.assertEqual(rows["1, one"]["% of the first row"], 100)
        for row in rows.values():
            self.assertGreater(row["CPU ns/op"], 0)
            self.assertLessEqual(row["least"], row["M ops/s of a core, by CPU time"])
            self.assertLessEqual(row["M ops/s of a core, by CPU time"], row["greatest"])
            # A line for want, and four request slots of 16 KiB and four response slots of 52 KiB.
            self.assertEqual(row["region KiB"], 272.1)
            self.assertGreater(row["touching all ns"], 0)
        # Response slots are resident from the start.
        self.assertGreater(rows["70, one"]["backend grew MiB"], 70 * 208 / 1024)
        store, slots = found["rates"]["rows"]
        self.assertEqual(store["% of in process"], 100)
        self.assertGreater(slots["% of in process"], 0)
        self.assertEqual(sum(note.startswith("Goal: ") for note in found["rates"]["notes"]), 2)

    def test_ops_per_message(self):
        for ops in (1, 7):
            found = tables("--sessions", "1", "--rounds", "1", "--no-store", "--ops-per-message", str(ops))
            (row,) = found["rates"]["rows"]
            # The last message of a round may have fewer.
            self.assertAlmostEqual(row["ops/message"], ops, delta=0.1)
        (row,) = tables("--sessions", "1", "--rounds", "1", "--no-store")["rates"]["rows"]
        self.assertGreater(row["ops/message"], 60)

    def test_partitions_and_gets_only(self):
        found = tables("--sessions", "1", "3", "--rounds", "1", "--partitions", "2", "--read-share", "1", "--no-store")
        self.assertEqual(len(found["sessions"]["rows"]), 3)
        self.assertIn("gets only; partitions: 2", found["rates"]["notes"][0])

    def test_markdown_names_the_goals(self):
        done = run("--sessions", "1", "--rounds", "1", "--no-store")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| the backend, over slots |", done.stdout)
        self.assertIn("Goal: M ops/s of a partition's core >= 12.3; found", done.stdout)

    def test_items_that_were_evicted_are_wrong_answers(self):
        done = run("--sessions", "1", "--rounds", "1", "--no-store", "--backend-set", "memory=4MiB", keys=100000)
        self.assertEqual(done.returncode, 1)
        self.assertIn("wrong answers", done.stderr)

    def test_more_sessions_than_the_backend_takes(self):
        done = run("--sessions", "1", "5", "--rounds", "1", "--no-store", "--backend-set", "max_sessions=4")
        self.assertEqual(done.returncode, 1)
        self.assertIn("max_sessions = 4", done.stderr)

    def test_a_backend_that_does_not_start_says_why(self):
        done = run("--sessions", "1", "--rounds", "1", "--no-store", "--backend-set", "window=1000")
        self.assertEqual(done.returncode, 1)
        self.assertIn("window", done.stderr)


unittest.main()
