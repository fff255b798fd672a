"""Who is served: proxies and backends that prove the same secret to each other, in numbers that the quota allows; and
what --doctor says of that."""

import base64
import os
import re
import subprocess
import urllib.request

import pytest

from doctor import doctor
from servers import SLACK, SUT, Egret, ask, egret_binary, free_port, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="needs egret-backend and egret-proxy")

UNAVAILABLE = b"SERVER_ERROR backend unavailable\r\n"


@pytest.fixture
def secret_file(tmp_path):
    def make(name, content=None, mode=0o400):
        path = tmp_path / name
        path.write_bytes(content or base64.b64encode(os.urandom(32)) + b"\n")
        path.chmod(mode)
        return path
    return make


@pytest.fixture
def start():
    """Starts Egrets that end with the test, without waiting for a session."""
    started = []

    def start_one(backend=None, proxy=None):
        egret = Egret(backend=backend, proxy=proxy, start=False)
        started.append(egret)
        egret.start_backend()
        wait_for(lambda: "listening on " in egret.backend.log(), "the backend to listen")  # or the proxy logs that it does not
        egret.add_proxy(ready=False)
        return egret
    yield start_one
    for egret in started:
        egret.stop()


def with_secret(path):
    return {"secret_file": path} if path else {}


def logs_say(egret, backend, proxy):
    wait_for(lambda: backend in egret.backend.log() and proxy in egret.proxies[0].log(), f"the logs to say {backend!r}")


def test_the_same_secret_on_both_sides_serves(start, secret_file):
    backends = secret_file("backend")
    copy = secret_file("proxy", backends.read_bytes().rstrip(b"\n"))  # with or without the newline
    egret = start(with_secret(backends), with_secret(copy))
    assert egret.wait_ready()
    assert ask(egret.address, b"set k 0 0 1\r\nv\r\n") == b"STORED\r\n"
    assert ask(egret.address, b"get k\r\n", end=b"END\r\n") == b"VALUE k 0 1\r\nv\r\nEND\r\n"
    secret = backends.read_text().strip()
    for daemon in egret.daemons():
        assert secret not in daemon.log(1 << 20)
        assert "warning" not in daemon.log(1 << 20), daemon.log()


def test_a_wrong_secret_is_one_line_on_each_side_however_often_it_is_tried(start, secret_file):
    egret = start({**with_secret(secret_file("secret")), "admin": "127.0.0.1:0"},
                  {**with_secret(secret_file("other")), "reconnect_max": "20ms", "workers": 4})
    address = wait_for(lambda: re.search(r"admin address: (\S+)", egret.backend.log()), "the admin address")[1]

    def refusals():
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=30 * SLACK) as page:
            return int(re.search(r"^egret_backend_sessions_refused_total (\d+)", page.read().decode(), re.M)[1])
    wait_for(lambda: refusals() > 40, "many attempts")
    for daemon in egret.daemons():
        log = daemon.log(1 << 20)
        later = log.count("such as the next")  # a line that comes when ten seconds are over tells of those withheld
        assert log.count("the proxy's secret is not this backend's") == 1 + later <= refusals() / 4, log


@pytest.mark.parametrize("backends, proxys, reason", [
    ("one", "other", "refused: the proxy's secret is not this backend's: compare both sides' secret_file"),
    ("one", None, "refused: this backend serves only proxies that hold its secret: set the proxy's secret_file"),
    (None, "other", "refused: the proxy has a secret_file and this backend has none: give both the same secret"),
])
def test_anything_else_serves_nobody_and_both_logs_say_what_to_do(start, secret_file, backends, proxys, reason):
    backends = secret_file(backends) if backends else None
    proxys = secret_file(proxys) if proxys else None
    egret = start(with_secret(backends), with_secret(proxys))
    logs_say(egret, reason, reason)
    assert ask(egret.address, b"get k\r\n") == UNAVAILABLE
    egret.check_alive()
    # As an operator would: the proxy is given the right one, and serves.
    egret.proxies[0].stop()
    egret.proxy_options.pop("secret_file", None)
    egret.proxy_options.update(with_secret(backends))
    egret.start_proxy(0)
    assert egret.wait_ready()


def test_a_backend_that_comes_back_with_another_secret_is_not_trusted(start, secret_file):
    first = secret_file("first")
    egret = start(with_secret(first), with_secret(first))
    assert egret.wait_ready()
    egret.kill_backend()
    egret.backend_options["secret_file"] = None
    egret.start_backend()
    logs_say(egret, "this backend has none", "this backend has none")
    assert ask(egret.address, b"get k\r\n") == UNAVAILABLE
    egret.kill_backend()
    egret.backend_options["secret_file"] = first
    egret.start_backend()
    assert egret.wait_ready()


