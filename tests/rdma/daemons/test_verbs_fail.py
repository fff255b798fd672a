"""Verbs that fail, three times in a row, in one daemon under load: the session that needed them is lost, or is not made, and the next one serves.

The interposer (../interposer) makes them fail. Runs in a guest (one_host.sh)."""

import pathlib
import sys
import time

import pytest

import servers
from test_life import Load

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "interposer"))
import read_counts

# The first call of each kind that fails: each a little later than the one before, so that there is a session for it. The first protection
# domain is made at the start, where a backend that does not get it says so and ends.
SET_UP = {"alloc_pd": 3, "query_device": 9, "create_comp_channel": 4, "create_cq": 6, "resize_cq": 2, "create_qp": 7, "query_qp": 2, "modify_qp": 25,
          "reg_mr": 24, "post_recv": 100}
AT_WORK = {"post_send": 300, "completion": 600, "poll_cq": 3000, "req_notify_cq": 30, "get_cq_event": 30}
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
    plan = SET_UP | AT_WORK
    if name == "egret-proxy":
        del plan["resize_cq"]  # the backend's
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
