"""Mutual TLS between proxies and backends at tcp: addresses, in place of a secret: who is served, what each side says of the
others, and how certificates are changed while everything runs."""

import random
import re
import socket
import ssl
import time
import urllib.request

import pytest

import servers
import tls
from bystander import Bystander
from configured import Configured
from doctor import doctor
from servers import ask, free_port, wait_for

pytestmark = pytest.mark.skipif(servers.SUT != "egret", reason="needs egret-backend and egret-proxy")


def files(issued, authority):
    """Options of a side that shows this certificate, and trusts that authority."""
    certificate, key = issued
    return {"session_tls_certificate": certificate, "session_tls_key": key, "session_tls_ca": authority.path}


class Site:
    """A backend at a tcp: address and proxies of it; every daemon has a configuration file."""

    def __init__(self):
        self.directory = servers.scratch_directory()
        self.authority = tls.Authority(self.directory / "good")
        self.port = free_port()
        self.where = f"tcp:127.0.0.1:{self.port}"
        self.of_backend = files(self.authority.issue("backend", addresses=["127.0.0.1"]), self.authority)
        self.of_proxy = files(self.authority.issue("proxy", names=["proxy.example"]), self.authority)
        self.backend, self.proxies = None, []

    def start_backend(self, **options):
        self.backend = self.daemon("egret-backend", listen=f"['{self.where}']", memory="64MiB", populate="false", partitions=2,
                                   admin="127.0.0.1:0", **options)
        says(self.backend, "serving:")

    def start_proxy(self, **options):
        port = free_port()
        proxy = self.daemon("egret-proxy", listen=f"['tcp:127.0.0.1:{port}']", backends=f"['{self.where}']", workers=1, admin="127.0.0.1:0",
                            reconnect_max="50ms", **options)
        proxy.address = ("127.0.0.1", port)
        self.proxies.append(proxy)
        return proxy

    def daemon(self, name, **options):
        folder = self.directory / f"{name}{len(self.proxies)}"
        folder.mkdir()
        return Configured(folder, name, options)

    def stop(self):
        for daemon in [*self.proxies, *([self.backend] if self.backend else [])]:
            daemon.daemon.stop()
            assert "Sanitizer" not in daemon.log(), daemon.log()


@pytest.fixture
def site():
    made = Site()
    try:
        yield made
    finally:
        made.stop()


def serves(proxy):
    try:
        return ask(proxy.address, b"set k 0 0 1\r\nv\r\n") == b"STORED\r\n"
    except OSError:
        return False


def says(daemon, pattern):
    wait_for(lambda: re.search(pattern, daemon.log()), pattern)


def is_refused(site, proxy, by_backend, by_proxy):
    """Neither serves, and both logs say why."""
    says(site.backend, by_backend)
    says(proxy, by_proxy)
    assert ask(proxy.address, b"get k\r\n").startswith(b"SERVER_ERROR")


def metric(daemon, name):
    address = re.search(r"admin address: (\S+)", daemon.log())[1]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30 * servers.SLACK) as answer:
        return float(re.search(rf"^{name} (\S+)", answer.read().decode(), re.M)[1])


def test_certificates_replace_the_secret(site):
    site.start_backend(**site.of_backend)
    proxy = site.start_proxy(**site.of_proxy)
    wait_for(lambda: serves(proxy), "the proxy to serve")
    for size in 1, 3000, 200_000, 1_000_000:  # in a slot, in several, and more than a socket takes
        value = random.Random(size).randbytes(size)
        assert ask(proxy.address, b"set big 0 0 %d\r\n%b\r\n" % (size, value)) == b"STORED\r\n"
        assert ask(proxy.address, b"get big\r\n", end=b"\r\nEND\r\n") == b"VALUE big 0 %d\r\n%b\r\nEND\r\n" % (size, value)
    keys = [b"key%d" % number for number in range(200)]
    assert ask(proxy.address, b"".join(b"ms %s 1\r\nx\r\n" % key for key in keys) + b"mn\r\n", end=b"MN\r\n") == b"HD\r\n" * 200 + b"MN\r\n"
    assert ask(proxy.address, b"get " + b" ".join(keys) + b"\r\n", end=b"END\r\n").count(b"VALUE") == 200
    says(site.backend, r"session \d+ open: .* tcp, TLSv1.3 \S+ with /CN=proxy")
    says(proxy, r"session with tcp:.* TLSv1.3 \S+ with /CN=backend")
    for daemon, name in (site.backend, "backend"), (proxy, "proxy"):
        ends_in = metric(daemon, f"egret_{name}_session_tls_end_timestamp_seconds") - time.time()
        assert 0 < ends_in <= tls.HOUR
        assert "whoever" not in daemon.log(), "who is served is known"


def test_who_is_refused_and_what_both_sides_say(site):
    strange = tls.Authority(site.directory / "strange", "strange")
    site.start_backend(**site.of_backend)
    good = site.start_proxy(**site.of_proxy)
    wait_for(lambda: serves(good), "the proxy to serve")
    with Bystander(good.address):
        is_refused(site, site.start_proxy(**files(strange.issue("proxy"), site.authority)),
                   "its certificate is refused: unable to get local issuer certificate", "TLS: .*unknown ca")
        is_refused(site, site.start_proxy(**files(site.authority.issue("late", ends=-60), site.authority)),
                   "its certificate is refused: certificate has expired", "TLS: .*certificate expired")
        is_refused(site, site.start_proxy(**files(site.authority.issue("proxy2"), strange)),
                   "TLS: .*unknown ca", "its certificate is refused: self-signed certificate in certificate chain")
        is_refused(site, site.start_proxy(**site.of_proxy, session_tls_names="['backend.example']"),
                   "TLS: ", "its certificate is refused: hostname mismatch")
        is_refused(site, site.start_proxy(), "the peer does not speak TLS: give the proxy session_tls_certificate, too",
                   r"it may ask for TLS \(session_tls_certificate\)")
    says(site.proxies[2], "warning: .*the certificate expired on")


