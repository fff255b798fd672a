"""`egret-bench compare` as a whole: who is started and measured, what is reported, and that lies and losses are errors.

    smoke_test.py PATH-OF-EGRET-BENCH FOLDER-OF-THE-DAEMONS
"""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

DAEMONS = sys.argv.pop(2)
BENCH = sys.argv.pop(1)

# Egret's programs in a form that nothing can be wrong with: a memcached, and a backend that has nothing to do.
PROXY = """#!/bin/sh
[ "$1" = --version ] && exec echo egret-proxy 0.0.1
for word; do case $word in listen=tcp:127.0.0.1:*) port=${word#listen=tcp:127.0.0.1:}; port=${port%%,*};; esac; done
exec memcached -t 1 -l 127.0.0.1 -p $port -U 0 -u nobody
"""
BACKEND = "#!/bin/sh\nexec sleep 60\n"
ONE_PROCESS = '#!/bin/sh\nexec memcached "$@"\n'
SPINNING_BACKEND = "#!/bin/sh\nwhile :; do :; done\n"

# Answers a get with LIE, whatever was set.
LIAR = """#!/usr/bin/env python3
import socketserver, sys
class Client(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            words = line.split()
            if words[0] == b"set":
                self.rfile.read(int(words[4]) + 2)
                self.wfile.write(b"STORED\\r\\n")
            elif words[0] == b"version":
                self.wfile.write(b"VERSION 9.9.9\\r\\n")
            elif words[1].startswith(b"egret-bench"):
                self.wfile.write(b"END\\r\\n")
            else:
                self.wfile.write(LIE)
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True
    request_queue_size = 100
Server(("127.0.0.1", int(sys.argv[sys.argv.index("-p") + 1])), Client).serve_forever()
"""


