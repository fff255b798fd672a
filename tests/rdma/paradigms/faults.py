"""Faults of each paradigm, by run-time switches: the interposer's plans (EGRET_VERBS_TEAR, EGRET_VERBS_SWALLOW), options of
paradigms_life, signals to processes. What must detect a fault detects it, and no answer is wrong; what a paper left unprotected is
shown wrong, and its row carries the mark that says so."""
import concurrent.futures, itertools, re, signal, time

from laboratory import ADDRESS, IDS, MARKS, WORK, Pair, at_least, check, run, run_once, wait_until

RIGHT, DETECTED, WRONG, LOST = "right", "detected", "wrong", "lost"


def tears(verb, piece, orders, every=3, pause=60):
    """A plan that tears verbs in each of these orders in turn."""
    return ",".join(f"{verb}:{piece}:{order}:{pause}:every {every}" for order in orders.split())


READS = f'{tears("read", 8, "up down ends", 9)},{tears("read", 64, "up down ends", 9)}'
WRITES = tears("write", 64, "up down", 4)
ANY = f'{tears("read", 8, "up down", 3)},{tears("write", 8, "up down", 3)}'
V100 = ("--value-bytes", 100)
V256 = ("--value-bytes", 256)
LINES = ("--value-bytes", 300)
FEW = ("--keys", 6, "--clients", 6, "--window", 2)

# Name of the run; options; what is torn; what is to be seen; the mark of who is wrong. By default a run has 20 keys, three clients with a
# window of four, and half gets; a server stops for a moment at some steps of a change, so that READs come in between.
TORN = (
    # READs: no protection is needed, or there is none.
    ("raw-read", (), READS, RIGHT, None),
    ("drtm-em", (), READS, RIGHT, None),  # stores nothing
    ("rfp", V256, f'{tears("read", 64, "up")},{WRITES}', RIGHT, None),
    ("rfp down", V256, tears("read", 64, "down"), WRONG, "R"),
    ("rfp-hybrid", V256, f'{tears("read", 64, "up")},{WRITES}', RIGHT, None),
    ("rfp-hybrid down", V256, tears("read", 64, "down"), WRONG, "R"),
    ("pilaf", V100 + ("--erases", 20), READS, DETECTED, None),
    ("pilaf-em", V100 + ("--erases", 20), READS, DETECTED, None),
    ("farm-em", V100 + ("--erases", 20), f'{READS},{WRITES}', DETECTED, None),
    ("farm-em as paper", V256 + ("--as-paper",), tears("read", 8, "up"), WRONG, "R"),
    ("farm-em-var", V100 + ("--erases", 20), f'{READS},{WRITES}', DETECTED, None),
    ("farm-em-var as paper", V256 + ("--as-paper",), tears("read", 8, "up"), WRONG, "R"),
    ("drtm lines", LINES + ("--erases", 20), tears("read", 64, "up down ends"), DETECTED, None),
    ("drtm lines as paper", LINES + ("--as-paper",), tears("read", 64, "up down"), WRONG, "line"),
    ("drtm parts of a line", FEW, tears("read", 8, "up", 1), WRONG, "line"),
    ("nessie", V256 + ("--erases", 20), tears("read", 8, "up down ends"), RIGHT, None),
    ("nessie delay 0", V256 + ("--reuse-delay", 0, "--spare-entries", 5), tears("read", 8, "up", 2), WRONG, "time"),
    ("nessie watermark up", V256 + ("--watermark", "--window", 1), tears("read", 64, "up", 2, "200:later"), RIGHT, None),
    ("nessie watermark down", V256 + ("--watermark", "--window", 1), tears("read", 64, "down", 2, "200:later"), WRONG, "R"),
    # WRITEs.
    ("reply", V256, WRITES, RIGHT, None),
    ("reply ends", V256, tears("write", 64, "ends"), WRONG, "W"),
    ("nessie-sd", V256, WRITES, RIGHT, None),
    ("nessie-sd ends", V256, tears("write", 64, "ends"), WRONG, "W"),
    ("rfp ends", V256, tears("write", 64, "ends"), WRONG, "W"),
    ("rfp-hybrid ends", V256, tears("write", 64, "ends"), WRONG, "W"),
    ("herd", V256, tears("write", 64, "up"), RIGHT, None),
    ("herd down", V256, tears("write", 64, "down"), WRONG, "W"),
    ("herd ends", V256, tears("write", 64, "ends"), WRONG, "W"),
    ("seq-rpc", (), tears("write", 8, "up ends"), RIGHT, None),  # nobody looks at what lies between the ends
    ("seq-rpc down", (), tears("write", 8, "down", 1), WRONG, "W"),
    ("farm-em ends", V256 + ("--ops", 500), tears("write", 64, "ends", 3, 400), WRONG, "W"),
    ("farm-em-var ends", V256 + ("--ops", 500), tears("write", 64, "ends"), WRONG, "W"),
    ("drtm written", LINES, tears("write", 64, "up down ends"), RIGHT, None),
    ("nessie written", V256 + ("--place", "server"), tears("write", 64, "up down ends"), RIGHT, None),
    ("egret", V256, f'{READS},{tears("write", 64, "up down ends", 4)}', RIGHT, None),  # noticed: prove.py, prove_lanes
    # Completions protect them; or there is nothing to be torn.
    ("memc large values", ("--value-bytes", 5000), f'{tears("read", 1024, "up down ends")},{tears("write", 1024, "up down ends")}', RIGHT, None),
    ("memc", (), ANY, RIGHT, None),
    ("pilaf-vo", (), ANY, RIGHT, None),
    ("seq-s0", (), ANY, RIGHT, None),
    ("seq-faa", (), ANY, RIGHT, None),
)
# A run in which no core looked in time is made again. All requests of seq-rpc are the same bytes, and half of one is whole where the
# slot held another: only the first of each slot can be wrong. Puts to farm's rings are wrong soon or for long not at all, as threads
# happen to run. Their runs are short, and many if need be.
MOST_RUNS = 60
SHORT = ("seq-rpc down", "farm-em ends", "farm-em-var ends")
NOT_TORN = ("memc", "pilaf-vo", "seq-s0", "seq-faa")  # runs that post no READ or WRITE that could be
USUAL = {"--keys": 20, "--clients": 3, "--window": 4, "--gets": 50, "--ops": 160, "--put-pause": 50}

# Verbs that vanish where nothing promises that they come: they are posted again, or given up.
LOSSES = (
    ("herd", "uc_write:every 40", DETECTED),
    ("herd answers", "ud_send:every 40", DETECTED),
    ("seq-rpc", "uc_write:every 40", DETECTED),
    ("farm-em", "uc_write:every 40", DETECTED),
    ("farm-em-var", "uc_write:every 40", DETECTED),
    ("pilaf-em", "ud_send:every 40", DETECTED),
    ("seq-s0", "ud_send_with_imm:every 40", LOST),
)


def usual(options):
    """The usual options, but for those that are given."""
    return list(itertools.chain(*((name, value) for name, value in USUAL.items() if name not in options))) + list(options)


def show(name, options, expected, mark, **plan):
    began = time.monotonic()
    until = {DETECTED: ("--until", "retries"), WRONG: ("--until", "wrong"), LOST: ("--until", "lost")}.get(expected, ())
    if name in SHORT:
        until = ()
    for _ in range(MOST_RUNS if name in SHORT else 1):
        one = run(name, *usual(options), *until, **plan)
        if expected != WRONG or one.answers["wrong"] > 0:
            break
    if expected == WRONG:
        if one.check_ended():
            check(f"{name}: wrong answers", one.answers["wrong"], at_least(1))
        carried = MARKS[name.split()[0]]._asdict()["as_paper" if {"--as-paper", "--watermark"} & set(options) else "default"]
        check(f"{name}: marks {carried}", mark in carried, True)
    elif one.check_right():
        check(f"{name}: answers", one.answers["ops"], at_least(USUAL["--ops"]))
        check(f"{name}: retries", one.answers["retries"], at_least(1 if expected == DETECTED else 0))
        check(f"{name}: lost", one.answers["lost"], at_least(1 if expected == LOST else 0))
    met = ", ".join(f"{one.answers[kind]} {kind}" for kind in ("ops", "retries", "lost", "wrong"))
    first = {each.get("first_wrong", "") for each in one.clients} - {""}
    print(f"{name}, {' '.join(plan.values())}: {met} {sorted(first)[:1] or ''}; {time.monotonic() - began:.1f} s", flush=True)
    return one


