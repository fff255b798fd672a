"""The two servers that tests compare, of which one pair serves a whole test file; programs under egret-run."""

import os

import pytest

import servers
from preloaded import Preloaded


@pytest.fixture(scope="module")
def oracle():
    server = servers.Memcached()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def subject():
    server = servers.start_subject()
    yield server
    for daemon in server.daemons():
        daemon.check_alive()
    if hasattr(server, "check_changes"):
        server.check_changes()
    if os.environ.get("EGRET_BOTH_WAYS"):
        server.check_both_ways()
    server.stop()


@pytest.fixture
def preloaded():
    made = Preloaded()
    yield made
    made.stop()


@pytest.fixture
def egret_only():
    """For what memcached does not have: two daemons."""
    if servers.SUT != "egret":
        pytest.skip("needs egret-backend and egret-proxy")


def pytest_collection_modifyitems(config, items):
    """EGRET_PART=1/2: every other test, beginning with the first; 2/2: the others. Two parts run side by side."""
    part, parts = map(int, os.environ.get("EGRET_PART", "1/1").split("/"))
    kept = items[part - 1::parts]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept
