"""Verbs and calls of librdmacm that fail, three times in a row, in one daemon under load: the session that needed them is lost, or is not made, and the
next one serves. What a backend needs before it listens: it says so and ends.

The interposer (../interposer) makes them fail. Runs in a guest (one_host.sh)."""

import os
import pathlib
import subprocess
import sys
import time

import pytest

import servers
from test_life import Load

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "interposer"))
import read_counts

# The first call of each kind that fails: each a little later than the one before, so that there is a session for it. The first protection
# domain is made at the start, where a backend that does not get it says so and ends; so is the device asked. Channels and queues are a
# thread's, and made for its first session.
SET_UP = {"alloc_pd": 3, "query_device": 2, "create_comp_channel": 1, "create_cq": 1, "create_qp": 7, "query_qp": 2, "modify_qp": 25,
          "reg_mr": 24, "post_recv": 100}
AT_WORK = {"post_send": 300, "completion": 600, "poll_cq": 3000, "req_notify_cq": 30, "get_cq_event": 30}
# Of librdmacm. The proxy's device is opened, and its event channel made, when it first connects; a backend listens with its first ones, and
# its first id.
CONNECTING = {
    "egret-backend": {"cm_accept": 6, "cm_create_qp": 10, "cm_set_option": 2, "cm_get_event": 30},
    "egret-proxy": {"open_device": 1, "cm_create_event_channel": 1, "cm_create_id": 6, "cm_set_option": 2, "cm_resolve_addr": 6, "cm_resolve_route": 6,
                    "cm_create_qp": 10, "cm_connect": 9, "cm_get_event": 30},
}
# From the first on: librdmacm makes the first id itself, and binds it, to see what the kernel can do.
TO_LISTEN = ["open_device", "cm_create_event_channel", "cm_create_id", "cm_bind_addr", "cm_listen"]
IN_A_ROW = 3


class Failing(servers.Egret):
    """One of the daemons is under the interposer."""

    def __init__(self, name, plan):
        self.failing, self.counters = name, None
        self.plan = ",".join(f"{call}:{first}-{first + IN_A_ROW - 1}" for call, first in plan.items())
        self.to_fail = IN_A_ROW * len(plan)
        super().__init__(proxy={"workers": 2, "qps_per_session": 2, "reconnect_max": "100ms"})

    def argv(self, name, options):
        argv = servers.Egret.argv(name, options)
        if name != self.failing:
            return argv
        self.counters = self.directory / "verbs"
        return ["/usr/bin/env", f"LD_PRELOAD={servers.BUILD / 'libegret_count_verbs.so'}", f"EGRET_COUNT_VERBS_FILE={self.counters}",
                f"EGRET_VERBS_FAIL={self.plan}", *argv]

    def new_sessions(self):
        """Restarts the other daemon."""
        if self.failing == "egret-proxy":
            self.kill_backend()
            self.start_backend()
        else:
            self.proxies[0].kill()
            self.start_proxy(0)

    def have_failed(self):
        """Whether all of the plan has; if no session is set up any more, new ones are made."""
        seen = self.failed()
        if seen == self.to_fail:
            return True
        time.sleep(2)
        if self.failed() == seen:
            self.new_sessions()
        return False

    def failed(self):
        return read_counts.snapshot(self.counters)["failed_on_purpose"]


@pytest.mark.parametrize("name", ["egret-backend", "egret-proxy"])
def test_each_call_fails_under_load(name):
    plan = SET_UP | AT_WORK | CONNECTING[name]
    server = Failing(name, plan)
    loads = [Load(server.address, f"load{number}") for number in range(4)]
    try:
        for load in loads:
            load.start()
        servers.wait_for(server.have_failed, f"{server.to_fail} calls to fail; {server.plan}", 60)
        before = [load.answers for load in loads]
        servers.wait_for(lambda: all(load.answers > was + 10 for load, was in zip(loads, before)), "everybody to be served again", 30)
    finally:
        for load in loads:
            load.end()
    server.check_alive()
    assert server.proxies[0].stop() == 0 and server.backend.stop() == 0
    server.stop()


class WithoutFlushes(servers.Egret):
    """A backend whose device flushes nothing: the work requests of a queue pair that ends bring no completions."""

    SESSIONS = 8

    def __init__(self):
        super().__init__(backend={"partitions": 1}, proxy={"workers": self.SESSIONS})

    def argv(self, name, options):
        argv = servers.Egret.argv(name, options)
        if name != "egret-backend":
            return argv
        self.counters = self.directory / "verbs"
        return ["/usr/bin/env", f"LD_PRELOAD={servers.BUILD / 'libegret_count_verbs.so'}", f"EGRET_COUNT_VERBS_FILE={self.counters}",
                "EGRET_VERBS_HIDE=flushes", *argv]

    def begun(self):
        return self.backend.log(1 << 20).count("[session_open]")

    def ended(self):
        return self.backend.log(1 << 20).count("[session_closed]")


