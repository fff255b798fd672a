"""Cache lines that cross threads, and atomic operations, of a lone op in one process: they depend on whether it crosses threads, not on how
many of them there are. For this egret-memcached is compiled so that it tells of each access to memory (build/counted).

`python3 test_accesses.py` prints the figures of docs/benchmarks/scale.md.
"""

import subprocess

import pytest

from counted import ATTEMPTS, MEMORY, figures, grow_little, print_table, servers

COUNTED = servers.ROOT / "build/counted"


def build():
    for command in (["cmake", "--preset", "release", "-B", COUNTED, "-DEGRET_COUNT_ACCESSES=ON", "-DEGRET_UNITS=OFF"],
                    ["cmake", "--build", COUNTED, "--target", "egret-memcached", "egret_count_calls"]):
        done = subprocess.run(command, cwd=servers.ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.fixture(scope="module", autouse=True)
def built():
    build()


def test_an_op_of_the_workers_own_partition_takes_no_line_of_another_thread():
    seen = []
    for _ in range(ATTEMPTS):
        own, _ = figures("one process", 2, *MEMORY, build=COUNTED)
        seen.append(own)
        if own and own[1] == 0:
            return
    pytest.fail(f"calls, lines and atomics of an op that stays in its thread: {seen}")


def test_an_op_that_crosses_takes_as_many_lines_and_atomics_with_sixteen_workers_as_with_two():
    is_so, seen = grow_little("one process", *MEMORY, build=COUNTED)
    assert is_so, f"calls, lines and atomics of an op with 2 and with 16 workers: {seen}"


if __name__ == "__main__":
    build()
    print_table(*MEMORY, kinds=("one process",), build=COUNTED)
