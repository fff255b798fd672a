"""Programs under egret-run that are killed, or stand still, in the midst of their work: who else works through the same proxy does not
notice, what was answered holds, and all that they had is given back."""

import os
import signal

import pytest

from bystander import Bystander
from servers import SLACK, SUT, Egret, ask, figure_of, wait_for

pytestmark = pytest.mark.skipif(SUT != "egret", reason="Egret's own")

# A program with libmemcached that checks every answer, till it is told to end. A turn: a value of its own is changed and read, beside a
# key that is not there, and a number is raised that all programs share. Writes down how many turns were answered, and the last of them; says
# at the end how often it was disturbed, and made a new connection.
WORK = """
import pylibmc
name, progress = sys.argv[3], os.open(sys.argv[4], os.O_WRONLY | os.O_CREAT)
client = pylibmc.Client(["%s:%d" % (HOST, PORT)])
answered = disturbed = 0
def value_of(turn):
    return b"%s.%06d|" % (name.encode(), turn) * (60_000 if turn % 10 == 9 else 300 if turn % 3 == 1 else 1)
for turn in range(1_000_000):
    if select.select([sys.stdin], [], [], 0)[0]:
        break
    key = "%s.%d" % (name, disturbed)  # what was disturbed may be done later
    try:
        assert client.set(key, value_of(turn)) is True, turn
        found = client.get_multi([key, "nothing"])
        if not found:  # libmemcached does not tell an error within a multiget from a miss
            disturbed += 1
            found = {key: client.get(key)}
        assert found == {key: value_of(turn)}, turn
        client.incr("shared")
        answered += 1
        os.pwrite(progress, b"%8d%8d %s " % (answered, turn, key.encode()), 0)
    except pylibmc.Error:
        disturbed += 1
        client.disconnect_all()
say("disturbed", disturbed)
"""
# Straight to the backend's slots, or through those of the proxy.
WAYS = {"straight": "straight: host\n", "relayed": "straight: none\n"}


class Worker:
    """One such program."""

    def __init__(self, preloaded, egret, name, options):
        self.name = name
        self.progress = preloaded.directory / name
        config = preloaded.directory / f"{name}.yaml"
        config.write_text(options)
        self.program = preloaded.start(WORK, *egret.address, name, self.progress, EGRET_CONFIG=str(config))
        self.preloaded = preloaded

    def turns(self):
        """How often it has had all its answers."""
        return self._progress()[0]

    def last_turn(self):
        """The last such turn, and the key that has its value."""
        return self._progress()[1:]

    def _progress(self):
        words = self.progress.read_text().split() if self.progress.exists() else []
        return (int(words[0]), int(words[1]), words[2]) if words else (0, -1, "")

    def goes_on(self, turns=20):
        """Waits until it has made so many more turns."""
        goal = self.turns() + turns
        wait_for(lambda: self.turns() >= goal or self.program.poll() is not None, f"{self.name} to go on", timeout=60)
        assert self.program.poll() is None, self.program.communicate()[0] + self.preloaded.log()

    def kill(self):
        self.program.kill()
        self.program.wait()

    def halt(self):
        """It stands still, in whatever it was about."""
        self.program.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.program.pid, os.WSTOPPED | os.WNOWAIT)

    def finish(self):
        """It ends in order. How often it was disturbed."""
        said, _ = self.program.communicate("\n", timeout=60 * SLACK)
        assert self.program.returncode == 0, said + self.preloaded.log()
        return int(said.removeprefix("disturbed "))


@pytest.fixture
def egret():
    found = Egret(backend={"admin": "127.0.0.1:0"}, proxy={"workers": 1, "admin": "127.0.0.1:0"})
    assert ask(found.address, b"set shared 0 0 1\r\n0\r\n") == b"STORED\r\n"
    wait_for(lambda: figure_of(found.backend, "egret_backend_sessions_closing") == 0, "sessions of the start to be over")
    yield found
    found.check_alive()
    found.stop()


def held_for_clients(egret):
    """What the daemons hold for who has sessions with them."""
    of_proxy, of_backend = (("egret_proxy_slots_sessions", "egret_proxy_slots_session_bytes", "egret_proxy_slots_listeners"),
                            ("egret_backend_sessions", "egret_backend_sessions_closing", "egret_backend_session_memory_bytes"))
    return {name: figure_of(daemon, name) for daemon, names in ((egret.proxies[0], of_proxy), (egret.backend, of_backend)) for name in names}


