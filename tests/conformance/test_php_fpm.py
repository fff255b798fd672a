"""`egret-run php-fpm`, as docs/client/php.md has it: workers that the master forks, of another user than the daemons', each with its own
connection of php-memcached; asked as a web server asks them, over FastCGI."""

import json
import os
import pwd
import re
import shutil
import signal
import socket
import struct
import urllib.parse

import pytest

from preloaded import RUN
from servers import SLACK, SUT, Daemon, Egret, ask, figure_of, stats_of, wait_for

PHP_FPM = shutil.which("php-fpm8.2", path=os.environ["PATH"] + ":/usr/sbin")
pytestmark = [pytest.mark.skipif(SUT != "egret", reason="Egret's own"),
              pytest.mark.skipif(PHP_FPM is None, reason="php8.2-fpm is not installed (tests/packages/test.txt)")]

CHILDREN = 4
# A persistent connection, as the document says. Who answered, whether all was right, and a number that all requests share.
SCRIPT = """<?php
$client = new Memcached('pool');
if (!$client->getServerList()) {
    $client->addServer($_GET['host'], (int) $_GET['port']);
}
$key = 'of-' . getmypid();
$value = str_repeat($_GET['number'] . ' ', 1 + 40 * ($_GET['number'] % 100));
$right = $client->set($key, $value) && $client->get($key) === $value && $client->getMulti([$key, 'nothing']) === [$key => $value];
echo json_encode(['pid' => getmypid(), 'uid' => posix_getuid(), 'right' => $right, 'number' => $client->increment('requests'),
                  'trouble' => $client->getResultMessage()]);
"""


class Fpm:
    """php-fpm under egret-run, in the foreground, with one pool at a Unix socket. `user` has it if we are root, else we."""

    def __init__(self, directory, client_options):
        self.directory = directory
        self.socket_path, self.script = directory / "fpm.sock", directory / "script.php"
        self.script.write_text(SCRIPT)
        (directory / "client.yaml").write_text(client_options)
        self.log = directory / "served"
        self.log.touch()
        self.log.chmod(0o666)  # the pool's user writes it
        as_root = "user = nobody\ngroup = nogroup\nlisten.owner = nobody\n" if os.geteuid() == 0 else ""
        (directory / "fpm.conf").write_text(f"[global]\nerror_log = /dev/stderr\ndaemonize = no\npid = {directory}/fpm.pid\n"
                                            f"[pool]\n{as_root}listen = {self.socket_path}\npm = static\npm.max_children = {CHILDREN}\n")
        # As the drop-in for its unit sets them; php-fpm does not hand them on to its children (clear_env).
        environment = [f"EGRET_CONFIG={directory}/client.yaml", f"EGRET_PRELOAD_LOG={self.log}"]
        self.master = Daemon(["env", *environment, RUN, PHP_FPM, "--nodaemonize", "--fpm-config", directory / "fpm.conf"], directory, "php-fpm")
        wait_for(lambda: self.socket_path.exists() or not self.master.is_alive(), "php-fpm to listen")
        self.master.check_alive()

    def ask(self, **query):
        """A request as a web server sends it, and what the script says."""
        parameters = {"SCRIPT_FILENAME": str(self.script), "REQUEST_METHOD": "GET", "QUERY_STRING": urllib.parse.urlencode(query)}
        packed = b"".join(bytes([len(name), len(value)]) + (name + value).encode() for name, value in parameters.items())
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(30 * SLACK)
            sock.connect(str(self.socket_path))
            begin, params, stdin = 1, 4, 5
            sock.sendall(record(begin, struct.pack(">HB5x", 1, 0)) + record(params, packed) + record(params) + record(stdin))
            with sock.makefile("rb") as stream:
                said = b""
                while True:
                    kind, length, padding = struct.unpack(">xB2xHBx", stream.read(8))
                    content = stream.read(length + padding)[:length]
                    if kind == 3:  # the end of the request
                        break
                    said += content
        head, body = said.split(b"\r\n\r\n", 1)
        assert body.startswith(b"{"), head + body + self.master.log().encode()
        return json.loads(body)


def record(kind, content=b""):
    """Of FastCGI: version 1, request 1."""
    return struct.pack(">BBHHBx", 1, kind, 1, len(content), 0) + content


def pool_uid():
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid()


@pytest.fixture(params=["straight", "relayed"])
def site(request):
    """A proxy and a backend that let the pool's user in, and php-fpm whose children go one way or the other."""
    uid = pool_uid()
    egret = Egret(backend={"admin": "127.0.0.1:0", "allowed_uids": uid}, proxy={"workers": 1, "admin": "127.0.0.1:0", "slots_uids": uid})
    egret.directory.chmod(0o711)  # the pool's user reaches the script and the sockets
    fpm = Fpm(egret.directory, f"straight: {'host' if request.param == 'straight' else 'none'}\nbackend_uids: [{os.geteuid()}]\n")
    try:
        yield Site(egret, fpm, request.param)
        egret.check_alive()
    finally:
        fpm.master.stop()
        egret.stop()


class Site:
    """php-fpm before that proxy; counts what it asks."""

    def __init__(self, egret, fpm, way):
        self.egret, self.fpm, self.way = egret, fpm, way
        self.requests = 0

    def ask_until(self, condition):
        """Asks until condition(pids) holds of those that have answered since. The pids."""
        pids = set()

        def holds():
            self.requests += 1
            said = self.fpm.ask(host=self.egret.address[0], port=self.egret.address[1], number=self.requests)
            assert said["right"] and said["number"] == self.requests, (said, self.fpm.log.read_text())
            assert said["uid"] == pool_uid()
            pids.add(said["pid"])
            return condition(pids)

        wait_for(holds, "children of php-fpm to answer", timeout=60, step=0)
        return pids

    def all_children(self, but=frozenset()):
        """The pids of all, when each of them has answered, and none of those in `but`."""
        return self.ask_until(lambda pids: len(pids - but) == CHILDREN)

    def sessions(self):
        if self.way == "relayed":
            return figure_of(self.egret.proxies[0], "egret_proxy_slots_sessions")
        return figure_of(self.egret.backend, "egret_backend_sessions") - 1  # the proxy's worker has one

    def served(self):
        """Pids of processes with a connection that was served by slots, as the library says."""
        return set(map(int, re.findall(r"^(\d+): fd .* is served by slots$", self.fpm.log.read_text(), re.M)))


def wait_until_gone(pids):
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "children of php-fpm to end")


def test_every_child_is_served_by_slots_of_its_own_also_after_a_kill_and_a_reload(site):
    proxy = site.egret.proxies[0]
    assert ask(site.egret.address, b"set requests 0 0 1\r\n0\r\n") == b"STORED\r\n"
    before = int(stats_of(site.egret.address)["egret_ops"])
    first = site.all_children()
    assert first <= site.served() and site.sessions() == CHILDREN

    os.kill(min(first), signal.SIGKILL)  # and the master forks another
    wait_until_gone({min(first)})
    second = site.ask_until(lambda pids: pids - first)
    wait_for(lambda: site.sessions() == CHILDREN, "the slots of the killed child to be free")
    assert second - first <= site.served()

    site.fpm.master.signal(signal.SIGUSR2)  # it executes itself anew, and so do its children
    wait_until_gone(first | second)
    third = site.all_children(but=first | second)
    assert third <= site.served() and site.sessions() == CHILDREN

    ops = 5 * site.requests  # set, get, two keys of a multiget, incr
    assert figure_of(proxy, "egret_proxy_slots_ops_total") == (ops if site.way == "relayed" else 0)
    assert site.way == "relayed" or int(stats_of(site.egret.address)["egret_ops"]) <= before + 20, "stats asks each partition"
    site.fpm.master.stop()
    wait_for(lambda: site.sessions() == 0, "all slots to be free")
