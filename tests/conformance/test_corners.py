"""A smaller set with unusual options: tiny and huge slots and windows, one and many threads, every opportunity to sleep.

Answers do not depend on any of them.
"""

import pytest

import servers
from test_binary_protocol import test_quiet_pipelines as test_binary_quiet_pipelines  # noqa: F401
from test_binary_protocol import test_values_of_all_sizes as test_binary_values_of_all_sizes  # noqa: F401
from test_cas import test_a_dialogue_with_cas, test_one_of_many_wins  # noqa: F401
from test_cuts import test_large_values_cut_near_their_edges  # noqa: F401
from test_meta_commands import test_quiet_pipelines, test_stale_win_and_recache, test_values_of_all_sizes  # noqa: F401
from test_pipelines import (  # noqa: F401
    test_many_clients_say_the_same_at_once,
    test_multigets_of_1_to_500_keys,
    test_multiget_of_large_values_many_times,
    test_order_within_one_key_with_large_values,
    test_pipelines_of_every_command,
)
from test_sizes import test_large_values_in_one_multiget  # noqa: F401

CORNERS = {
    "smallest slots": ({"window": 2, "request_slot_size": 1024, "response_slot_size": 1024}, {"window": 2}),
    "unequal slots": ({"request_slot_size": "1KiB", "response_slot_size": "16KiB"}, {}),
    "large slots": ({"request_slot_size": "64KiB", "response_slot_size": "64KiB", "session_memory": "64MiB"}, {}),
    "many threads": ({"partitions": 8}, {"workers": 4}),
    "one of each": ({"partitions": 1}, {"workers": 1}),
    "parked at every opportunity": ({"park_always": "true"}, {"spin": 0, "max_refetches": 0}),
    "a pool of three": ({}, {}, servers.EgretPool),
    "a pool of three, parked, smallest slots": ({"window": 2, "request_slot_size": 1024, "response_slot_size": 1024, "park_always": "true"},
                                                {"spin": 0, "max_refetches": 0}, servers.EgretPool),
}


@pytest.fixture(scope="module", params=CORNERS)
def subject(request):
    if servers.SUT != "egret":
        pytest.skip("Egret's own options")
    backend, proxy, *kind = CORNERS[request.param]
    server = (kind or [servers.start_subject])[0](backend=backend, proxy=proxy)
    yield server
    server.check_alive()
    server.stop()
