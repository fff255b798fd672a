#!/usr/bin/env python3
"""prove.py LIFE LIBRARY BENCH: every paradigm on real verbs, in a guest.

paradigms_life (LIFE) runs each id of the table under libegret_count_verbs.so (LIBRARY): every answer is judged, what the interposer
has counted must be what the fabrics say they have posted, and each op must have cost the verbs that its paper says; where their
number depends on where keys lie, those of a walk over the loaded store. Then faults.py: what tears, loses, stops and kills does to
each; and hosts.py: the documented commands of egret-bench (BENCH).

EGRET_PARADIGMS_OPS: ops of each id (2,000). EGRET_PARADIGMS_IDS: these ids only. EGRET_PARADIGMS_PARTS: of "counts faults hosts".
"""
import os, sys, time

from laboratory import IDS, KINDS, OPS, VERBS, at_least, check, is_within, run, total, wrong

LOST = 0.02  # of the ops on UC and UD: a guest that is held up for a tenth of a second loses them


# Section "counted verbs" of each paradigm, of gets that hit and of puts: (side, type and verb) -> how many. What is not named must be 0,
# but for RECVs. `a`: the answers' sums; `a["walked"]`: READs that the gets take by a walk over the loaded store.
def rpc(request, response):
    return lambda a: {("client", request): a["ops"] + a["retries"], ("server", response): a["ops"] + a["retries"]}


def datagram_rpc(request):
    """A request that is sent again may be answered twice, or once."""
    return lambda a: {("client", request): a["ops"] + a["retries"], ("server", "ud_send"): (a["ops"] - a["lost"], a["ops"] + a["retries"])}


def walked(a, again=0):
    """Within half a percent; `again`: READs that a retry may take."""
    return (0.995 * a["walked"], 1.005 * a["walked"] + again * a["retries"])


def farm(a):
    return {("client", "rc_read"): walked(a, 2), ("client", "uc_write"): (a["others"], a["others"] + a["retries"]),
            ("server", "uc_write"): (a["others"], a["others"] + a["retries"])}


COUNTS = {
    "raw-read": lambda a: {("client", "rc_read"): a["ops"]},
    "reply": rpc("rc_write", "rc_write"),
    "nessie-sd": rpc("rc_write", "rc_write"),
    "rfp": lambda a: {("client", "rc_write"): a["ops"], ("client", "rc_read"): a["ops"] + a["vain"]},
    "memc": rpc("rc_send", "rc_send"),
    "pilaf-vo": rpc("rc_send", "rc_send"),
    "herd": datagram_rpc("uc_write"),
    "seq-rpc": datagram_rpc("uc_write"),
    # By READs as many as a probe takes; between the least and the most of spec and store.
    "rfp-hybrid": lambda a: {("client", "rc_write"): a["ops"], ("client", "rc_read"): (a["reads"], a["reads"] + a["vain"]),
                             ("server", "rc_write"): (0, a["ops"] - a["reads"])},
    "pilaf": lambda a: {("client", "rc_read"): walked(a, 6), ("client", "rc_send"): a["others"], ("server", "rc_send"): a["others"]},
    "pilaf-em": lambda a: {("client", "rc_read"): walked(a, 6), ("client", "ud_send"): (a["others"], a["others"] + a["retries"]),
                           ("server", "ud_send"): (a["others"], a["others"] + a["retries"])},
    "farm-em": farm,
    "farm-em-var": farm,
    "drtm-em": lambda a: {("client", "rc_read"): walked(a), ("client", "rc_cas"): (2 * a["others"], 2 * a["others"] + a["retries"])},
    "drtm": lambda a: {("client", "rc_read"): walked(a, 2), ("client", "rc_write"): a["others"],
                       ("client", "rc_cas"): (2 * a["others"], 2 * a["others"] + a["retries"])},
    # A put READs three words and entries that are not excluded, and swaps a word; more where two meet.
    "nessie": lambda a: {("client", "rc_read"): (0.995 * a["walked"] + 3 * a["others"],
                                                 1.005 * a["walked"] + 4 * a["others"] + 8 * a["retries"]),
                         ("client", "rc_cas"): (a["others"], 2 * a["others"] + 2 * a["retries"]), ("client", "rc_write"): (0, a["others"])},
    # A message holds ops that were begun together. While a server is slow, replies are asked for by a WRITE, and a READ may be under way.
    "egret": lambda a: {("client", "rc_write"): a["messages"] + a["wants"],
                        ("client", "rc_read"): (a["reads"] + a["vain"], a["messages"] + a["vain"] + a["retries"]),
                        ("server", "rc_write"): (a["messages"] - a["reads"], a["messages"])},
    # One that is late is given up, and not asked for again.
    "seq-s0": lambda a: {("client", "ud_send"): a["ops"], ("server", "ud_send"): (a["ops"] - a["lost"], a["ops"])},
    "seq-faa": lambda a: {("client", "rc_faa"): a["ops"]},
}


