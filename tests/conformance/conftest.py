"""The two servers that tests compare. One pair serves a whole test file."""

import pytest

import servers


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
    server.stop()


@pytest.fixture
def egret_only():
    """For what memcached does not have: two daemons."""
    if servers.SUT != "egret":
        pytest.skip("needs egret-backend and egret-proxy")