def test_a_backend_without_tls_says_what_it_lacks(site):
    site.start_backend()
    is_refused(site, site.start_proxy(**site.of_proxy), "the peer speaks TLS, and this backend has no session_tls_certificate", "TLS: ")


def test_a_peer_without_a_certificate_is_told_so(site):
    """Over TLS 1.3 a client learns it when it reads."""
    site.start_backend(**site.of_backend)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        with tls.connect_tls(("127.0.0.1", site.port), tls.client_context(site.authority)) as peer:
            peer.recv(1)
    says(site.backend, "TLS: peer did not return a certificate")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        tls.connect_tls(("127.0.0.1", site.port), tls.client_context(newest=ssl.TLSVersion.TLSv1_2))
    says(site.backend, "TLS: unsupported protocol")


def test_bytes_that_are_no_tls_disturb_nobody(site):
    site.start_backend(**site.of_backend)
    proxy = site.start_proxy(**site.of_proxy)
    wait_for(lambda: serves(proxy), "the proxy to serve")
    rng = random.Random(7)
    silent = []
    with Bystander(proxy.address):
        for number in range(60):
            peer = socket.create_connection(("127.0.0.1", site.port), timeout=20)
            try:
                peer.sendall((b"\x16\x03\x01" if number % 3 else b"") + rng.randbytes(rng.randrange(1, 3000)))
            except OSError:  # it was turned away meanwhile
                pass
            if number % 2:
                silent.append(peer)
            else:
                peer.close()
    for peer in silent:
        peer.close()
    assert serves(proxy)
    assert site.backend.daemon.is_alive()


def test_certificates_come_to_a_pool_without_a_request_failing(site):
    """The steps of docs/operate/security.md."""
    site.start_backend()
    proxy = site.start_proxy()
    wait_for(lambda: serves(proxy), "the proxy to serve")
    with Bystander(proxy.address):
        site.backend.changed(**site.of_backend, session_tls_required="false")
        assert serves(proxy), "its session stays"
        proxy.changed(**site.of_proxy)
        late = site.start_proxy(**site.of_proxy)
        wait_for(lambda: serves(late), "a proxy with a certificate")
        plain = site.start_proxy()
        wait_for(lambda: serves(plain), "a proxy without one, still")
        site.backend.changed(session_tls_required="true")
        assert serves(plain), "its session stays"
    is_refused(site, site.start_proxy(), "the peer does not speak TLS", "it may ask for TLS")


def test_renewed_files_are_read_by_a_reload(site):
    site.start_backend(**site.of_backend)
    proxy = site.start_proxy(**site.of_proxy)
    wait_for(lambda: serves(proxy), "the proxy to serve")
    # The same paths, another authority: whoever comes now needs a certificate of it.
    other = tls.Authority(site.directory / "other", "other")
    for name, addresses in ("backend", ["127.0.0.1"]), ("proxy", []):
        for made in other.issue(name, addresses=addresses):
            (site.authority.folder / made.name).write_bytes(made.read_bytes())
    old = site.authority.path.read_bytes()
    site.authority.path.write_bytes(other.path.read_bytes())
    for daemon in site.backend, proxy:
        assert "reloaded" in daemon.hup()
    assert serves(proxy), "its session stays"
    late = site.start_proxy(**site.of_proxy)
    wait_for(lambda: serves(late), "a proxy with the new files")

    before = len(site.backend.log())
    site.authority.path.write_bytes(b"not a certificate")
    said = site.backend.hup()
    assert re.search("reload refused, .*session_tls_ca: .*no certificate found", said), said
    wait_for(lambda: serves(proxy), "everything to stay as it was")
    assert "session_lost" not in site.backend.log()[before:]
    site.authority.path.write_bytes(old)


def test_the_doctor_looks_at_certificates(site):
    def of_backend(**changes):
        options = {"listen": site.where, **site.of_backend, **changes}
        return doctor("egret-backend", *(f"{name}={value}" for name, value in options.items()))
    said = of_backend()
    assert re.search(r"ok   session_tls_certificate: serial number \w+, valid until ", said), said
    assert "ok   secret_file: none; proxies show certificates (session_tls_ca)" in said
    assert re.search("warn session_tls_certificate: .*; proxies without TLS are served, too", of_backend(session_tls_required="false"))
    certificate, key = site.authority.issue("old", ends=-60)
    assert re.search("warn session_tls_certificate: the certificate expired on", of_backend(session_tls_certificate=certificate, session_tls_key=key))
    assert "warn session_tls_certificate: no address that is listened at uses TCP" in of_backend(listen=f"shm:{site.directory}/b.sock")

    site.start_backend(**site.of_backend)
    options = {"backends": site.where, "listen": f"tcp:127.0.0.1:{free_port()}", "admin": ""}
    with_files = doctor("egret-proxy", *(f"{name}={value}" for name, value in {**options, **site.of_proxy}.items()))
    assert re.search(r"ok   session_tls_certificate: serial number", with_files), with_files
    assert "ok   secret_file: none; backends at tcp: addresses show certificates" in with_files
    assert f"ok   backend {site.where}" in with_files, with_files
    without = doctor("egret-proxy", *(f"{name}={value}" for name, value in options.items()))
    assert re.search(r"FAIL .*it may ask for TLS \(session_tls_certificate\)", without), without