def counted(one, expected):
    # After a tenth of a second an RPC client asks by a WRITE of nothing whether the server is still there.
    one.of_clients["rc_write"] -= one.seen["empty_write"]
    for side, counts in (("client", one.of_clients), ("server", one.of_servers)):
        for kind in KINDS:
            for verb in VERBS[:-1]:
                name = f"{kind}_{verb}"
                wanted = expected.get((side, name), 0)
                check(f"{one.name}: {name} of the {side}s (expected {wanted})", counts[name], is_within(wanted))


def prove(name):
    began = time.monotonic()
    one = run(name, "--keys", 1000, "--gets", 50, "--ops", OPS, "--server-cores", 2, "--clients", 2, "--window", 4)
    if not one.check_right():
        return
    answers = one.answers
    check(f"{name}: answers", answers["ops"], OPS)
    check(f"{name}: lost", answers["lost"], lambda lost: lost <= LOST * OPS)
    one.check_counters()
    answers["walked"] = one.reads_per_get() * answers["gets"]
    if name in COUNTS:
        counted(one, COUNTS[name](answers))
    else:
        check(f"{name}: a row of COUNTS", None, "its verbs")
    used = {verb: count for verb, count in (total([one.of_clients, one.of_servers])).items() if count and verb[:3] in ("rc_", "uc_", "ud_")}
    print(f"{name}: {answers['ops']} ops, {answers['retries']} retries, {answers['vain']} in vain, {answers['lost']} lost; {used}; "
          f"{time.monotonic() - began:.1f} s", flush=True)


# READs of gets alone, where keys lie as they were loaded: (name of the run, options, the paper's figure or None, READs that are not
# of that figure).
WALKED = (
    ("pilaf L=.75", ("--load", 0.75), None),
    ("pilaf-em L=.75", ("--load", 0.75), 1 + 1.6),  # paper 000, section 3.3: p
    ("pilaf-em L=.65", ("--load", 0.65), 1 + 1.45),
    ("nessie", (), None),
    ("nessie own keys", ("--locality", 100), 1.10),  # paper 003: i at L=.2; no entry is READ
    ("drtm no places", ("--no-cached-places",), None),
)


def prove_walked():
    """Half a percent from the walk, and the walk five percent from the paper's table."""
    for name, options, of_paper in WALKED:
        if name.split()[0] not in IDS:
            continue
        one = run(name, "--keys", 1000, "--gets", 100, "--ops", OPS, "--server-cores", 2, "--clients", 2, "--window", 4, *options)
        if not one.check_right():
            continue
        one.check_counters()
        reads, gets = one.of_clients["rc_read"], one.answers["gets"]
        check(f"{name}: gets walked", one.walked["walked_gets"], gets)
        check(f"{name}: READs by a walk {one.walked['walked_steps']}", reads / one.walked["walked_steps"], is_within((0.995, 1.005)))
        if of_paper:
            check(f"{name}: READs of a get, in the paper {of_paper}", one.reads_per_get(), is_within((0.95 * of_paper, 1.05 * of_paper)))
        print(f"{name}: {reads / gets:.3f} READs of a get, {one.reads_per_get():.3f} by the walk", flush=True)


