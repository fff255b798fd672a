"""The secret of running proxies and backends is changed in the steps of docs/operate/security.md: no session is dropped, no request fails, and whoever
starts meanwhile with the secret of the day is served."""

import base64
import contextlib
import os
import re

import pytest

import servers
from bystander import Bystander
from configured import Configured
from servers import ask, wait_for

pytestmark = pytest.mark.skipif(servers.SUT != "egret", reason="needs egret-backend and egret-proxy")

KEYS = [b"key%d" % number for number in range(4)]  # of both backends: see assert_both_backends_are_used()
PROXIES = BACKENDS = 2
WORKERS = 2


class Site:
    """Two backends, each with its sessions of two proxies. Every daemon has a configuration file."""

    def __init__(self, secret):
        self.directory = servers.scratch_directory()
        self.where = [f"shm:{self.directory}/backend{number}.sock" for number in range(BACKENDS)]
        self.backends = [self.daemon("egret-backend", f"b{number}", listen=f"['{where}']", memory="64MiB", populate="false", partitions=1,
                                     secret_file=secret) for number, where in enumerate(self.where)]
        self.proxies = []
        for _ in range(PROXIES):
            self.proxies.append(self.start_proxy(secret))
            self.wait_until_served(self.proxies[-1])

    def daemon(self, name, place, **options):
        folder = self.directory / place
        folder.mkdir()
        return Configured(folder, name, {"admin": "", **options})

    def start_proxy(self, secret, backends=range(BACKENDS)):
        place = f"p{base64.b16encode(os.urandom(4)).decode()}"
        listen = f"['tcp:127.0.0.1:{servers.free_port()}']"
        pool = ", ".join(f"'{where} name=b{number}'" for number, where in enumerate(self.where) if number in backends)
        return self.daemon("egret-proxy", place, listen=listen, backends=f"[{pool}]", workers=WORKERS, reconnect_max="50ms", secret_file=secret)

    @staticmethod
    def address(proxy):
        return "127.0.0.1", int(re.search(r":(\d+)'", proxy.options["listen"])[1])

    def wait_until_served(self, proxy):
        """Every worker by every backend."""
        wait_for(lambda: len(re.findall(r"session .*open", proxy.log())) >= WORKERS * BACKENDS, f"the sessions to open: {proxy.log()}")
        for key in KEYS * WORKERS:
            wait_for(lambda wanted=key: ask(self.address(proxy), b"get none%s\r\n" % wanted) == b"END\r\n", "the proxy to serve")

    def sessions_opened(self):
        """By secret, over all backends."""
        return re.findall(r"session \d+ open: .* by secret (\w+)", "".join(backend.log() for backend in self.backends))

    def newcomer_is_served(self, secret):
        proxy = self.start_proxy(secret)
        self.wait_until_served(proxy)
        proxy.daemon.stop()

    def newcomer_is_refused(self, secret):
        proxy = self.start_proxy(secret)
        wait_for(lambda: "the proxy's secret is not this backend's" in proxy.log(), "the refusal")
        assert ask(self.address(proxy), b"get k\r\n") == b"SERVER_ERROR backend unavailable\r\n"
        proxy.daemon.stop()

    def assert_both_backends_are_used(self, secret, keys):
        hits = []
        for number in range(BACKENDS):
            alone = self.start_proxy(secret, [number])
            wait_for(lambda: len(re.findall(r"session .*open", alone.log())) >= WORKERS, f"the sessions to open: {alone.log()}")
            hits.append({key for key in keys if ask(self.address(alone), b"get %s\r\n" % key, end=b"END\r\n") != b"END\r\n"})
            alone.daemon.stop()
        assert all(hits) and hits[0] | hits[1] == set(keys), hits

    def stop(self):
        for daemon in self.proxies + self.backends:
            daemon.daemon.stop()
            assert "Sanitizer" not in daemon.log(), daemon.log()


@pytest.fixture
def secrets(tmp_path):
    def make(name):
        path = tmp_path / name
        path.write_bytes(base64.b64encode(os.urandom(32)) + b"\n")
        path.chmod(0o400)
        return path
    return make("secret"), make("secret.next")


@contextlib.contextmanager
def under_load(site):
    with contextlib.ExitStack() as load:
        for number, proxy in enumerate(site.proxies):
            for key in KEYS:
                load.enter_context(Bystander(site.address(proxy), b"%s-%d" % (key, number)))
        yield


def test_in_the_documented_order(secrets):
    old, new = secrets
    site = Site(old)
    try:
        with under_load(site):
            site.newcomer_is_served(old)
            site.newcomer_is_refused(new)
            for backend in site.backends:
                backend.changed(secret_files=f"['next={new}']")
                site.newcomer_is_served(old)  # whatever the other backend accepts by now
            site.newcomer_is_served(new)
            for proxy in site.proxies:
                proxy.changed(secret_file=new)
                site.newcomer_is_served(old)
                site.newcomer_is_served(new)
            for backend in site.backends:
                backend.changed(secret_file=new, secret_files="[]")
                site.newcomer_is_served(new)
            site.newcomer_is_refused(old)
            site.assert_both_backends_are_used(new, [b"%s-%d" % (key, number) for key in KEYS for number in range(PROXIES)])
        for proxy in site.proxies:
            assert "lost" not in proxy.log(), proxy.log()
            assert len(re.findall(r"session .*open", proxy.log())) == WORKERS * BACKENDS, "a session was opened anew"
        # The proxies hold the new secret now: a backend that has never accepted the old one serves them.
        before = len(site.sessions_opened())
        for backend in site.backends:
            backend.daemon.stop()
            backend.restart()
        for proxy in site.proxies:
            wait_for(lambda log=proxy.log: len(re.findall(r"session .*open", log())) >= 2 * WORKERS * BACKENDS, "new sessions")
        assert before and site.sessions_opened()[-PROXIES * WORKERS:] == ["main"] * PROXIES * WORKERS
        with under_load(site):
            pass
    finally:
        site.stop()


def test_a_file_that_is_replaced_in_its_place(secrets):
    """A reload reads the secret again although no option has changed: as a tool that distributes files has it done."""
    old, new = secrets
    site = Site(old)
    try:
        with under_load(site):
            for backend in site.backends:
                backend.changed(secret_files=f"['next={new}']")
            proxys = site.directory / "proxys"
            proxys.write_bytes(old.read_bytes())
            proxys.chmod(0o400)
            site.proxies[0].changed(secret_file=proxys)
            proxys.unlink()
            proxys.write_bytes(new.read_bytes())
            proxys.chmod(0o400)
            assert "no option has changed, files are read again" in site.proxies[0].hup()
        site.backends[0].options.update(secret_file=new, secret_files="[]")
        site.backends[0].daemon.stop()
        site.backends[0].restart()
        opened = f"session .*{re.escape(site.where[0])}.*open|session .*b0.*open"
        wait_for(lambda: len(re.findall(opened, site.proxies[0].log())) >= 2 * WORKERS, f"new sessions: {site.proxies[0].log()}")
    finally:
        site.stop()