def test_sessions_end_without_waiting_for_what_their_device_never_flushes():
    server = WithoutFlushes()
    try:
        servers.wait_for(lambda: server.proxies[0].log(1 << 20).count("[session_open]") == server.SESSIONS, "all sessions to be open")
        before = read_counts.snapshot(server.counters)
        server.proxies[0].kill()
        servers.wait_for(lambda: server.ended() == server.begun(), "all sessions to be closed", 60)
        polls = read_counts.snapshot(server.counters)["polls"] - before["polls"]
        # Whoever waits for completions polls, some ten thousand times for each queue pair.
        assert polls < 5000 * server.SESSIONS, polls
        server.start_proxy(0)
        assert server.wait_ready()
        server.check_alive()
    finally:
        server.stop()


class FailedOver(servers.Egret):
    """A backend whose listener is told, after its second request to connect, that its device's address has changed; it hears of nobody from then on."""

    def __init__(self):
        super().__init__(backend={"partitions": 1}, proxy={"workers": 2})

    def argv(self, name, options):
        argv = servers.Egret.argv(name, options)
        if name != "egret-backend":
            return argv
        return ["/usr/bin/env", f"LD_PRELOAD={servers.BUILD / 'libegret_count_verbs.so'}", f"EGRET_COUNT_VERBS_FILE={self.directory / 'verbs'}",
                "EGRET_VERBS_EVENT=addr_change:2", *argv]


def test_a_listener_listens_anew_when_the_address_of_its_device_has_changed():
    server = FailedOver()
    try:
        servers.wait_for(lambda: "listening anew" in server.backend.log(1 << 20), "the listener to notice")
        server.check_alive()  # its sessions go on
        server.proxies[0].kill()
        server.start_proxy(0)
        assert server.wait_ready()
        server.check_alive()
    finally:
        server.stop()


class Alarmed(servers.Egret):
    """The device of one daemon tells, under load, that it or one of its queues has failed; in truth it goes on."""

    def __init__(self, name, event):
        self.alarmed, self.event = name, event
        super().__init__(proxy={"workers": 2, "reconnect_max": "100ms"})

    def argv(self, name, options):
        argv = servers.Egret.argv(name, options)
        if name != self.alarmed:
            return argv
        posts = 15 if name == "egret-backend" else 200  # a backend posts little but keep-alives
        return ["/usr/bin/env", f"LD_PRELOAD={servers.BUILD / 'libegret_count_verbs.so'}", f"EGRET_COUNT_VERBS_FILE={self.directory / 'verbs'}",
                f"EGRET_VERBS_EVENT={self.event}:{posts}", *argv]

    def told(self):
        """Of how many sessions the daemon's log says that the device's word ended them."""
        log = (self.backend if self.alarmed == "egret-backend" else self.proxies[0]).log(1 << 20)
        return sum("the device says: " in line for line in log.splitlines())


@pytest.mark.parametrize("event", ["device_fatal", "cq_err", "qp_fatal"])
@pytest.mark.parametrize("name", ["egret-backend", "egret-proxy"])
def test_what_the_device_says_has_failed_ends_the_sessions_that_it_concerns(name, event):
    server = Alarmed(name, event)
    load = Load(server.address, "load")
    try:
        load.start()
        servers.wait_for(lambda: server.told() > 0, "a session to end for what the device says")
        before = load.answers
        servers.wait_for(lambda: load.answers > before + 20, "the load to be served again")
        assert server.told() >= 2 if event == "device_fatal" else server.told() == 1
        server.check_alive()
    finally:
        load.end()
        server.stop()


@pytest.mark.parametrize("call", TO_LISTEN)
def test_a_backend_that_cannot_listen_says_so(call, tmp_path):
    counters = tmp_path / "verbs"
    environment = {**os.environ, "LD_PRELOAD": str(servers.BUILD / "libegret_count_verbs.so"), "EGRET_COUNT_VERBS_FILE": str(counters),
                   "EGRET_VERBS_FAIL": f"{call}:1+"}
    address = servers.new_backend_address(tmp_path, "backend")
    done = subprocess.run([servers.egret_binary("egret-backend"), "--set", f"listen={address}", "--set", "memory=8MiB", "--set", "partitions=1", "--set", "admin="],
                          env=environment, capture_output=True, text=True, timeout=30 * servers.SLACK)
    assert read_counts.snapshot(counters)["failed_on_purpose"] > 0
    assert done.returncode == 1 and address in done.stderr, done
