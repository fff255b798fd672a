"""The admin addresses of both daemons, asked by various names. A web page whose owner points its name at our address (DNS rebinding)
is refused wherever we are bound; probes and Prometheus of the shipped container files are served."""

import contextlib
import re
import subprocess

import pytest
import yaml

import servers
from servers import ask, wait_for

pytestmark = pytest.mark.skipif(servers.SUT != "egret", reason="memcached has no admin address")
NAMES = ("backend", "proxy")
DOCKER = servers.ROOT / "docker"


def status(port, host):
    request = "GET /metrics HTTP/1.0\r\n" + (f"Host: {host}\r\n" if host else "") + "\r\n"
    return int(ask(("127.0.0.1", port), request.encode(), end=b"until it is closed").split()[1])


@contextlib.contextmanager
def serving(name, admin, *settings):
    """The daemon, alone: no client, and for a proxy no backend. Yields the port of its admin address."""
    folder = servers.scratch_directory()
    where = f"listen=shm:{folder}/backend.sock" if name == "backend" else f"listen=unix:{folder}/proxy.sock"
    options = {"backend": ("memory=64MiB", "populate=false", "partitions=1"), "proxy": (f"backends=shm:{folder}/none.sock", "workers=1")}
    words = [word for setting in (where, f"admin={admin}", *options[name], *settings) for word in ("--set", setting)]
    daemon = servers.Daemon([servers.egret_binary(f"egret-{name}"), *words], folder, name)
    try:
        yield int(wait_for(lambda: re.search(r"admin address: \S+:(\d+)", daemon.log()), "the admin address")[1])
    finally:
        daemon.stop()


@pytest.mark.parametrize("admin", ["0.0.0.0:0", "127.0.0.1:0", "*:0"])
@pytest.mark.parametrize("name", NAMES)
def test_only_names_that_the_operator_chose_are_served(name, admin):
    with serving(name, admin, "admin_hosts=metrics.example,Egret-1") as port:
        served = ["127.0.0.1", f"127.0.0.1:{port}", "10.9.8.7:11280", "[::1]:11280", "localhost", "LOCALHOST:1", "metrics.example",
                  "METRICS.example:11280", "egret-1", None]
        refused = ["evil.example", f"evil.example:{port}", "metrics.example.evil.example", "x.metrics.example", "localhost.evil.example",
                   "127.0.0.1.evil.example", "egret-", "metrics.example.", "*"]
        assert {host: status(port, host) for host in served} == dict.fromkeys(served, 200)
        assert {host: status(port, host) for host in refused} == dict.fromkeys(refused, 403)


@pytest.mark.parametrize("wrong", ["host:80", "http://host", "a b", "*", "a/b"])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_name_is_refused_at_the_start(name, wrong):
    done = subprocess.run([servers.egret_binary(f"egret-{name}"), "--check-config", "--set", f"admin_hosts={wrong}"], capture_output=True, text=True)
    assert done.returncode != 0 and "admin_hosts: expected names of hosts without ports" in done.stderr, done.stderr


def settings_of(words):
    return dict(word.split("=", 1) for at, word in enumerate(words) if words[at - 1] == "--set")


@pytest.mark.parametrize("name", NAMES)
def test_prometheus_beside_the_services_of_compose(name):
    """It asks for http://SERVICE:PORT/metrics; through the published port people ask by an address that is not the container's."""
    command = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"][name]["command"]
    given = settings_of(command)
    host, port = given["admin"].split(":")
    with serving(name, f"{host}:0", f"admin_hosts={given['admin_hosts']}") as at:
        assert status(at, f"{name}:{port}") == 200
        assert status(at, f"127.0.0.1:{port}") == 200
        assert status(at, "evil.example") == 403


@pytest.mark.parametrize("name", NAMES)
def test_probes_and_prometheus_in_kubernetes(name):
    """Probes ask by the pod's address, Prometheus by it or by a name of DNS."""
    pods = [each for each in yaml.safe_load_all((DOCKER / f"kubernetes/{name}.yaml").read_text()) if each["kind"] in ("StatefulSet", "DaemonSet")]
    container = pods[0]["spec"]["template"]["spec"]["containers"][0]
    environment = {"status.hostIP": "127.0.0.1", "spec.nodeName": "node7", "metadata.name": "egret-backend-0", "metadata.namespace": "cache"}
    values = {each["name"]: environment[each["valueFrom"]["fieldRef"]["fieldPath"]] for each in container["env"]}
    words = [re.sub(r"\$\((\w+)\)", lambda found: values[found[1]], word) for word in container["args"]]
    given = settings_of(words)
    host, port = given["admin"].split(":")
    dns = ["egret-backend-0.egret-backend", "egret-backend-0.egret-backend.cache.svc", "egret-backend-0.egret-backend.cache.svc.cluster.local"]
    served = ["127.0.0.1", "node7"] + (dns if name == "backend" else [])
    with serving(name, f"{host}:0", f"admin_hosts={given['admin_hosts']}") as at:
        for each in served:
            assert status(at, f"{each}:{port}") == 200, each
        assert status(at, "evil.example") == 403