class Compare(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.figures = self.folder / "figures.json"

    def script(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def fake_egret(self, backend=BACKEND):
        self.script("egret-backend", backend)
        self.script("egret-proxy", PROXY)
        return str(self.folder)

    def run_compare(self, *arguments, egret=DAEMONS, rounds=1, seconds=0.1, **options):
        done = subprocess.run([BENCH, "compare", "--spawn-egret", egret, "--rounds", str(rounds), "-t", str(seconds), "--json",
                               self.figures, *arguments], capture_output=True, text=True, timeout=60, **options)
        report = json.loads(self.figures.read_text()) if self.figures.exists() else None
        return done, report


class Real(Compare):
    """Egret, memcached and, where it is installed, twemproxy."""

    def check_row(self, row, contenders, rounds):
        self.assertEqual(list(row["sendings"]), ["at once", "rounds"])
        for sending in row["sendings"].values():
            self.assertEqual(list(sending["contenders"]), contenders)
            self.check_figures(sending["contenders"], rounds)
        self.check_goals(row, contenders)

    def check_figures(self, contenders, rounds):
        for measured in contenders.values():
            self.assertEqual(len(measured["rounds"]), rounds)
            for figure in ("cpu_us_per_op", "ops_per_s", "p50_us", "p99_us"):
                values = [each[figure] for each in measured["rounds"]]
                self.assertGreater(min(values), 0)
                self.assertAlmostEqual(measured["median"][figure] / statistics.median(values), 1, delta=0.001)

    def check_goals(self, row, contenders):
        for goal in row["goals"]:
            if goal["against"] not in contenders:
                self.assertEqual(goal["verdict"], "not measured")
                continue
            ratio = goal["measured"]
            both = [each["ratios"][goal["against"]][goal["figure"]]["median"] for each in row["sendings"].values()]
            self.assertEqual(ratio["median"], max(both) if "at_most" in goal else min(both))
            self.assertTrue(0 < ratio["min"] <= ratio["median"] <= ratio["max"])
            met = ratio["median"] <= goal["at_most"] if "at_most" in goal else ratio["median"] >= goal["at_least"]
            self.assertEqual(goal["verdict"], "met" if met else "missed")

    def test_two_rows(self):
        done, report = self.run_compare("--case", "binary, 32 B, depth 1,", "--case", "1 KiB, depth 1, Unix", rounds=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row["name"] for row in report["rows"]], ["1 KiB, depth 1, Unix", "binary, 32 B, depth 1, TCP"])
        self.assertEqual(report["errors"], 0)
        names = ["Egret", "memcached"] + (["twemproxy"] if shutil.which("nutcracker") else [])
        self.assertEqual([each["name"] for each in report["contenders"]], names)
        for each in report["contenders"]:
            self.assertRegex(each["version"], r"^\d+\.\d+")
        self.check_row(report["rows"][0], names, 2)
        self.check_row(report["rows"][1], ["Egret", "memcached"], 2)
        for row in report["rows"]:
            self.assertEqual(len(re.findall(rf"^\| {re.escape(row['name'])} \|", done.stdout, re.MULTILINE)), 3)

    def test_between_two_hosts(self):
        done, report = self.run_compare("--namespaces", "--case", "1 KiB, depth 16, TCP")
        if "this machine refuses" in done.stderr:
            self.assertEqual(done.returncode, 1)
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(report["between_hosts"])
        self.assertEqual(report["congestion"], "reno")
        self.assertEqual([row["name"] for row in report["rows"]], ["1 KiB, depth 16, TCP"])
        names = ["Egret", "memcached"] + (["twemproxy"] if shutil.which("nutcracker") else [])
        self.check_row(report["rows"][0], names, 1)
        self.assertEqual({goal["against"] for goal in report["rows"][0]["goals"]}, {"twemproxy"})
        self.assertIn("Between two hosts, which are network namespaces of one machine", done.stdout)

    def test_hosts_that_cannot_be_made_are_a_line(self):
        def nobody():
            os.setuid(65534)
        if os.geteuid() != 0:
            self.skipTest("needs root, to be somebody else")
        self.folder.chmod(0o777)
        done, report = self.run_compare("--namespaces", preexec_fn=nobody)
        self.assertEqual((done.returncode, report), (1, None))
        self.assertRegex(done.stderr, "^egret-bench compare: --namespaces: this machine refuses a network namespace .*not permitted")

    def test_the_next_one_begins_in_each_round(self):
        done, _ = self.run_compare("--twemproxy", "/not/there", "--case", "1 KiB, depth 16, Unix", rounds=3)
        turns = [("Egret", "at once"), ("memcached", "at once"), ("Egret", "rounds"), ("memcached", "rounds")]
        self.assertEqual(re.findall(r"round (\d), (\w+), ([a-z ]+):", done.stderr),
                         [(str(number + 1), *turn) for number in range(3) for turn in turns[number:] + turns[:number]])

    def test_neighbours_and_idle_connections(self):
        done, report = self.run_compare("--twemproxy", "/not/there", "--case", "neighbours", "--case", "1,000 connections")
        self.assertEqual(done.returncode, 0, done.stderr)
        many, crowded = report["rows"]
        self.assertEqual(many["load"]["connections"] + many["load"]["idle_connections"], 1000)
        for measured in crowded["sendings"]["rounds"]["contenders"].values():
            figures = measured["rounds"][0]
            self.assertNotEqual(figures["ops_per_s"], figures["ops_per_s_alone"])
            self.assertAlmostEqual(figures["throughput_kept"] / (figures["ops_per_s"] / figures["ops_per_s_alone"]), 1, delta=0.01)

    def test_memory_with_as_many_connections_as_may_be_open(self):
        done, report = self.run_compare("--case", "memory", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (800, 800)))
        self.assertEqual(done.returncode, 0, done.stderr)
        row = report["rows"][0]
        self.assertEqual(row["load"]["idle_connections"], 500)
        for measured in row["sendings"]["rounds"]["contenders"].values():
            self.assertIn("kib_per_connection", measured["median"])

    def test_a_sweep_has_a_point_for_each_number_of_connections(self):
        done, report = self.run_compare("--sweep", "--twemproxy", "/not/there", "--case", "32 B, depth 16, TCP", seconds=0.05)
        self.assertEqual(done.returncode, 0, done.stderr)
        points = report["sweeps"][0]["points"]
        self.assertEqual([point["connections"] for point in points], sorted({point["connections"] for point in points}))
        for point in points:
            self.assertEqual(list(point["contenders"]), ["Egret", "memcached"])
            for measured in point["contenders"].values():
                self.assertGreater(measured["median"]["ops_per_s"], 0)
                self.assertGreaterEqual(measured["median"]["p99_us"], measured["median"]["p50_us"])


def has_libmemcached():
    with contextlib.suppress(OSError):
        return ctypes.CDLL("libmemcached.so.11")


@unittest.skipUnless(has_libmemcached(), "libmemcached is not installed")
class Preloaded(Compare):
    def test_libmemcached_is_served_by_slots_and_by_memcached(self):
        done, report = self.run_compare("--twemproxy", "/not/there", "--case", "preloaded libmemcached, get", "--case",
                                        "preloaded libmemcached, multiget of 50, Unix", rounds=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row["name"] for row in report["rows"]],
                         [f"preloaded libmemcached, {what}" for what in ("get, TCP", "get, Unix", "multiget of 50, Unix")])
        for row in report["rows"]:
            self.assertEqual(row["kind"], "preloaded")
            figures = row["sendings"]["rounds"]["contenders"]
            self.assertEqual(list(figures), ["Egret", "memcached"])
            for measured in figures.values():
                self.assertEqual(len(measured["rounds"]), 2)
                self.assertTrue(all(each[name] > 0 for each in measured["rounds"] for name in ("cpu_us_per_op", "ops_per_s", "p50_us", "p99_us")))

    def test_a_client_that_slots_do_not_serve_is_no_figure(self):
        egret = self.fake_egret()
        self.script("egret-run", '#!/bin/sh\nexec "$@"\n')
        done, report = self.run_compare("--twemproxy", "/not/there", "--case", "preloaded libmemcached, get, TCP", egret=egret)
        self.assertEqual((done.returncode, report), (1, None))
        self.assertIn("slots have not served libmemcached", done.stderr)

    def test_a_wrong_answer_is_an_error(self):
        liar = self.script("liar", LIAR.replace("LIE", repr(b"VALUE client:0 0 1\r\nx\r\nEND\r\n")))
        done, report = self.run_compare("--memcached", liar, "--twemproxy", "/not/there", "--case", "preloaded libmemcached, get, TCP")
        self.assertEqual((done.returncode, report), (1, None))
        self.assertIn("a get brought something else than was set", done.stderr)


class LeftOut(Compare):
    def test_a_peer_that_is_not_installed(self):
        done, report = self.run_compare("--memcached", "/not/there -t 1", "--case", "1 KiB, depth 1, TCP", "--markdown",
                                        self.folder / "table.md", egret=self.fake_egret())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("memcached is left out: /not/there is not installed", done.stderr)
        self.assertEqual([each["name"] for each in report["contenders"]], ["Egret"])
        self.assertEqual(report["rows"][0]["goals"][0]["verdict"], "not measured")
        self.assertEqual(done.stdout, "")
        self.assertIn("memcached is left out", (self.folder / "table.md").read_text())


class Base(Compare):
    def test_another_build_takes_part_and_what_is_worse_is_said(self):
        egret = self.fake_egret(SPINNING_BACKEND)
        other = self.folder / "other/bin"
        other.mkdir(parents=True)
        for name, text in (("egret-backend", BACKEND), ("egret-proxy", PROXY)):
            (other / name).write_text(text)
            (other / name).chmod(0o755)
        done, report = self.run_compare("--base", other, "--base-name", "abc1234", "--memcached", "/not/there", "--case",
                                        "20,000 requests/s, TCP", rounds=2, seconds=0.3, egret=egret)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(each["name"], each["version"]) for each in report["contenders"]], [("Egret", "0.0.1"), ("base", "0.0.1, abc1234")])
        row = report["rows"][0]["sendings"]["rounds"]
        self.assertGreater(row["ratios"]["base"]["cpu_us_per_op"]["min"], 1)
        self.assertEqual(row["beside_base"], "worse")
        self.assertIn("**worse beyond the spread**", done.stdout)
        self.assertNotIn("one process", done.stdout + done.stderr)

    def test_the_one_process_takes_part_beside_that_of_the_base(self):
        egret = self.fake_egret()
        other = self.folder / "other/bin"
        other.mkdir(parents=True)
        for folder in (self.folder, other):
            for name, text in (("egret-backend", BACKEND), ("egret-proxy", PROXY), ("egret-memcached", ONE_PROCESS)):
                (folder / name).write_text(text)
                (folder / name).chmod(0o755)
        options = ("--base", other, "--one-process", "--memcached", "/not/there", "--case", "20,000 requests/s, TCP")
        done, report = self.run_compare(*options, egret=egret)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([each["name"] for each in report["contenders"]], ["Egret", "one process", "base", "base's one process"])
        self.assertIn("one_process_beside_base", report["rows"][0]["sendings"]["rounds"])
        self.assertIn("| 32 B, 20,000 requests/s, TCP, one process | paced |", done.stdout)
        (other / "egret-memcached").unlink()
        done, report = self.run_compare(*options, egret=egret)
        self.assertEqual([each["name"] for each in report["contenders"]], ["Egret", "one process", "base"])
        self.assertIn(f"base's one process is left out: {other}/egret-memcached is not installed", done.stderr)