def wait_until_held(egret, wanted, after):
    try:
        wait_for(lambda: held_for_clients(egret) == wanted, f"what was held to be given back {after}", timeout=60)
    except TimeoutError as late:
        raise AssertionError(f"{late}: {held_for_clients(egret)}, not {wanted}") from None


def turns_lost(egret, worker):
    """By how many turns the worker's value in the store is behind (or, negative, ahead of) its last one; and all of the value is there."""
    turn, key = worker.last_turn()
    answer = ask(egret.address, b"get %s\r\n" % key.encode(), end=b"END\r\n")
    value = answer.split(b"\r\n", 1)[1].removesuffix(b"\r\nEND\r\n")
    unit = value[:value.index(b"|") + 1]
    assert value == unit * (len(value) // len(unit)), f"{key}: a value that nobody has set"
    return turn - int(unit.removeprefix(worker.name.encode() + b".")[:-1])


def shared_number(egret):
    return int(ask(egret.address, b"get shared\r\n", end=b"END\r\n").split(b"\r\n")[1])


def check_shared_number(egret, workers, disturbances):
    """Each was raised for once or, where nobody was left to hear or an answer was lost, perhaps not at all."""
    acknowledged = sum(worker.turns() for worker in workers)
    assert acknowledged <= shared_number(egret) <= acknowledged + disturbances


@pytest.mark.parametrize("way", WAYS)
def test_killed_programs_disturb_nobody_and_leave_nothing_behind(egret, preloaded, way):
    """Eight, one after another, each in another moment: in a value of 900 KB that goes in parts, in small ones, while it stands still."""
    nobody = held_for_clients(egret)
    others = [Worker(preloaded, egret, f"other{n}", WAYS[way]) for n in range(2)]
    for other in others:
        other.goes_on()
    before = held_for_clients(egret)
    kind = "egret_backend_sessions" if way == "straight" else "egret_proxy_slots_sessions"
    assert before[kind] == nobody[kind] + len(others), preloaded.log()
    killed = []
    with Bystander(egret.address) as bystander:
        for number in range(8):
            victim = Worker(preloaded, egret, f"victim{number}", WAYS[way])
            victim.goes_on(7 + number)
            if number % 2 == 1:  # while it stands still
                victim.halt()
                others[0].goes_on()
            victim.kill()
            killed.append(victim)
            for other in others:
                other.goes_on()
            wait_until_held(egret, before, f"by {victim.name}")
        turns = bystander.turns
        wait_for(lambda: bystander.turns > turns or bystander.failure, "the bystander to go on")
    for other in others:
        assert other.finish() == 0
        assert turns_lost(egret, other) == 0
    wait_until_held(egret, nobody, "at last")
    assert figure_of(egret.proxies[0], "egret_proxy_slots_kept_bytes") == figure_of(egret.proxies[0], "egret_proxy_slots_collected_bytes") == 0
    for victim in killed:
        # Behind the last turn that was heard of: the next one's value, if it was killed behind its set.
        assert turns_lost(egret, victim) in (0, -1)
    check_shared_number(egret, others + killed, len(killed))
    assert figure_of(egret.proxies[0], "egret_proxy_slots_malformed_total") == 0
    assert figure_of(egret.backend, "egret_backend_sessions_broken_total") == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op_timeout", ["60s", "20ms"], ids=["nothing is overdue", "all is overdue"])
def test_a_program_that_stood_still_goes_on_and_nobody_else_has_stood_still(egret, preloaded, way, op_timeout):
    """Where answers are overdue by then, it may hear an error or the end of its connection, and makes another."""
    nobody = held_for_clients(egret)
    others = [Worker(preloaded, egret, f"other{n}", WAYS[way]) for n in range(2)]
    halted = Worker(preloaded, egret, "halted", WAYS[way] + f"op_timeout: {op_timeout}\n")
    with Bystander(egret.address):
        for worker in (*others, halted):
            worker.goes_on()
        for round_ in range(8):
            halted.halt()
            stands_at = halted.turns()
            for other in others:
                other.goes_on(40)
            assert halted.turns() == stands_at
            halted.program.send_signal(signal.SIGCONT)
            halted.goes_on(3 + round_)
    disturbed = halted.finish()
    assert disturbed == 0 or op_timeout == "20ms"
    for other in others:
        assert other.finish() == 0
    for worker in (*others, halted):
        assert turns_lost(egret, worker) == 0
    check_shared_number(egret, (*others, halted), disturbed)
    wait_until_held(egret, nobody, "at last")
