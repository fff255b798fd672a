"""`egret-bench hits`, `density` and `growth` as wholes, with servers and traces so small that they take seconds.

    smoke_test.py PATH-OF-EGRET-BENCH FOLDER-OF-THE-DAEMONS

No time is asserted. That figures mean what they say is shown by comparing them with memcached's own counts, and by servers that lie.
"""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import unittest

BENCH, DAEMONS = sys.argv[1], sys.argv[2]
del sys.argv[1:3]
SERVERS = ["--spawn-egret", DAEMONS, "--peer", "memcached"]


def run_bench(*arguments, expect=0):
    done = subprocess.run([BENCH, *arguments, "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout), done.stderr


class Memcached:
    def __init__(self, *arguments):
        # Bound while the server runs, so that nobody else is given the port; memcached sets SO_REUSEADDR, too.
        self.reserved = socket.socket()
        self.reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.reserved.bind(("127.0.0.1", 0))
        self.port = self.reserved.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(["memcached", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", *user, *arguments])
        for _ in range(500):
            try:
                self.stats()
                return
            except OSError:
                time.sleep(0.01)
        raise RuntimeError("memcached does not answer")

    def stats(self):
        with socket.create_connection(("127.0.0.1", self.port)) as client:
            client.sendall(b"stats\r\n")
            text = b""
            while not text.endswith(b"END\r\n"):
                text += client.recv(65536)
        return {name: int(value) for name, value in re.findall(r"STAT (\w+) (\d+)\r", text.decode())}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Liar:
    """A memcached in between whose answers pass through `lie`."""

    def __init__(self, server, lie):
        self.server, self.lie = server, lie
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            upstream = socket.create_connection(("127.0.0.1", self.server.port))
            for source, sink, change in ((client, upstream, lambda data: data), (upstream, client, self.lie)):
                threading.Thread(target=self.pass_on, args=(source, sink, change), daemon=True).start()

    @staticmethod
    def pass_on(source, sink, change):
        try:
            while data := source.recv(1 << 20):
                sink.sendall(change(data))
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Hits(unittest.TestCase):
    SMALL = ["--memory", "8", "--fraction", "0.5", "--warmup", "1", "--requests", "1"]

    def test_both_servers_and_every_kind_of_mix(self):
        report, _ = run_bench("hits", *SERVERS, *self.SMALL, "--mix", "0.99, lognormal", "--ttl-duration", "2")
        self.assertEqual(report["errors"], 0)
        self.assertEqual(len(report["hits"]), 3)
        for row in report["hits"]:
            with self.subTest(mix=row["mix"]):
                self.assertTrue(0 < row["first_miss_ratio"] < 1)
                self.assertTrue(0 < row["second_miss_ratio"] < 1)
                fewer = (1 - row["first_miss_ratio"] / row["second_miss_ratio"]) * 100
                self.assertAlmostEqual(row["fewer_percent"], fewer, delta=0.2)
                if row["mix"].endswith("TTL"):  # held back to its pace: half of the two seconds, if not more
                    self.assertGreater(min(row["first_seconds"], row["second_seconds"]), 0.8)

    def test_counts_are_the_server_s(self):
        with Memcached("-m", "8") as server:
            report, _ = run_bench("hits", "--connect", server.address, "--memory", "8", "--fraction", "0.5", "--warmup", "0",
                                  "--mix", "zipf 0.7, lognormal, scan")
            stats, row = server.stats(), report["hits"][0]
            # A get is what the tool asks before it starts, to see whether the server is there; here it did not start it.
            self.assertAlmostEqual(row["gets_m"], stats["cmd_get"] / 1e6, delta=0.006)
            self.assertAlmostEqual(row["first_miss_ratio"], stats["get_misses"] / stats["cmd_get"], delta=0.0001)
            self.assertEqual(stats["cmd_flush"], 0)

    def test_what_was_missed_is_stored(self):
        with Memcached("-m", "1024") as server:
            run_bench("hits", "--connect", server.address, *self.SMALL, "--mix", "zipf 0.99, lognormal, scan")
            stats = server.stats()
            # Nothing is evicted, so a key is missed once, or a few times while its fill is on its way.
            self.assertLess(stats["get_misses"], stats["curr_items"] * 1.1)
            self.assertLess(stats["cmd_set"], stats["cmd_get"])

    def test_a_seed_replays(self):
        ratios = []
        for _ in range(2):
            report, _ = run_bench("hits", "--spawn", "memcached", *self.SMALL, "--mix", "zipf 0.7, 32 B")
            self.assertEqual([row["mix"] for row in report["hits"]], ["zipf 0.7, 32 B"])
            ratios.append(report["hits"][0]["first_miss_ratio"])
        self.assertAlmostEqual(ratios[0], ratios[1], delta=0.002)

    def lie(self, lie, complaint):
        with Memcached() as server:
            liar = Liar(server, lie)
            report, err = run_bench("hits", "--connect", liar.address, "--memory", "8", "--fraction", "4", "--mix", "zipf 0.99, lognormal, scan", expect=1)
            self.assertGreater(report["errors"], 0)
            self.assertIn(complaint, err)

    def test_a_changed_byte_is_seen(self):
        self.lie(lambda data: data.replace(b"vvvv", b"vvvw", 1), "not \"")

    def test_an_error_answer_is_seen(self):
        self.lie(lambda data: data.replace(b"STORED\r\n", b"SERVER_ERROR backend unavailable\r\n", 1), "backend unavailable")

    def test_answers_of_an_older_version_are_seen(self):
        with Memcached() as server:
            run_bench("hits", "--connect", server.address, *self.SMALL, "--mix", "zipf 0.99, 32 B, scan")
            _, err = run_bench("hits", "--connect", server.address, *self.SMALL, "--mix", "zipf 0.99, 32 B, scan", expect=1)
            self.assertIn("of version 0", err)

    def test_items_that_outlive_their_time_are_seen(self):
        with Memcached() as server:
            forever = Immortal(server)
            _, err = run_bench("hits", "--connect", forever.address, "--memory", "8", "--fraction", "10", "--warmup", "1", "--requests", "1",
                               "--ttl-scale", "0.001", "--ttl-duration", "8.5", "--mix", "zipf 0.99, 32 B, TTL", expect=1)
            self.assertIn("after its time", err)


class Immortal(Liar):
    """Takes the exptime out of sets on their way to the server."""

    def __init__(self, server):
        super().__init__(server, lambda data: data)

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            upstream = socket.create_connection(("127.0.0.1", self.server.port))
            threading.Thread(target=self.requests, args=(client, upstream), daemon=True).start()
            threading.Thread(target=self.pass_on, args=(upstream, client, lambda data: data), daemon=True).start()

    @staticmethod
    def requests(client, upstream):
        with client, upstream, client.makefile("rb") as lines:
            for line in lines:
                if line.startswith(b"set "):
                    words = line.split()
                    words[3] = b"0"
                    line = b" ".join(words) + b"\r\n" + lines.read(int(words[4]) + 2)
                upstream.sendall(line)


class Density(unittest.TestCase):
    def test_both_servers_are_filled_and_counted(self):
        for value_size in ("32", "1024"):
            with self.subTest(value_size=value_size):
                report, _ = run_bench("density", *SERVERS, "--memory", "16", "--value-size", value_size)
                egret, memcached = report["density"]
                for row in (egret, memcached):
                    self.assertLess(row["found"], row["stored"])
                    self.assertEqual(row["refused"], 0)
                    self.assertAlmostEqual(row["bytes_per_item"] * row["found"] / (16 << 20), 1, delta=0.001)
                    self.assertGreater(row["resident_mib"], 8)
                self.assertEqual(egret["found"], egret["curr_items"])
                self.assertEqual(egret["server"], "Egret")
                self.assertAlmostEqual(sum(part["bytes"] for part in report["budget"]), 16 << 20)

    def test_what_is_kept_is_what_the_server_says(self):
        with Memcached("-m", "1024") as server:
            report, _ = run_bench("density", "--connect", server.address, "--memory", "8", "--overfill", "0.5")
            row = report["density"][0]
            self.assertEqual(row["found"], server.stats()["curr_items"])
            self.assertEqual(row["found"], row["stored"])
            self.assertEqual(row["stored"], (8 << 20) // 72 // 2)


class Growth(unittest.TestCase):
    def test_both_servers_grow_while_they_are_asked(self):
        report, _ = run_bench("growth", *SERVERS, "--items", "100000", "--insert-rate", "100000", "--slices", "4")
        self.assertEqual([row["server"] for row in report["growth"]], ["Egret", "memcached"])
        for row in report["growth"]:
            self.assertAlmostEqual(row["sets_m"], 0.125, delta=0.006)  # the last slice overwrites as many as one before it inserts
            self.assertGreater(row["gets"], 0)
            self.assertEqual(row["misses"], 0)
            *slices, overwriting = report["slices of " + row["server"]]
            self.assertEqual(len(slices), 4)
            self.assertEqual(sum(each["gets"] for each in slices), row["gets"])
            self.assertEqual(max(each["max_us"] for each in slices), row["max_us"])
            self.assertEqual(overwriting["items_m"], "overwriting")
            self.assertGreater(overwriting["gets"], 0)
            longest = max(row["max_us"], overwriting["max_us"])
            self.assertEqual(report["stalls of " + row["server"]][0]["us"], longest)

    def test_a_get_of_what_is_not_there_is_a_miss(self):
        with Memcached("-m", "2") as server:
            report, _ = run_bench("growth", "--connect", server.address, "--items", "200000", "--insert-rate", "200000")
            self.assertGreater(report["growth"][0]["misses"], 0)
            self.assertGreater(server.stats()["evictions"], 0)


class CommandLine(unittest.TestCase):
    def test_without_a_server_there_is_nothing_to_measure(self):
        for command in ("hits", "density", "growth"):
            _, err = run_bench(command, expect=1)
            self.assertIn("nothing to measure", err)


if __name__ == "__main__":
    unittest.main(verbosity=1)
