#!/usr/bin/env python3
"""live_test.py BUILD: the units as they are, under a real systemd: process 1 of namespaces of its own, in which there is nothing but them."""
import ctypes, os, pathlib, re, shutil, signal, socket, subprocess, sys, tempfile, threading, time, unittest

from daemons import WAIT_SECONDS

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
UNITS = ("egret-backend.service", "egret-proxy.service", "egret-proxy.socket")
TARGETS = ("basic", "default", "multi-user", "network-online", "shutdown", "sockets", "sysinit", "umount")
RESTARTS = 5
# The root is not to be written, nothing of it is started, and what systemd makes of its own is in memory.
ENTER = r"""
set -e
mount --make-rprivate /
mount -o remount,bind,ro / 2>/dev/null || { mount --bind / / && mount -o remount,bind,ro /; }
mount -t proc proc /proc
mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
umount -R /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir /run/test && cp -r "$1/." /run/test
export container=egret-test SYSTEMD_UNIT_PATH=/run/test/units SYSTEMD_GENERATOR_PATH=/none SYSTEMD_ENVIRONMENT_GENERATOR_PATH=/none
exec /lib/systemd/systemd --system --log-target=console --log-level=notice
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Systemd:
    def __init__(self, folder, port):
        for part in ("bin", "etc", "units"):
            os.mkdir(f"{folder}/{part}")
        for name in ("egret-backend", "egret-proxy"):
            shutil.copy(BUILD / name, f"{folder}/bin")
            pathlib.Path(folder, "etc", f"{name}.yaml").write_text("log_level: info\n")
        for name in UNITS:
            text = (ROOT / "systemd" / name).read_text().replace("/usr/local/bin/", "/run/test/bin/").replace("/etc/egret/", "/run/test/etc/")
            text = text.replace("User=egret", "User=nobody").replace("Group=egret", "Group=nogroup").replace("127.0.0.1:11211", f"127.0.0.1:{port}")
            text = text.replace("[Service]\n", "[Service]\nStandardError=append:/run/test/log\n")
            pathlib.Path(folder, "units", name).write_text(text)
        for name in TARGETS:
            pathlib.Path(folder, "units", f"{name}.target").write_text("[Unit]\nDefaultDependencies=no\n")
        os.chmod(folder, 0o755)
        self.log = open(f"{folder}.log", "w+b")
        self.first = None
        self.outer = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--cgroup", "--kill-child",
                                       "bash", "-c", ENTER, "bash", folder], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.first = self.wait_for_first()

    def wait_for_first(self):
        end = time.monotonic() + WAIT_SECONDS
        children = pathlib.Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children")
        while time.monotonic() < end and self.outer.poll() is None:
            first = children.read_text().split()
            if first:
                self.first = first[0]
                if self.ctl("is-system-running", check=False).stdout.strip() in ("running", "degraded"):
                    return first[0]
            time.sleep(0.05)
        raise unittest.SkipTest("systemd does not run in a namespace here: " + self.said()[-300:])

    def inside(self, *command, check=True):
        return subprocess.run(["nsenter", "-t", self.first, "-m", "-p", "-u", "-i", "-C", *command], capture_output=True, text=True,
                              timeout=WAIT_SECONDS, check=check)

    def ctl(self, *arguments, check=True):
        try:
            return self.inside("systemctl", *arguments, check=check)
        except subprocess.CalledProcessError as error:
            raise AssertionError(f"systemctl {arguments}: {error.stderr}\n{self.said()[-3000:]}") from error

    def show(self, unit, name):
        return self.ctl("show", "-P", name, unit).stdout.strip()

    def write(self, name, text):
        subprocess.run(["nsenter", "-t", self.first, "-m", "tee", f"/run/test/etc/{name}"], input=text, text=True, stdout=subprocess.DEVNULL, check=True)

    def said(self):
        of_units = self.inside("cat", "/run/test/log", check=False).stdout if self.first else ""
        return pathlib.Path(self.log.name).read_text(errors="replace") + of_units

    def close(self):
        self.outer.kill()  # and with it, by --kill-child, everything inside
        self.outer.wait()
        self.log.close()


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), WAIT_SECONDS)

    def ask(self, request, end):
        self.socket.sendall(request)
        answer = b""
        while not answer.endswith(end):
            part = self.socket.recv(65536)
            if not part:
                raise EOFError(answer)
            answer += part
        return answer

    def close(self):
        self.socket.close()


@unittest.skipUnless(os.geteuid() == 0 and pathlib.Path("/lib/systemd/systemd").exists(), "needs root and systemd")
class Live(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="egret-live-")
        self.addCleanup(folder.cleanup)
        self.port = free_port()
        self.systemd = Systemd(folder.name, self.port)
        self.addCleanup(self.systemd.close)
        self.systemd.ctl("start", "egret-proxy.socket", "egret-backend.service", "egret-proxy.service")
        self.wait_until_served()

    def wait_until_served(self):
        for _ in range(WAIT_SECONDS * 20):
            client = self.client()
            if client.ask(b"get k\r\n", b"\r\n") == b"END\r\n":
                return
            time.sleep(0.05)
        self.fail(self.systemd.said()[-3000:])

    def client(self):
        client = Client(self.port)
        self.addCleanup(client.close)
        return client

    def test_restarts_under_load_are_not_noticed(self):
        over = threading.Event()
        failures, answered = [], [0] * 6

        def go_on(number):
            client = Client(self.port)
            try:
                while not over.is_set():
                    if number >= 4:
                        client.close()
                        client = Client(self.port)
                    turn = b"%d" % answered[number]
                    request = b"set k%d 0 0 %d\r\n%s\r\nget k%d\r\n" % (number, len(turn), turn, number)
                    answer = client.ask(request, b"END\r\n")
                    if answer != b"STORED\r\nVALUE k%d 0 %d\r\n%s\r\nEND\r\n" % (number, len(turn), turn):
                        raise AssertionError(answer)
                    answered[number] += 1
            except Exception as error:  # noqa: BLE001
                failures.append((number, error))
            finally:
                client.close()

        clients = [threading.Thread(target=go_on, args=(number,)) for number in range(len(answered))]
        for client in clients:
            client.start()
        try:
            for _ in range(RESTARTS):
                before = list(answered)
                while not failures and any(now < then + 20 for now, then in zip(answered, before)):
                    time.sleep(0.01)
                self.systemd.ctl("restart", "egret-proxy")
                self.assertEqual(self.systemd.show("egret-proxy", "NFileDescriptorStore"), "0")
        finally:
            over.set()
            for client in clients:
                client.join()
        self.assertEqual(failures, [], self.systemd.said()[-3000:])

    def test_many_clients_go_over_at_once(self):
        clients = [self.client() for _ in range(600)]
        for client in clients:
            self.assertEqual(client.ask(b"mn\r\n", b"\r\n"), b"MN\r\n")
        self.systemd.ctl("restart", "egret-proxy")
        for client in clients:
            self.assertEqual(client.ask(b"mn\r\n", b"\r\n"), b"MN\r\n")

    def test_a_stop_closes_and_a_connection_starts_it_again(self):
        client = self.client()
        self.assertEqual(client.ask(b"mn\r\n", b"\r\n"), b"MN\r\n")
        self.systemd.ctl("stop", "egret-proxy.service")
        self.assertEqual(client.socket.recv(100), b"")
        self.assertEqual(self.systemd.show("egret-proxy", "NFileDescriptorStore"), "0")
        self.assertEqual(self.client().ask(b"mn\r\n", b"\r\n"), b"MN\r\n")
        self.assertEqual(self.systemd.show("egret-proxy", "ActiveState"), "active")

    def test_the_address_is_changed_in_one_place(self):
        old, self.port = self.port, free_port()
        self.systemd.inside("mkdir", "/run/test/units/egret-proxy.socket.d")
        self.systemd.write("../units/egret-proxy.socket.d/address.conf", f"[Socket]\nListenStream=\nListenStream=127.0.0.1:{self.port}\n")
        self.systemd.ctl("daemon-reload")
        self.systemd.ctl("stop", "egret-proxy.socket", "egret-proxy")
        self.systemd.ctl("start", "egret-proxy.socket", "egret-proxy")
        self.wait_until_served()
        with self.assertRaises(ConnectionRefusedError):
            Client(old)

    def test_without_the_socket_unit_the_proxy_listens_itself(self):
        self.systemd.ctl("stop", "egret-proxy.socket", "egret-proxy")
        self.port = free_port()
        self.systemd.write("egret-proxy.yaml", f"listen: [tcp:127.0.0.1:{self.port}]\n")
        self.systemd.ctl("start", "egret-proxy")
        self.wait_until_served()
        client = self.client()
        self.assertEqual(client.ask(b"mn\r\n", b"\r\n"), b"MN\r\n")
        self.systemd.ctl("restart", "egret-proxy")
        self.assertEqual(client.ask(b"mn\r\n", b"\r\n"), b"MN\r\n")  # it goes over all the same

    def test_a_killed_proxy_comes_back_and_refuses_nobody(self):
        pid = self.systemd.show("egret-proxy", "MainPID")
        self.systemd.ctl("kill", "-s", "KILL", "egret-proxy")
        self.assertEqual(self.client().ask(b"mn\r\n", b"\r\n"), b"MN\r\n")
        self.assertNotEqual(self.systemd.show("egret-proxy", "MainPID"), pid)

    def test_a_reload_is_applied_or_refused(self):
        for unit, good in ("egret-proxy", "max_connections: 77"), ("egret-backend", "max_sessions: 7"):
            self.systemd.write(f"{unit}.yaml", good + "\n")
            self.systemd.ctl("reload", unit)
            for _ in range(WAIT_SECONDS * 20):
                if f"reloaded: changed: {good.split(':')[0]}" in self.systemd.said():
                    break
                time.sleep(0.05)
            self.assertIn(f"reloaded: changed: {good.split(':')[0]}", self.systemd.said())
            self.assertEqual(self.systemd.show(unit, "ActiveState"), "active")
            self.systemd.write(f"{unit}.yaml", "nonsense: 1\n")
            self.assertNotEqual(self.systemd.ctl("reload", unit, check=False).returncode, 0)
            self.systemd.ctl("kill", "-s", "HUP", unit)  # without the check before it
            for _ in range(WAIT_SECONDS * 20):
                if "reload refused" in self.systemd.show(unit, "StatusText"):
                    break
                time.sleep(0.05)
            self.assertIn(f"{unit}.yaml:1: nonsense: unknown option", self.systemd.show(unit, "StatusText"))
            self.assertEqual(self.systemd.show(unit, "ActiveState"), "active")
        self.assertIn(b"STAT max_connections 77\r\n", self.client().ask(b"stats\r\n", b"END\r\n"))


if __name__ == "__main__":
    unittest.main()