@pytest.mark.parametrize("name", ["egret-backend", "egret-proxy"])
@pytest.mark.parametrize("content, mode, complaint", [
    (b"x" * 32, 0o644, "has mode 0644, so that others than its owner may use it: chmod 0400 it"),
    (b"x" * 15 + b"\n", 0o600, "holds a secret of 15 bytes: 16 to 4096 are needed"),
    (b"x" * 5000, 0o600, "holds a secret of more than 4096 bytes"),
])
def test_a_secret_file_that_will_not_do_is_one_line_with_file_line_and_key(tmp_path, secret_file, name, content, mode, complaint):
    secret = secret_file("secret", content, mode)
    config = tmp_path / "wrong.yaml"
    config.write_text(f"# of this test\nsecret_file: {secret}\n")
    for argument in ("--check-config", "--doctor", None):
        argv = [egret_binary(name), "--config", config] + ([argument] if argument else [])
        run = subprocess.run(argv, capture_output=True, text=True, timeout=30 * SLACK, check=False)
        assert run.returncode == 1 and not run.stdout
        assert run.stderr == f"{name}: {config}:2: secret_file: {run.stderr.split('secret_file: ')[1]}"
        assert complaint in run.stderr and run.stderr.count("\n") == 1


def test_a_second_proxy_beyond_the_quota_is_refused_with_the_arithmetic(start):
    egret = start({"sessions_per_peer": 3})
    assert egret.wait_ready()
    egret.add_proxy(ready=False)  # two workers each: one of four is too many
    reason = f"sessions_per_peer = 3, and uid {os.geteuid()} has 3 open already (one for each worker of its proxies)"
    wait_for(lambda: reason in egret.proxies[1].log() and reason in egret.backend.log(), "the refusal")
    egret.proxies[0].stop()
    assert egret.wait_ready(1)


# --- --doctor
# --------------------------------------------------------------------------------------------------------------------

def test_doctor_of_a_backend_that_can_start(tmp_path, secret_file):
    secret = secret_file("secret")
    said = doctor("egret-backend", f"listen=shm:{tmp_path}/backend.sock", f"secret_file={secret}")
    assert f"ok   listen shm:{tmp_path}/backend.sock: can be made" in said
    assert "ok   secret_file: proxies must prove that they hold its 44 bytes" in said
    assert re.search(r"sessions: at most \d+ \(max_sessions, auto\): \(\d+ descriptors - \d+\) / 4", said), said
    assert "FAIL" not in said
    assert not (tmp_path / "backend.sock").exists()
    assert secret.read_text().strip() not in said


def test_doctor_of_a_backend_that_cannot_start(tmp_path):
    said = doctor("egret-backend", f"listen=shm:{tmp_path}/none/backend.sock,rdma:192.0.2.1:11311")
    assert f"FAIL listen shm:{tmp_path}/none/backend.sock: folder {tmp_path}/none: No such file" in said
    assert "FAIL listen rdma:192.0.2.1:11311: " in said
    assert "warn secret_file: none is set, and an rdma: address serves whoever can reach it => " in said
    queues = r" may be needed: (?:slots of \S+ \(session_memory_total\) for \d+ sessions \(max_sessions\)|\d+ sessions \(max_sessions\) x 1MiB \(session_memory\)), and [0-9.]+KiB of queues for each"
    assert re.search("memlock: .*" + queues, said)


def test_doctor_of_a_proxy_asks_its_backend_for_a_session(start, secret_file):
    secret, other = secret_file("secret"), secret_file("other")
    egret = start(with_secret(secret), with_secret(secret))
    assert egret.wait_ready()
    where = f"shm:{egret.backend_socket}"
    settings = [f"backends={where}", f"listen=tcp:127.0.0.1:{free_port()}"]
    said = doctor("egret-proxy", *settings, f"secret_file={secret}")
    assert f"ok   backend {where}: gives a session: 3 lanes x " in said and "FAIL" not in said
    assert ": can be listened on\n" in said
    said = doctor("egret-proxy", *settings, f"secret_file={other}")
    assert f"FAIL backend {where}: refused: the proxy's secret is not this backend's" in said
    # The daemons run: their own addresses are taken, which is no failure, and nobody is disturbed.
    said = doctor("egret-proxy", f"backends={where}", f"listen=tcp:127.0.0.1:{egret.address[1]},unix:{egret.unix_address()}",
                  f"secret_file={secret}")
    # The two of listen, and the socket of slots beside the second one.
    assert said.count(": somebody listens there => ") == 3 and "FAIL" not in said
    said = doctor("egret-backend", f"listen={where}", f"secret_file={secret}")
    assert f"warn listen {where}: somebody listens there => " in said and "FAIL" not in said
    assert ask(egret.address, b"get k\r\n") == b"END\r\n"
    assert "lost" not in egret.proxies[0].log()


def test_doctor_of_a_proxy_without_its_backend(tmp_path):
    said = doctor("egret-proxy", f"backends=shm:{tmp_path}/none.sock", f"listen=tcp:127.0.0.1:{free_port()}")
    assert f"FAIL backend shm:{tmp_path}/none.sock: cannot connect to shm:{tmp_path}/none.sock: No such file or directory => " in said