# After every key (or every third) was erased: verbs of an erase, then READs of a miss beyond those of the walk. As the paper has
# it, pilaf does not look again, and farm READs once.
MISSES = (
    ("pilaf all erased", ("--holes", 1), {"rc_send": 1}, 3),
    ("pilaf every third erased", ("--holes", 3), {"rc_send": 1}, 3),
    ("pilaf as paper, every third erased", ("--holes", 3, "--as-paper"), {"rc_send": 1}, 0),
    ("pilaf-em every third erased", ("--holes", 3), {"ud_send": 1}, 3),
    ("farm-em every third erased", ("--holes", 3), {"uc_write": 1}, 1),
    ("farm-em as paper, every third erased", ("--holes", 3, "--as-paper"), {"uc_write": 1}, 0),
    ("farm-em-var every third erased", ("--holes", 3), {"uc_write": 1}, 0),
    ("nessie all erased", ("--holes", 1), {"rc_read": (2, 3), "rc_cas": 1}, None),
)
NESSIE_MISS = 4  # two words, and both again


def prove_misses():
    keys = 300
    for name, options, erase, more in MISSES:
        if name.split()[0] not in IDS:
            continue
        one = run(name, "--keys", keys, "--gets", 100, "--ops", 600, "--clients", 2, "--window", 4, *options)
        if not one.check_right():
            continue
        holes = (keys + options[1] - 1) // options[1]
        of_holes, reads = total(each["of_holes"] for each in one.clients), one.of_clients["rc_read"]
        for verb, each in erase.items():
            least, most = each if isinstance(each, tuple) else (each, each)
            check(f"{name}: {verb} of {holes} erases", of_holes[verb], is_within((least * holes, most * holes)))
        misses = one.answers["misses"]
        check(f"{name}: misses", misses, at_least(100))
        expected = NESSIE_MISS * misses if more is None else one.walked["walked_steps"] + more * misses
        check(f"{name}: READs of {one.answers['hits']} hits and {misses} misses", reads / expected, is_within((0.995, 1.005)))
        print(f"{name}: {misses} misses, {reads} READs", flush=True)


def prove_lanes():
    """egret where it only fetches: a message is a WRITE and a READ, beside those in vain; the server posts nothing. Torn both ways."""
    # Four values of 40 bytes come with one READ of 256. READs meet a result that is being published only where the server's thread has to wait for a processor: six clients.
    for clients, plan in ((2, ""), (6, "read:8:down:100"), (2, "write:64:up:200:every 7")):
        ops = OPS // 4 // clients * clients
        said = f"egret, fetching, torn {plan or 'nowhere'}"
        one = run("egret", "--ops", ops, "--clients", clients, "--window", 4, "--keys", 20, "--value-bytes", 40, "--gets", 50,
                  "--hybrid-vain", 1000, *(("--until", "retries") if plan.startswith("read") else ()),
                  **({"EGRET_VERBS_TEAR": plan} if plan else {}))
        if not one.check_right():
            continue
        answers = one.answers
        check(f"{said}: answers", answers["ops"], at_least(ops))
        check(f"{said}: lost", answers["lost"], 0)
        noticed = {"read": answers["retries"], "write": one.walked["torn_requests"]}
        for verb in filter(plan.startswith, noticed):
            check(f"{said}: torn", one.seen["torn"], at_least(1))
            check(f"{said}: noticed", noticed[verb], at_least(1))
        check(f"{said}: WRITEs", one.of_clients["rc_write"] - one.seen["empty_write"], answers["messages"])
        check(f"{said}: READs", one.of_clients["rc_read"], answers["messages"] + answers["vain"] + answers["retries"])
        check(f"{said}: of the server", one.of_servers["rc_write"], 0)
        print(f"{said}: {answers['messages']} messages of {answers['ops']} ops, {answers['vain']} in vain; noticed {noticed}", flush=True)


PARTS = os.environ.get("EGRET_PARADIGMS_PARTS", "counts faults hosts").split()
began = time.monotonic()
if "counts" in PARTS:
    for each in IDS:
        prove(each)
    prove_walked()
    prove_misses()
    if "egret" in IDS:
        prove_lanes()
if "faults" in PARTS:
    import faults
    faults.prove()
if "hosts" in PARTS:
    import hosts
    hosts.prove()
print(f"{len(IDS)} paradigms, {time.monotonic() - began:.0f} s; {len(wrong)} wrong" + "".join(f"\n  {each}" for each in wrong))
sys.exit(1 if wrong else 0)
