"""egret-bench as a whole: its counts are those of a real memcached, and it sees the lies of a false one.

    smoke_test.py PATH-OF-EGRET-BENCH
"""

import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BENCH = sys.argv.pop(1)


_reserved = []


def free_port():
    """A TCP port that the system gives to nobody else while we run: a socket that does not listen is bound to it. A server that sets
    SO_REUSEADDR can bind it, too."""
    probe = socket.socket()
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    probe.bind(("127.0.0.1", 0))
    _reserved.append(probe)
    return probe.getsockname()[1]


def run_bench(*arguments):
    done = subprocess.run([BENCH, *arguments], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


class Memcached:
    """A memcached of its own, on a TCP port or a Unix socket."""

    def __init__(self, unix_path=None):
        command = ["memcached", "-U", "0"] + (["-u", "nobody"] if os.geteuid() == 0 else [])
        if unix_path:
            command += ["-s", unix_path, "-a", "0777"]
            self.address, self.family, self.target = "unix:" + unix_path, socket.AF_UNIX, unix_path
        else:
            port = free_port()
            command += ["-l", "127.0.0.1", "-p", str(port)]
            self.address, self.family, self.target = f"127.0.0.1:{port}", socket.AF_INET, ("127.0.0.1", port)
        self.process = subprocess.Popen(command)
        for _ in range(500):
            try:
                self.connect().close()
                return
            except OSError:
                time.sleep(0.01)
        raise RuntimeError("memcached does not answer")

    def connect(self):
        client = socket.socket(self.family)
        try:
            client.connect(self.target)
        except OSError:
            client.close()
            raise
        return client

    def stats(self):
        with self.connect() as client:
            client.sendall(b"stats\r\n")
            text = b""
            while not text.endswith(b"END\r\n"):
                text += client.recv(65536)
        return {name: value for name, value in re.findall(r"STAT (\S+) (\S*)", text.decode())}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class FalseServer:
    """Answers every request with what `answer(line, value)` returns: bytes, or None to hang up."""

    def __init__(self, answer):
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, client.makefile("rb") as lines:
            try:
                for line in lines:
                    words = line.split()
                    value = lines.read(int(words[4]) + 2) if words[0] == b"set" else None
                    reply = self.answer(words, value)
                    if reply is None:
                        return
                    client.sendall(reply)
            except OSError:
                pass


class CountsAgree(unittest.TestCase):
    def check(self, server, *load):
        before = server.stats()
        defaults = {"--rounds": "1", "-t": "0.15", "--warmup": "0.05", "-k": "2000"}
        for option, value in defaults.items():
            if option not in load:
                load = (*load, option, value)
        status, out, err = run_bench("--connect", server.address, "--pid", str(server.process.pid), "--json", *load)
        after = server.stats()
        self.assertEqual(status, 0, err)
        report = json.loads(out)
        self.assertEqual(report["errors"], 0)
        figures = report["cases"][0]["subject"]["rounds"][0]
        total = figures["total"]
        grown = {name: int(after[name]) - int(before[name]) for name in ("cmd_get", "cmd_set", "get_hits", "get_misses")}
        self.assertEqual(total["asked_keys"], grown["cmd_get"])
        self.assertEqual(total["hits"], grown["get_hits"])
        self.assertEqual(total["misses"], grown["get_misses"])
        self.assertEqual(total["stored"], grown["cmd_set"])
        self.assertEqual(total["asked_sets"], grown["cmd_set"])
        self.assertEqual(total["ops"], grown["cmd_get"] + grown["cmd_set"])
        self.assertGreater(figures["measured"]["ops"], 0)
        self.assertLess(figures["measured"]["ops"], total["ops"])
        self.assertGreater(figures["cpu_us_per_op"], 0)
        self.assertGreater(figures["p99_us"], 0)
        return figures

    def test_each_kind_of_load(self):
        with Memcached() as server:
            for load in (["-c", "50"], ["-c", "10", "-d", "16"], ["-c", "10", "-m", "50", "-r", "1"],
                         ["-c", "7", "-d", "4", "-m", "3", "--threads", "2", "-r", "0.5", "--zipf", "0.99"],
                         ["-c", "20", "-d", "16", "--sending", "at-once"], ["-c", "7", "-d", "4", "-m", "5", "--binary", "--sending", "at-once"],
                         ["-v", "102400", "-k", "100", "-d", "4", "--sending", "at-once", "-t", "0.3"],
                         ["-c", "10", "-d", "4", "--binary"], ["-c", "10", "-m", "20", "-r", "1", "--binary"],
                         ["-v", "0"], ["-v", "1"], ["-v", "102400", "-k", "100", "-d", "3"], ["-r", "0"]):
                with self.subTest(load=load):
                    figures = self.check(server, *load)
                    self.assertEqual(figures["total"]["misses"], 0)

    def test_idle_connections_are_open_meanwhile(self):
        with Memcached() as server:
            run = subprocess.Popen([BENCH, "--connect", server.address, "--idle", "200", "-c", "5", "--rounds", "1", "-t", "1"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            open_at_once = 0
            while run.poll() is None:
                open_at_once = max(open_at_once, int(server.stats()["curr_connections"]))
                time.sleep(0.05)
            self.assertEqual(run.returncode, 0)
            self.assertGreaterEqual(open_at_once, 205)

    def test_paced_load_keeps_its_rate(self):
        with Memcached() as server:
            figures = self.check(server, "--rate", "2000", "-t", "1")
            self.assertAlmostEqual(figures["requests_per_s"], 2000, delta=200)

    def test_unix_socket(self):
        folder = tempfile.mkdtemp()
        os.chmod(folder, 0o777)
        try:
            with Memcached(unix_path=folder + "/socket") as server:
                self.check(server)
        finally:
            shutil.rmtree(folder)

    def test_misses_are_counted_and_are_no_errors(self):
        with Memcached() as server:
            figures = self.check(server, "--no-preload", "-r", "1", "-m", "5")
            self.assertEqual(figures["total"]["misses"], figures["total"]["ops"])

    def test_server_that_stops_is_an_error(self):
        with Memcached() as server:
            threading.Timer(0.5, server.process.kill).start()
            status, _, _ = run_bench("--connect", server.address, "--json", "-t", "2", "--rounds", "1")
            self.assertEqual(status, 1)


class SpawnedServers(unittest.TestCase):
    def test_subject_and_peer_in_turn(self):
        status, out, err = run_bench("--spawn", "memcached -t 2", "--peer", "memcached", "--rounds", "2", "-t", "0.2",
                                     "-k", "1000", "--json", "--quiet", "64")
        self.assertEqual(status, 0, err)
        case = json.loads(out)["cases"][0]
        self.assertEqual(len(case["subject"]["rounds"]), 2)
        self.assertEqual(len(case["peer"]["rounds"]), 2)
        ratio = case["ratios"]["cpu_us_per_op"]
        self.assertTrue(0 < ratio["min"] <= ratio["median"] <= ratio["max"])

    def test_egret_is_started_with_its_files_and_settings(self):
        folder = tempfile.mkdtemp()
        try:
            self.write_script(folder, "egret-backend", "exec sleep 60")
            self.write_script(folder, "egret-proxy", """
                for word; do case $word in listen=tcp:127.0.0.1:*) port=${word#listen=tcp:127.0.0.1:}; port=${port%%,*};; esac; done
                exec memcached -l 127.0.0.1 -p $port -U 0 -u nobody""")
            status, out, err = run_bench("--spawn-egret", folder, "--conf", "/the/conf", "--backend-set", "partitions=1",
                                         "--rounds", "1", "-t", "0.2", "-k", "1000", "--json", "--quiet", "64")
            self.assertEqual(status, 0, err)
            self.assertEqual(json.loads(out)["cases"][0]["subject"]["name"], "Egret")
            with open(folder + "/egret-backend.arguments") as file:
                backend = file.read()
            with open(folder + "/egret-proxy.arguments") as file:
                proxy = file.read()
            meeting = re.search(r"--set listen=(shm:\S+) --set partitions=1$", backend.strip()).group(1)
            self.assertTrue(backend.startswith("--config /the/conf/egret-backend.yaml "))
            self.assertTrue(proxy.startswith("--config /the/conf/egret-proxy.yaml "))
            self.assertIn(f"--set backends={meeting}", proxy)
        finally:
            shutil.rmtree(folder)

    @staticmethod
    def write_script(folder, name, body):
        with open(f"{folder}/{name}", "w") as file:
            file.write(f'#!/bin/sh\necho "$@" > {folder}/{name}.arguments\n{body}\n')
        os.chmod(f"{folder}/{name}", 0o755)

    def test_a_server_that_does_not_start_is_reported(self):
        status, _, err = run_bench("--spawn", "false")
        self.assertEqual(status, 1)
        self.assertIn("does not serve", err)


class ScriptedClient:
    """The server's end of one connection of the load: requests are gets, answers are misses."""

    def __init__(self, connection):
        self.connection = connection
        self.connection.settimeout(20)
        self.unread = b""

    def read_request(self):
        while b"\r\n" not in self.unread:
            data = self.connection.recv(65536)
            if not data:
                raise EOFError("the load ended")
            self.unread += data
        line, _, self.unread = self.unread.partition(b"\r\n")
        assert line.startswith(b"get "), line

    def has_request(self):
        """Gives a request that should not come some time to come."""
        readable, _, _ = select.select([self.connection], [], [], 0.01)
        return bool(self.unread or readable)

    def answer(self):
        self.connection.sendall(b"END\r\n")


class Sending(unittest.TestCase):
    """When a closed loop sends its next requests, seen from a server that answers them one by one."""

    def clients_of(self, sending, depth, connections):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        listener.settimeout(20)
        load = subprocess.Popen([BENCH, "--connect", "127.0.0.1:%d" % listener.getsockname()[1], "--sending", sending, "-c", str(connections),
                                 "-d", str(depth), "-k", "10", "-r", "1", "--no-preload", "--rounds", "1", "--warmup", "0", "-t", "60"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)
        clients = []
        for _ in range(connections):
            clients.append(ScriptedClient(listener.accept()[0]))
            self.addCleanup(clients[-1].connection.close)
        return clients

    def test_at_once_a_request_follows_each_answer_whatever_else_is_unanswered(self):
        answered, withheld = self.clients_of("at-once", depth=4, connections=2)
        for client in (answered, withheld):
            for _ in range(4):
                client.read_request()
        for _ in range(50):  # one of its four requests is answered, and of the other connection none
            answered.answer()
            answered.read_request()
        self.assertFalse(answered.has_request())
        self.assertFalse(withheld.has_request())

    def test_in_rounds_nothing_is_sent_before_all_is_answered(self):
        client, withheld = self.clients_of("rounds", depth=4, connections=2)
        for _ in range(10):
            for _ in range(4):
                client.read_request()
            for _ in range(3):
                client.answer()
            self.assertFalse(client.has_request())
            client.answer()
        for _ in range(4):
            withheld.read_request()
        self.assertFalse(withheld.has_request())


class LiesAreSeen(unittest.TestCase):
    """A store that answers almost right, over one connection: each lie makes the exit status 1 and is named."""

    def check(self, lie, complaint):
        store = {}

        def answer(words, value):
            if words[0] == b"set":
                store[words[1]] = value
                return b"STORED\r\n"
            return lie(store, words[1:])

        server = FalseServer(answer)
        status, out, err = run_bench("--connect", server.address, "-c", "2", "-m", "2", "-k", "100", "-t", "0.2", "--json",
                                     "--warmup", "0", "--rounds", "1", "-r", "1", "-v", "200")
        server.listener.close()
        self.assertEqual(status, 1 if complaint else 0, err)
        self.assertIn(complaint, err)
        self.assertEqual(json.loads(out)["errors"] > 0, bool(complaint))

    @staticmethod
    def item(key, value):
        return b"VALUE %s 0 %d\r\n%s" % (key, len(value) - 2, value)

    def test_honest(self):
        self.check(lambda store, keys: b"".join(self.item(k, store[k]) for k in keys) + b"END\r\n", "")

    def test_value_of_another_key(self):
        wrong = b"k000000000000007"
        self.check(lambda store, keys: b"".join(self.item(k, store[wrong]) for k in keys) + b"END\r\n", "another key's value")

    def test_keys_in_the_wrong_order(self):
        self.check(lambda store, keys: b"".join(self.item(k, store[k]) for k in reversed(keys)) + b"END\r\n", "not asked for")

    def test_half_of_another_value(self):
        def lie(store, keys):
            other = store[b"k000000000000007"]
            return b"".join(self.item(k, store[k][:100] + other[100:]) for k in keys) + b"END\r\n"
        self.check(lie, "torn value")

    def test_cut_value(self):
        self.check(lambda store, keys: b"".join(self.item(k, store[k][:99] + b"\r\n") for k in keys) + b"END\r\n", "wrong length")

    def test_error_answer(self):
        self.check(lambda store, keys: b"SERVER_ERROR backend gone\r\n", "SERVER_ERROR backend gone")

    def test_an_idle_connection_that_is_sent_something(self):
        store = {}

        def answer(words, value):
            if words[0] == b"set":
                store[words[1]] = value
                return b"STORED\r\n"
            if words[1] == b"egret-bench-is-idle":
                return b"END\r\nEND\r\n"  # one answer too many
            return self.item(words[1], store[words[1]]) + b"END\r\n"

        server = FalseServer(answer)
        status, _, err = run_bench("--connect", server.address, "-c", "2", "--idle", "1", "-k", "10", "-t", "0.1", "--rounds", "1")
        server.listener.close()
        self.assertEqual(status, 1, err)
        self.assertIn("an idle connection was sent something", err)

    def test_hanging_up(self):
        self.check(lambda store, keys: None, "closed the connection")


if __name__ == "__main__":
    unittest.main(verbosity=1)
