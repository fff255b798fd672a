"""What an operator is told: by --doctor, --check-config, the log and the admin pages, when something is not as it should be."""

import os
import re
import signal
import socket
import subprocess

import pytest

from doctor import doctor
from servers import SLACK, SUT, Egret, EgretPool, egret_binary, free_port, page_of, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="what Egret's daemons say")


# --- limits

def test_doctor_counts_the_descriptors_that_the_proxy_will_need(tmp_path):
    """The sum is the one by which the proxy lowers max_connections, and doctor says to what."""
    backends = ",".join(f"shm:{tmp_path}/{number}.sock" for number in range(3))
    said = doctor("egret-proxy", f"backends={backends}", f"listen=tcp:127.0.0.1:{free_port()}", "workers=4", "max_connections=100", open_files=400)
    assert ("warn open files: the limit is 400, 764 may be needed: 100 clients (max_connections) + 34 x 4 workers x 3 backends over shm + 256; "
            "max_connections would be lowered to 1 => ") in said


# --- sessions and slots

def test_doctor_says_how_many_sessions_there_are_and_who_has_them(tmp_path):
    listen = f"listen=tcp:127.0.0.1:{free_port()}"
    far = f"backends=tcp:127.0.0.1:{free_port()},tcp:127.0.0.1:{free_port()}"
    said = doctor("egret-proxy", far, listen, "workers=4")
    assert "ok   sessions: worker: 8 sessions, 4 workers x 2 backends by rdma or tcp\n" in said
    said = doctor("egret-proxy", far, listen, "workers=4", "sessions=host")
    assert "ok   sessions: host: 2 sessions, one with each of 2 backends by rdma or tcp; of 4 workers all but one hand over" in said
    said = doctor("egret-proxy", f"backends=shm:{tmp_path}/one.sock", listen, "workers=4", "sessions=host")
    assert "ok   sessions: each worker has one with each backend: all are on this host\n" in said


def test_doctor_says_whether_slots_have_room_and_where_clients_find_them(tmp_path):
    backends = f"backends=shm:{tmp_path}/one.sock"
    said = doctor("egret-proxy", backends, f"listen=unix:{tmp_path}/m.sock")
    assert f"ok   slots {tmp_path}/m.sock.slots: " in said
    assert re.search(r"ok   slots: at most 1024 sessions \(slots_sessions\) and 256MiB \(slots_memory\): room for \d+ with backends of 16 partitions", said), said
    said = doctor("egret-proxy", backends, f"listen=unix:{tmp_path}/m.sock", "slots_memory=1MiB")
    assert re.search(r"warn slots: .*room for 0 .* => raise slots_memory", said), said
    said = doctor("egret-proxy", backends, f"listen=unix:{tmp_path}/m.sock", "slots_memory=2MiB", "slots_share=10")
    assert re.search(r"warn slots: .*one user's 10 percent hold none => raise slots_memory or slots_share", said), said
    said = doctor("egret-proxy", backends, f"listen=unix:{tmp_path}/m.sock", "slots=none")
    assert "ok   slots: none: clients of this host come by sockets only\n" in said
    said = doctor("egret-proxy", backends, f"listen=tcp:127.0.0.1:{free_port()}", f"slots={tmp_path}/absent/slots")
    assert f"FAIL slots {tmp_path}/absent/slots: folder {tmp_path}/absent: No such file or directory => make it" in said


# --- readiness

@pytest.fixture
def pool():
    found = EgretPool(["one", "two"], proxy={"admin": "127.0.0.1:0"})
    yield found
    found.stop()


