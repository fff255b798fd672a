"""A smaller set against the daemons as shipped: conf/*.yaml with nothing but the addresses changed."""

import pytest

import servers
# pylint: disable=unused-import
from test_cas import test_a_dialogue_with_cas  # noqa: F401
from test_cuts import test_byte_by_byte  # noqa: F401
from test_pipelines import (  # noqa: F401
    test_multigets_of_1_to_500_keys,
    test_noreply_everywhere,
    test_order_within_one_key_with_large_values,
    test_pipelines_of_every_command,
)
from test_sizes import test_large_values_in_one_multiget, test_small_sizes  # noqa: F401
from test_text_commands import test_storage_commands_on_missing_and_present_items, test_what_is_not_a_command  # noqa: F401


@pytest.fixture(scope="module")
def subject():
    server = servers.start_subject(defaults=True)
    yield server
    for daemon in server.daemons():
        daemon.check_alive()
    server.stop()
