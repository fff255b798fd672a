"""Random requests in all three dialects, one connection after the other on the same keys, given to memcached and to the subject.

Everything in a *life* of some hundred rounds follows from its seed. A difference is shrunk to a few commands and printed with the seed:

    EGRET_SEED=<seed> /usr/bin/python3 -m pytest tests/conformance/test_random_dialects.py

replays that life alone. Without it lives follow each other for EGRET_SOAK_SECONDS (10 s).
"""

import itertools
import os
import random
import time

from dialog import show
from random_dialects import Generator, Player
from random_dialects import shrunk as shrink
from servers import SOAK_SECONDS

ROUNDS = 150
SECONDS = SOAK_SECONDS or 10
_prefixes = itertools.count(random.getrandbits(24) << 16)


def first_failure(servers, rounds):
    """(number, answers) of the first round that differs, played on fresh keys, or None; and the rounds up to there."""
    player = Player(servers, b"r%011x" % next(_prefixes))
    history = []
    for number, each in enumerate(rounds):
        history.append(each)
        if heard := player.play(each):
            return (number, heard), history, player
    return None, history, player


def script(history, player):
    out = []
    for number, (dialect, commands, places) in enumerate(history):
        cut = f", cut at {', '.join('%.2f' % place for place in places)}" if places else ""
        out.append(f"  connection {number}, {dialect}{cut}:")
        out += [f"    {show(player.filled(command, 1), 200)}" for command in commands]
    return "\n".join(out)


def live(seed, servers):
    """The number of commands given."""
    generator = Generator(seed)
    failure, history, _ = first_failure(servers, (generator.round() for _ in range(ROUNDS)))
    if failure is None:
        return sum(len(commands) for _, commands, _ in history)
    shorter = shrink(history, lambda rounds: first_failure(servers, rounds)[0] is not None)
    again, played, player = first_failure(servers, shorter)
    number, heard = again or failure
    told = script(played, player) if again else "  (it does not happen again; the whole life may)"
    raise AssertionError(f"the life with EGRET_SEED={seed} differs in round {len(history) - 1}. Shrunk:\n{told}\n"
                         f"  memcached: {show(heard[0][1])}\n  subject:   {show(heard[1][1])}\n"
                         f"  compared:  {show(heard[0][0], 2000)}\n  against:   {show(heard[1][0], 2000)}")


def test_random_lives(oracle, subject):
    if "EGRET_SEED" in os.environ:
        live(int(os.environ["EGRET_SEED"], 0), (oracle, subject))
        return
    seeds = random.SystemRandom()
    end = time.monotonic() + SECONDS
    commands = lives = 0
    while time.monotonic() < end:
        commands += live(seeds.randrange(1 << 31), (oracle, subject))
        lives += 1
    print(f"{lives} lives, {commands} commands")
    assert commands > 1000