def torn():
    for name, options, plan, expected, mark in TORN:
        if name.split()[0] in IDS:
            one = show(name, options, expected, mark, EGRET_VERBS_TEAR=plan)
            check(f"{name}: torn", one.seen["torn"], 0 if name in NOT_TORN else at_least(1))


def lost():
    for name, plan, expected in LOSSES:
        if name.split()[0] in IDS:
            one = show(name, ("--put-pause", 0), expected, None, EGRET_VERBS_SWALLOW=plan)
            check(f"{name}: swallowed", one.seen["swallowed"], at_least(1))
            check(f"{name}: answered", one.answers["ops"] - one.answers["lost"], at_least(one.answers["ops"] / 2))


# A key that is moved behind a reader: what the reader says of it.
MOVED = (("pilaf", (), "hit"), ("pilaf as paper", ("--as-paper",), "miss"), ("pilaf-em", (), "hit"), ("pilaf-em as paper", ("--as-paper",), "miss"))


def moved_key():
    for name, options, expected in MOVED:
        if name.split()[0] not in IDS:
            continue
        one = run(name, "--scene", "moved-key", "--keys", 60, "--load", 0.88, "--clients", 2, "--window", 1, *options)
        if one.check_ended():
            said = {key: value for each in one.nodes for key, value in each.items() if key in ("get", "moving")}
            check(f"{name}, a key that is moved behind the reader", said, {"moving": "done", "get": expected})
            print(f"{name}: a key that is moved behind the reader is a {said.get('get')}", flush=True)


# A client that is killed when it has swapped: what another one is told afterwards.
HELD = (
    ("drtm", (), {"get": "lost", "stuck_get": 1, "put": "lost", "stuck": 2, "get_again": "lost"}),
    ("nessie", ("--place", "server"), {"get": "lost", "stuck_get": 1, "put": "done", "stuck": 1, "get_again": "hit"}),
)


def dies_holding():
    """drtm: the item is locked for ever. nessie: the entry is not valid for ever, until another puts the key."""
    for name, options, expected in HELD:
        if name not in IDS:
            continue
        marker = WORK / f"{name}.marker"
        for each in ("died", "done"):
            marker.with_suffix(f".{each}").unlink(missing_ok=True)
        marker = marker.with_suffix("")
        pair = Pair(name, "--scene", "dies-holding", "--hosts", 2, "--clients", 2, "--window", 1, "--keys", 20, "--marker", marker, *options)
        processes = [pair.connect("--marker", marker), pair.connect("--marker", marker)]
        ended = [pair.ended(each) for each in processes]
        pair.listening.communicate(timeout=60)
        check(f"{name}: one client is killed", sorted(each.status for each in ended), [-signal.SIGKILL, 1])
        said = {key: value for one in ended for each in one.nodes for key, value in each.items()}
        expected = {**expected, "put_other": "done", "get_other": "hit"}
        check(f"{name}: after a client died with the key", {key: said.get(key) for key in expected}, expected)
        print(f"{name}: a client that died left {said.get('stuck')} ops stuck", flush=True)


# One-sided: goes on while the server process stands still. Others come to rest.
ONE_SIDED = ("raw-read", "pilaf", "pilaf-em", "farm-em", "farm-em-var", "drtm-em", "drtm", "nessie", "seq-faa")
PUTS_TOO = ("drtm-em", "drtm", "nessie")
UNNOTICED = ("herd", "seq-rpc", "seq-s0")  # nothing tells them that the server is gone: lost
SLOW = ("--rate", 200, "--ops", 1_000_000, "--clients", 1, "--window", 4, "--keys", 1000)


def stands_still(name):
    """The server process stands still, goes on, and is killed."""
    progress = WORK / f"{name}.progress"
    progress.unlink(missing_ok=True)
    pair = Pair(name, *SLOW, "--gets", 50 if name in PUTS_TOO else 100, at=f"{ADDRESS}:{18600 + IDS.index(name)}")
    pair.connect("--progress", progress)

    def answers():
        return int.from_bytes(progress.read_bytes() if progress.exists() else b"", "little")

    def more(least, seconds=10):
        first = answers()
        wait_until(lambda: answers() - first >= least, seconds)
        return answers() - first

    check(f"{name}: answers before", more(30), at_least(30))
    pair.listening.send_signal(signal.SIGSTOP)
    time.sleep(0.15)  # what was under way comes to its end
    if name in ONE_SIDED:
        still = more(20)
        check(f"{name}: answers while the server stands still", still, at_least(20))
    else:
        still = more(1, 0.3)
        check(f"{name}: answers while the server stands still", still, 0)
    pair.listening.send_signal(signal.SIGCONT)
    check(f"{name}: answers after", more(20), at_least(20))
    dies(name, pair, "lost" if name in UNNOTICED else "failed", f"{still} answers while the server stood still; ")


def dies(name, pair, ends_as, before=""):
    """The server process is killed: every op that is begun ends, and none is answered wrongly."""
    killed = time.monotonic()
    pair.kill()
    one = pair.ended(pair.connected)
    check(f"{name}: after kill -9", (one.status, one.said), (1, "paradigms_life: the other side is gone"))
    check(f"{name}: wrong", one.answers["wrong"], 0)
    check(f"{name}: never answered", one.answers["unanswered"], 0)
    check(f"{name}: ops that are {ends_as}", one.answers[ends_as], at_least(1))
    print(f"{name}: {before}after kill -9 {one.answers[ends_as]} {ends_as}, the client ends after {time.monotonic() - killed:.1f} s", flush=True)


def dies_under_puts(name):
    """Those whose gets fail on RC and whose puts are lost on UC or UD."""
    progress = WORK / f"{name}.puts.progress"
    progress.unlink(missing_ok=True)
    pair = Pair(name, *SLOW, "--gets", 0, at=f"{ADDRESS}:{18650 + IDS.index(name)}", run="puts")
    pair.connect("--progress", progress)
    check(f"{name}: puts", wait_until(lambda: progress.exists() and int.from_bytes(progress.read_bytes(), "little") >= 20), True)
    dies(name, pair, "lost", "puts; ")


def wrong_token():
    pair = Pair("raw-read")
    connecting, listening = pair.ended(pair.connect(token="0" * 32)), pair.ended(pair.listening, pair.file)
    check("wrong token, connecting", (connecting.status, connecting.said), (1, "paradigms_life: refused by the listening side: wrong token"))
    check("wrong token, listening", listening.status, 1)
    check("wrong token, listening", listening.said, lambda said: re.fullmatch(r"paradigms_life: [\d.]+ is refused: wrong token", said))
    check("memory that the stranger could have reached", listening.seen["remote_readable"] + listening.seen["remote_writable"], 0)
    print("wrong token: refused on both sides")


def two_processes():
    pair = Pair("raw-read", "--ops", 200, "--clients", 1)
    pair.connect()
    for process, file, nodes in ((pair.connected, pair.connected_file, "clients"), (pair.listening, pair.file, "servers")):
        one = pair.ended(process, file)
        check(f"two processes, {nodes}", (one.status, one.said, len(getattr(one, nodes))), (0, "", 1))
        one.check_counters()
    print("two processes: ended as one does")


def nobody_listens():
    one = run_once("nobody", "--connect", f"{ADDRESS}:18599", "--token", "0")
    check("nobody listens", (one.status, one.said), (1, "paradigms_life: nobody listens there, or the listener has all its clients"))


def prove():
    torn()
    lost()
    moved_key()
    dies_holding()
    wrong_token()
    two_processes()
    nobody_listens()
    with concurrent.futures.ThreadPoolExecutor(3) as several:  # they mostly wait
        going = [several.submit(stands_still, name) for name in IDS]
        going += [several.submit(dies_under_puts, name) for name in ("farm-em", "pilaf-em") if name in IDS]
        for each in going:
            each.result()
