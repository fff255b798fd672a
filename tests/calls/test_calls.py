"""System calls and wake-ups of a lone op: they depend on whether it crosses threads, not on how many of them there are.

`python3 test_calls.py` prints the figures of docs/benchmarks/scale.md.
"""

import pytest

from counted import OWN_CALLS, Counted, figures, grow_little, print_table


def test_in_one_process_an_op_of_the_workers_own_partition_takes_three_calls_and_one_wake_up():
    with Counted("one process", 1) as server:
        found = sorted(server.lone_gets("calls", "wake-ups"))
    assert found[len(found) // 2] == (OWN_CALLS, 1), found


@pytest.mark.parametrize("kind", ["one process", "two daemons"])
def test_an_op_that_crosses_takes_as_much_with_sixteen_workers_and_partitions_as_with_two(kind):
    is_so, seen = grow_little(kind, "wake-ups")
    assert is_so, f"{kind}: calls and wake-ups of an op with 2 and with 16 workers: {seen}"


def test_an_op_of_two_daemons_takes_no_more_where_there_are_several_partitions():
    (_, one), (_, many) = figures("two daemons", 1, "wake-ups"), figures("two daemons", 16, "wake-ups")
    assert all(0 < with_many <= with_one + 1 for with_one, with_many in zip(one, many)), f"calls and wake-ups of an op with 1 and with 16: {one}, {many}"


if __name__ == "__main__":
    print_table("wake-ups")
