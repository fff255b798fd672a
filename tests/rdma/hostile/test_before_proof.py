"""What exists for a peer before it has proved that it holds the backend's secret: one queue pair, room for it in a completion queue, and
the buffers of its frames. Counted from outside, in the real daemon, by the interposer: each one that was ever made, not those at some moment.
A proxy with the secret, and its clients, are served meanwhile."""

import os
import pathlib
import subprocess

import pytest

import read_counts
import servers
from test_hostile import GROUPS, HOSTILE, Honest

SECRET = "0123456789abcdef0123456789abcdef"
LIBRARY = servers.BUILD / "libegret_count_verbs.so"
ENTRIES = 128 + 64  # of a completion queue, for one queue pair of the backend, whose peer does not say what window it asks for
ENTRIES_OF_PROXY = 2 * (8 + 2)  # of one that asks for two slots of each lane, and has a lane or none on each queue pair
SESSION_PAIRS = 4
FIRST_PAIRS = 4  # for so many queue pairs a partition's first completion queue has room; each further one for twice what there is
PARTITIONS = 2
# Of each attack: connections that prove nothing; queue pairs of its others; how many of those get a region.
PLANS = {"before-proof": (8, 0, 0), "in-turn": (0, 3, 1), "sixteen": (0, 16, 1), "of-another-peer": (0, 4, 2), "instead": (0, 10, 0),
         "never": (0, 3, 0)}
INVITED = {"before-proof": 0, "in-turn": 1, "sixteen": 1, "of-another-peer": 2, "instead": 5, "never": 2}


def start(directory, queue_pairs=SESSION_PAIRS, fail=None):
    """A backend with a secret under the interposer, and a proxy of one worker that holds it, too. It tells nobody of changes and probes nobody:
    the worker's session is the only one."""
    secret = directory / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    egret = servers.Egret(backend={"memory": "16MiB", "secret_file": secret, "partitions": PARTITIONS}, start=False,
                          proxy={"workers": 1, "qps_per_session": queue_pairs, "secret_file": secret, "op_timeout": "30s",
                                 "purge_moved": "false", "eject_share": 0})
    added = {"LD_PRELOAD": str(LIBRARY), "EGRET_COUNT_VERBS_FILE": str(directory / "counts")} | ({"EGRET_VERBS_FAIL": fail} if fail else {})
    os.environ.update(added)
    try:
        egret.start_backend()
    finally:
        for name in added:
            del os.environ[name]
    egret.add_proxy()
    return egret


class Scene:
    def __init__(self, directory):
        self.counts_file = directory / "counts"
        self.egret = start(directory)
        self.honest = Honest(self.egret.address, connections=1)
        self.honest.check()

    def counts(self):
        return read_counts.snapshot(self.counts_file)

    def attack(self, name):
        target = self.egret.backend_address.removeprefix("rdma:")
        return subprocess.run([HOSTILE, target, name], capture_output=True, text=True, timeout=120 * servers.SLACK,
                              env={**os.environ, "EGRET_HOSTILE_SECRET": SECRET})

    def stop(self):
        self.honest.stop()
        self.egret.stop()


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    scene = Scene(tmp_path_factory.mktemp("scene"))
    yield scene
    scene.stop()


def test_a_session_of_several_queue_pairs_is_served(scene):
    assert f"{SESSION_PAIRS} queue pairs" in scene.egret.proxies[0].log()
    assert f"{SESSION_PAIRS} queue pairs" in scene.egret.backend.log()
    seen = scene.counts()
    assert (seen["queue_pairs"], seen["completion_entries"]) == (SESSION_PAIRS, FIRST_PAIRS * ENTRIES_OF_PROXY)


def test_every_attack_is_counted():
    assert set(PLANS) == set(GROUPS["queue-pairs"].split())


@pytest.mark.parametrize("name", PLANS)
def test_one_queue_pair_and_its_frames_before_proof(scene, name):
    before = scene.counts()
    done = scene.attack(name)
    print(done.stdout, done.stderr)
    assert (done.returncode, done.stderr) == (0, ""), f"the backend's log:\n{scene.egret.backend.log()}"
    scene.honest.check()
    made = read_counts.difference(scene.counts(), before)
    unproved, pairs, regions = PLANS[name]
    links = unproved + INVITED[name]  # one for each connection that is no further queue pair
    assert made["queue_pairs"] == unproved + pairs
    assert made["completion_entries"] <= ENTRIES * (PARTITIONS * FIRST_PAIRS + 3 * (SESSION_PAIRS + made["queue_pairs"]))
    assert made["registrations"] == links + 2 * regions, "the frames of each, and two memories of each session"
    assert (made["remote_writable"], made["remote_readable"]) == (regions, regions)
    scene.egret.check_alive()


def test_what_the_attackers_took_is_given_back(scene):
    servers.wait_for(lambda: scene.counts()["queue_pairs"] - scene.counts()["queue_pairs_destroyed"] == SESSION_PAIRS,
                     "only the proxy's queue pairs to be left")
    scene.honest.check()
    assert "lost" not in scene.egret.proxies[0].log()
    assert scene.counts()["uncounted"] == 0


def test_a_device_that_cannot_enlarge_completion_queues_gives_all_queue_pairs(tmp_path):
    egret = start(tmp_path, fail="resize_cq:1+")
    try:
        assert servers.ask(egret.address, b"set key 0 0 5\r\nvalue\r\n") == b"STORED\r\n"
        assert servers.ask(egret.address, b"get key\r\n", b"END\r\n") == b"VALUE key 0 5\r\nvalue\r\nEND\r\n"
        assert f"{SESSION_PAIRS} queue pairs," in egret.backend.log() and f"{SESSION_PAIRS} queue pairs," in egret.proxies[0].log()
        assert read_counts.snapshot(pathlib.Path(tmp_path / "counts"))["queue_pairs"] == SESSION_PAIRS
    finally:
        egret.stop()
