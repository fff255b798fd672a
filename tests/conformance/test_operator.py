"""What an operator is told: by --doctor, --check-config, the log and the admin pages, when something is not as it should be."""

import re
import signal
import urllib.error
import urllib.request

import pytest

from doctor import doctor
from servers import SLACK, SUT, Egret, EgretPool, ask, free_port, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="what Egret's daemons say")


# --- limits

def test_doctor_counts_the_descriptors_that_the_proxy_will_need(tmp_path):
    """The sum is the one by which the proxy lowers max_connections, and doctor says to what."""
    backends = ",".join(f"shm:{tmp_path}/{number}.sock" for number in range(3))
    said = doctor("egret-proxy", f"backends={backends}", f"listen=tcp:127.0.0.1:{free_port()}", "workers=4", "max_connections=100", open_files=400)
    assert ("warn open files: the limit is 400, 548 may be needed: 100 clients (max_connections) + 16 x 4 workers x 3 backends + 256; "
            "max_connections would be lowered to 1 => ") in said


# --- readiness

def page_of(proxy, path):
    """Status and text of a page at the proxy's admin address."""
    address = re.search(r"admin address: (\S+)", proxy.log(1 << 20))[1]
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=30 * SLACK) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


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
    status, said = wait_for(lambda: (answer := page_of(proxy, "/readyz/all"))[0] != 200 and answer, "one to be missed")
    assert status == 503 and said.startswith("1 of 2 backends down\n") and "backend two" in said, said
    status, said = page_of(proxy, "/readyz")
    assert status == 200 and said.startswith("ready\n") and "backend two" in said, said
    pool.kill_backend(0)
    wait_for(lambda: page_of(proxy, "/readyz")[0] == 503, "none to be up")
    assert page_of(proxy, "/readyz/all")[1].startswith("no backend is up\n")
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