def test_readyz_is_about_any_backend_and_readyz_all_about_every_one(pool):
    (proxy,) = pool.proxies
    wait_for(lambda: page_of(proxy, "/readyz/all")[0] == 200, "every backend to be up")
    assert page_of(proxy, "/readyz/all") == page_of(proxy, "/readyz")
    pool.kill_backend(1)
    assert page_of(proxy, "/readyz/share")[0] == 200
    status, said = wait_for(lambda: (answer := page_of(proxy, "/readyz/all"))[0] != 200 and answer, "one to be missed")
    assert page_of(proxy, "/readyz/share")[0] == 200, "half of them are up"
    assert status == 503 and said.startswith("1 of 2 backends down\n") and "backend two" in said, said
    status, said = page_of(proxy, "/readyz")
    assert status == 200 and said.startswith("ready\n") and "backend two" in said, said
    pool.kill_backend(0)
    wait_for(lambda: page_of(proxy, "/readyz")[0] == 503, "none to be up")
    assert page_of(proxy, "/readyz/all")[1].startswith("no backend is up\n")
    assert page_of(proxy, "/readyz/share")[0] == 503
    for number in range(2):
        pool.start_backend(number)
    wait_for(lambda: page_of(proxy, "/readyz/all")[0] == 200, "both to be back")


# --- files

def test_a_file_of_passwords_that_everybody_may_read_is_warned_of(tmp_path):
    users = tmp_path / "users"
    users.write_text("me:secret\n")
    settings = [f"backends=shm:{tmp_path}/none.sock", f"listen=tcp:127.0.0.1:{free_port()}", f"auth_file={users}"]
    users.chmod(0o640)
    assert f"ok   auth_file: 1 user in {users}\n" in doctor("egret-proxy", *settings)
    users.chmod(0o644)
    warning = f"auth_file: every user of this host may use {users}, which holds passwords => chmod 0640 it"
    assert f"warn {warning}" in doctor("egret-proxy", *settings)
    egret = Egret(proxy={"auth_file": users}, start=False)
    try:
        egret.start_backend()
        egret.add_proxy(ready=False)
        (proxy,) = egret.proxies
        wait_for(lambda: "listening on unix:" in proxy.log() and warning in proxy.log(), "the warning at the start")
        proxy.signal(signal.SIGHUP)
        wait_for(lambda: proxy.log().count(f"warning: {warning}") == 2, "the warning at a reload")
    finally:
        egret.stop()


# --- at the start

def run(name, *settings):
    """A daemon that is expected to end at once: its standard error."""
    argv = [egret_binary(name)] + [word for setting in settings for word in ("--set", setting)]
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=30 * SLACK, check=False)
    assert done.returncode == 1 and not done.stdout, done
    return done.stderr


def test_a_backend_whose_folder_is_missing_says_what_to_do(tmp_path):
    said = run("egret-backend", f"listen=shm:{tmp_path}/none/backend.sock", "admin=")
    assert said.count("\n") == 1 and said.endswith(f"install -d -o {os.geteuid()} {tmp_path}/none)\n"), said
    assert said.startswith(f"egret-backend: cannot listen on shm:{tmp_path}/none/backend.sock: No such file or directory => make it"), said


@pytest.mark.skipif(os.path.exists("/run/egret"), reason="the default folder exists here")
def test_a_bare_backend_says_how_to_try_it_without_the_default_folder():
    said = run("egret-backend", "admin=")
    assert said.startswith("egret-backend: cannot listen on shm:/run/egret/backend.sock: No such file or directory => make it"), said
    assert "egret-backend --set listen=shm:/tmp/egret.sock and egret-proxy --set backends=shm:/tmp/egret.sock" in said


@pytest.mark.parametrize("name", ["egret-backend", "egret-proxy"])
def test_a_second_daemon_at_the_same_admin_address_is_told_of_the_option(name, tmp_path):
    with socket.socket() as first:
        first.bind(("127.0.0.1", 0))
        first.listen()
        address = "127.0.0.1:%d" % first.getsockname()[1]
        said = run(name, f"listen={'shm' if name == 'egret-backend' else 'unix'}:{tmp_path}/x.sock", f"admin={address}")
    assert f"admin: cannot listen on {address}: in use by another process, perhaps by a daemon of the same kind on this host: give each its own" in said
