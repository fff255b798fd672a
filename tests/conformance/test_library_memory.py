"""What libegret costs a process: memory that it has for itself, and slots, which it shares with who serves it. Of 200 processes at once.

    /usr/bin/python3 -m pytest -q -s tests/conformance/test_library_memory.py     # prints what docs/client has

Resident memory is that of /proc/PID/smaps, at the beginning of main() and when the process has done a hundred sets and gets:

    private  pages of no other process: what one process more takes, with libc, libstdc++ and all, but without slots
    shared   pages of the program and libraries, which all processes have in common
    pss      private, and its share of shared
    slots    pages of the session's memory, which the process and who serves it have in common
"""

import os
import re
import statistics
import subprocess

import pytest

from servers import BUILD, ROOT, SUT, Egret, figure_of, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="Egret's own")

KIB = 1 << 10
MIB = 1 << 20
PAGE = os.sysconf("SC_PAGESIZE")
PROCESSES = 200
OPTIONS = {"straight": "straight: host\n", "relayed": "straight: none\n"}
# Goes on to its next stage with each line that it is sent; says in each what its sessions have of slots.
PROGRAM = r"""
#include <egret.h>
#include <stdio.h>
#include <string.h>

static void stage(const egret_client* client) {
  const char* names[64];
  uint64_t values[64], slot_bytes = 0;
  const int count = client != NULL ? egret_counters(client, names, values, 64) : 0;
  for (int i = 0; i < count; ++i) {
    if (strcmp(names[i], "slot_bytes") == 0) slot_bytes = values[i];
  }
  printf("%llu\n", (unsigned long long)slot_bytes);
  fflush(stdout);
  if (getchar() == EOF) return;
}

int main(void) {
  egret_pool* pool;
  egret_client* client;
  stage(NULL);
  if (egret_pool_open(NULL, &pool) != EGRET_OK || egret_client_new(pool, &client) != EGRET_OK) return 1;
  if (egret_client_connect(client, 60000000000) != EGRET_OK) {
    fprintf(stderr, "%s\n", egret_why(client));
    return 2;
  }
  for (int i = 0; i < 100; ++i) {
    char key[16];
    egret_result result = {.size = sizeof result};
    const size_t length = (size_t)snprintf(key, sizeof key, "key%d", i);
    if (egret_set(client, key, length, "0123456789012345678901234567890123456789", 40, 0, 0) != EGRET_STORED) return 3;
    if (egret_get(client, key, length, &result) != EGRET_HIT || result.value_length != 40) return 4;
    egret_release(&result);
  }
  stage(client);
  egret_client_free(client);
  egret_pool_close(pool);
  stage(NULL);
  return 0;
}
"""


@pytest.fixture(scope="module")
def egret():
    """Two partitions, with the sizes of slots that are shipped."""
    found = Egret(backend={"partitions": 2, "admin": "127.0.0.1:0"}, proxy={"workers": 1, "admin": "127.0.0.1:0"})
    yield found
    found.check_alive()
    found.stop()


@pytest.fixture(scope="module")
def program(egret):
    path = egret.directory / "program"
    library = BUILD / "client"
    subprocess.run(["cc", "-O1", "-x", "c", "-", "-o", path, f"-I{ROOT}/client", f"-L{library}", f"-Wl,-rpath,{library}", "-legret"],
                   input=PROGRAM, text=True, check=True)
    return path


class Processes:
    """So many of that program, one after another in the next stage."""

    def __init__(self, program, egret, options):
        config = egret.directory / "client.yaml"
        config.write_text("proxy: tcp:%s:%d\n" % egret.address + options)
        environment = {**os.environ, "EGRET_CONFIG": str(config)}
        self.all = [subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(PROCESSES)]

    def begin(self):
        return self._measure(process.stdout.readline() for process in self.all)

    def go_on(self):
        return self._measure(self._said_by(process) for process in self.all)

    @staticmethod
    def _said_by(process):
        process.stdin.write("\n")
        process.stdin.flush()
        return process.stdout.readline()

    def _measure(self, said):
        """Of each, when all of them are in that stage: its pages, and what its session has of slots."""
        slot_bytes = list(map(int, said))
        return [{**pages_of(process.pid), "slot_bytes": each} for process, each in zip(self.all, slot_bytes)]

    def end(self):
        for process in self.all:
            process.kill()
            process.communicate()


def pages_of(pid):
    found = {"private": 0, "shared": 0, "pss": 0, "slots": 0}
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as lines:
        for line in lines:
            if mapping := re.match(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+ *(.*)", line):
                is_slots = mapping[1].startswith("/memfd:egret")
            elif amount := re.match(r"(Rss|Pss|(?:Private|Shared)_(?:Clean|Dirty)): +(\d+) kB", line):
                kind = amount[1].split("_")[0].lower() if not is_slots else "slots" if amount[1] == "Rss" else ""
                if kind in found:
                    found[kind] += int(amount[2]) * KIB
    return found


def show(stage, measured):
    figures = (f"{kind} {statistics.mean(each[kind] for each in measured) / KIB:.0f}" for kind in measured[0])
    print(f"{stage}, KiB a process: {', '.join(figures)}")


@pytest.mark.parametrize("way", OPTIONS)
def test_each_of_200_processes_has_little_memory_of_its_own_and_all_together_little_of_slots(egret, program, way):
    """Goals: 2 MiB for each before its slots, 32 MiB of slots for all."""
    sessions_before = figure_of(egret.backend, "egret_backend_sessions")
    memory_before = figure_of(egret.backend, "egret_backend_session_memory_bytes")
    processes = Processes(program, egret, OPTIONS[way])
    try:
        begun = processes.begin()
        opened = processes.go_on()
        straight = figure_of(egret.backend, "egret_backend_sessions") - sessions_before
        relayed = figure_of(egret.proxies[0], "egret_proxy_slots_sessions")
        for_straight = figure_of(egret.backend, "egret_backend_session_memory_bytes") - memory_before
        print(f"\n{way}: {straight} sessions straight, {for_straight / KIB:.0f} KiB; {relayed} relayed")
        show("begun", begun)
        show("opened", opened)
        assert straight + relayed == PROCESSES
        assert straight > 0 if way == "straight" else straight == 0  # a backend asks those back who come too fast

        for before, after in zip(begun, opened):
            assert max(after["private"], after["pss"]) <= 2 * MIB, "all of it: the goal is libegret's alone"
            assert after["private"] - before["private"] <= 256 * KIB, "what was made by egret_pool_open and behind it"
            assert after["slots"] <= after["slot_bytes"] + 2 * PAGE, "no more pages than those that slots are in"
        assert 0 < sum(each["slots"] for each in opened) <= 32 * MIB
        if straight == 0:
            assert figure_of(egret.proxies[0], "egret_proxy_slots_session_bytes") == sum(each["slot_bytes"] for each in opened)
        # Beside slots a backend has room for results that it pushes, which its figure counts.
        assert for_straight <= straight * (max(each["slot_bytes"] for each in opened) + 16 * KIB + PAGE)
        assert for_straight <= 32 * MIB

        closed = processes.go_on()
        assert not any(each["slots"] for each in closed)
    finally:
        processes.end()
    wait_for(lambda: figure_of(egret.backend, "egret_backend_session_memory_bytes") == memory_before
             and figure_of(egret.proxies[0], "egret_proxy_slots_sessions") == 0
             and figure_of(egret.proxies[0], "egret_proxy_slots_session_bytes") == 0, "all slots to be given back")