class WhatWasRun(Compare):
    def test_the_tables_name_versions_and_programs_but_no_folders(self):
        link = self.folder / "other-memcached"
        link.symlink_to(shutil.which("memcached"))
        done, report = self.run_compare("--memcached", f"{link} -t 1", "--twemproxy", "/not/there", "--case", "32 B, depth 1, TCP",
                                        egret=self.fake_egret())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([each["command"] for each in report["contenders"]], ["", "other-memcached -t 1"])
        self.assertRegex(done.stdout, r"memcached \d+\.\d+\S* \(`other-memcached -t 1`\)")
        self.assertNotIn(str(self.folder), done.stdout + self.figures.read_text())


class CpuOfAllProcesses(Compare):
    def test_a_backend_that_spins_is_counted(self):
        done, report = self.run_compare("--case", "20,000 requests/s, TCP", "--twemproxy", "/not/there", seconds=0.5,
                                        egret=self.fake_egret(SPINNING_BACKEND))
        self.assertEqual(done.returncode, 0, done.stderr)
        # Without the backend it would be about 1: the proxy is a memcached.
        self.assertGreater(report["rows"][0]["sendings"]["rounds"]["ratios"]["memcached"]["cpu_us_per_op"]["median"], 1.3)


class Errors(Compare):
    def check_lie(self, lie, complaint):
        liar = self.script("liar", LIAR.replace("LIE", repr(lie)))
        done, report = self.run_compare("--memcached", liar, "--twemproxy", "/not/there", "--case", "100 KiB, depth 1, TCP",
                                        egret=self.fake_egret())
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(complaint, report["rows"][0]["first_error"])
        self.assertGreater(report["errors"], 0)

    def test_an_error_answer(self):
        self.check_lie(b"SERVER_ERROR out of luck\r\n", "SERVER_ERROR out of luck")

    def test_a_value_of_the_wrong_length(self):
        self.check_lie(b"VALUE k000000000000001 0 1\r\nx\r\nEND\r\n", "k000000000000001 0 1")

    def test_a_server_that_does_not_start(self):
        done, report = self.run_compare("--memcached", "false", "--case", "1 KiB", egret=self.fake_egret())
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not serve", done.stderr)
        self.assertIsNone(report)

    def test_a_row_that_does_not_exist(self):
        done, _ = self.run_compare("--case", "no such row", egret=self.fake_egret())
        self.assertEqual(done.returncode, 1)
        self.assertIn("no row has such a name", done.stderr)

    def test_interrupted_it_ends_its_servers(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number), open(self.folder / "errors", "w") as errors:
                run = subprocess.Popen([BENCH, "compare", "--spawn-egret", DAEMONS, "--case", "neighbours", "-t", "0.3", "--json",
                                        self.figures], stdout=subprocess.DEVNULL, stderr=errors,
                                       env={**os.environ, "TMPDIR": str(self.folder)})
                children = []
                while len(children) < 9 and run.poll() is None:  # servers and neighbours
                    children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
                    time.sleep(0.005)
                run.send_signal(number)
                self.assertEqual(run.wait(timeout=30), 1)
                self.assertFalse([child for child in children if os.path.exists(f"/proc/{child}")])
                self.assertFalse(list(self.folder.glob("egret-bench.*")))
                self.assertFalse(self.figures.exists())


if __name__ == "__main__":
    unittest.main(verbosity=1)
