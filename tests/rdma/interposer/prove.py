#!/usr/bin/env python3
"""prove.py LIBRARY HANDSHAKES EGRET_BENCH WATCH_PIECES: in the guest; what the library counts of a program is what the program counts of itself.

The handshakes print how many messages, fetches, rings, wants and delivers there were; each is a known number of verbs.
egret-bench, which connects by rdma_cm, prints how many WRITEs and READs it posted. Then calls are made to fail, and the program
must notice each of them, and no call that the plan does not name. Verbs are torn: watch_pieces sees in which order their lines
come and go, the others are right all the same and are counted as before. Verbs are swallowed: what they bring is missed.
"""
import os, pathlib, re, subprocess, sys, tempfile

import read_counts

# A guest may stand still for seconds on a machine that is busy. A result that is late is not a lost one here: what is proved is the counts.
PATIENCE_MS, LIMIT = 60_000, 240
WINDOW = 4  # slots of a lane, if nothing else is asked for

library, handshakes, bench, watch_pieces = sys.argv[1:5]
folder = pathlib.Path(tempfile.mkdtemp())
wrong = []


def check(what, seen, expected):
    print(f"  {'' if seen == expected else 'WRONG '}{what}: {seen}" + ("" if seen == expected else f", expected {expected}"))
    if seen != expected:
        wrong.append(what)


def run(*arguments, fail="", hide="", tear="", swallow="", withhold="", spurious="", program=handshakes):
    """Runs the program under the library: its result and its counts, if it came to any."""
    file = folder / f"counts{len(list(folder.iterdir()))}"
    environment = dict(os.environ, LD_PRELOAD=library, EGRET_COUNT_VERBS_FILE=str(file), EGRET_VERBS_FAIL=fail, EGRET_VERBS_HIDE=hide,
                       EGRET_VERBS_TEAR=tear, EGRET_VERBS_SWALLOW=swallow, EGRET_VERBS_WITHHOLD=withhold, EGRET_VERBS_SPURIOUS=spurious)
    result = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, timeout=LIMIT)
    print(f"--- {' '.join(arguments)}{fail and ', failing ' + fail}{hide and ', without ' + hide}{tear and ', torn ' + tear}{swallow and ', swallowed ' + swallow}{withhold and ', withheld ' + withhold}{spurious and ', spurious ' + spurious}\n{result.stdout}{result.stderr}", end="")
    return result, file


def seen_torn(counts):
    """Whether verbs have been torn; nothing else may be in pieces."""
    check("pieces, if verbs are torn", counts["pieces"] > 0, counts["torn"] > 0)
    return counts["torn"] > 0


def count_everything(mode, sessions, partitions, tear="", withhold=""):
    result, file = run("--mode", mode, "--messages", "400", "--sessions", str(sessions), "--partitions", str(partitions),
                       "--window", str(WINDOW), "--wait-ms", str(PATIENCE_MS), "--seed", os.environ.get("EGRET_SEED", "1"), tear=tear,
                       withhold=withhold)
    check("status", result.returncode, 0)
    check("torn, if that is planned", seen_torn(read_counts.snapshot(file)), tear != "")
    own = {name: int(value) for name, value in
           re.findall(r"(fetches|rings|wants|delivers) (\d+)", result.stdout)}
    messages = int(re.search(r"(\d+) messages", result.stdout)[1])
    seen = read_counts.snapshot(file)
    check("READs are the fetches", seen["read"], own["fetches"])
    check("WRITEs with immediate are rings and delivers", seen["write_with_imm"], own["rings"] + own["delivers"])
    check("only wants are inline", seen["inline"], own["wants"])
    # A request goes out in one WRITE or, now and then, in two.
    check("WRITEs are requests and wants", messages <= seen["write"] - own["wants"] <= 2 * messages, True)
    check("a call for each verb", seen["doorbells"], seen["write"] + seen["write_with_imm"] + seen["read"])
    # The last ones may come when their reader has gone: of each slot a deliver and a ring.
    unread = seen["write_with_imm"] - seen["recv_completions"]
    check("each immediate takes a RECV", 0 <= unread <= 2 * sessions * partitions * WINDOW, True)
    taken, late = (int(re.search(pattern, result.stdout)[1]) for pattern in (r"(\d+) by deliver\b", r"late (\d+)"))
    check("each deliver that the clients saw is counted", seen["recv_completions"] >= taken + late, True)
    check("a queue pair for each end", (seen["queue_pairs"], seen["queue_pairs_destroyed"]), (2 * sessions,) * 2)
    check("five memories a session, all let go", (seen["registrations"], seen["deregistrations"]), (5 * sessions,) * 2)
    check("rights", (seen["remote_writable"], seen["remote_readable"], seen["relaxed_ordering"]), (2 * sessions, sessions, 0))
    # A fetch reads one slot of each lane that waits, and waits for all of them.
    check("READs under way reach the lanes", seen["reads_under_way"], partitions)
    check("by pair type", (seen["rc_write"], seen["rc_write_with_imm"], seen["rc_read"], seen["rc_recv"]),
          tuple(seen[name] for name in ("write", "write_with_imm", "read", "recv")))
    check("SENDs, atomics, others, unseen", (seen["send"], seen["cas"] + seen["faa"] + seen["send_with_imm"], seen["other"], seen["uncounted"], seen["failed_on_purpose"]), (0,) * 5)
    listed = read_counts.registrations(file)
    check("bytes listed", sum(each["length"] for each in listed), seen["registered_bytes"])
    check("states listed", {each["state"] for each in listed}, {"deregistered"})


SWEEP = ("verbs", "--loop", "10.9.0.1:18515", "--threads", "1,2", "--sizes", "8,1024", "--fetch-sizes", "256", "--value-sizes", "32,512",
         "--depth", "8", "--duration", "0.05", "--sweep", "1,4")
SHORT = ("verbs", "--loop", "10.9.0.1:18515", "--threads", "1", "--sizes", "8", "--fetch-sizes", "256", "--value-sizes", "32", "--duration", "0.01", "--sweep", "1")
POSTED = re.compile(r"(\d+) WRITEs, (\d+) READs, (\d+) FETCH_ADDs, (\d+) COMPARE_SWAPs and (\d+) UD SENDs posted, 0 wrong bytes")
OF_TYPES = ("write", "read", "faa", "cas", "send_with_imm")


def count_bench(tear=""):
    by_cm = 3  # the control connection's pair, and one for each of two threads
    by_hand = 2 + 4 + 4  # of type UD for each thread; of the sweep RC and UD
    result, file = run(*SWEEP, program=bench, tear=tear)
    check("status", result.returncode, 0)
    check("torn, if that is planned", seen_torn(read_counts.snapshot(file)), tear != "")
    own = tuple(map(int, POSTED.search(result.stdout).groups()))
    seen = read_counts.snapshot(file)
    check("WRITEs, READs, FETCH_ADDs, COMPARE_SWAPs, SENDs with immediate", tuple(seen[name] for name in OF_TYPES), own)
    check("there are some of each", all(own), True)
    check("all but SENDs on RC pairs", tuple(seen[f"rc_{name}"] for name in OF_TYPES), (*own[:4], 0))
    check("nothing but SENDs on UD pairs", tuple(seen[f"ud_{name}"] for name in OF_TYPES), (0, 0, 0, 0, own[4]))
    check("SENDs without are the control connection's", (seen["send"] > 0, seen["ud_send"]), (True, 0))
    check("RECVs by pair type", (seen["rc_recv"] + seen["ud_recv"], seen["ud_recv"] > 0), (seen["recv"], True))
    check("nothing on UC pairs", sum(value for name, value in seen.items() if name.startswith("uc_")), 0)
    check("no SEND arrives twice", seen["recv_completions"] <= own[4] + seen["send"], True)
    check("READs and atomics under way reach the depth", seen["reads_under_way"], 8)
    check("lists are posted by one call", seen["doorbells"] < sum(own) + seen["send"], True)
    check("all is signalled but what others stand for", seen["send_completions"], seen["signalled"])
    # A client that comes before its listener makes the control connection's pair and memory once more.
    again = 1 if seen["queue_pairs"] > 2 * (by_cm + by_hand) else 0
    check("queue pairs, both ends", (seen["queue_pairs"], seen["queue_pairs_destroyed"]), (2 * (by_cm + by_hand) + again,) * 2)
    check("messages, local and target memory of four sets, both ends", (seen["registrations"], seen["deregistrations"]), (18 + again,) * 2)
    check("unseen", (seen["uncounted"], seen["other"], seen["relaxed_ordering"], seen["failed_on_purpose"]), (0, 0, 0, 0))
    atomic = [each for each in read_counts.registrations(file) if "remote atomic" in each["rights"]]
    check("memory for atomics: the targets", len(atomic), 8)


def count_bench_without(hide, lines, posted):
    """A device that lacks something: a line that says so, and nothing of it is posted."""
    result, file = run(*SWEEP, hide=hide, program=bench)
    check("status", result.returncode, 0)
    for line in lines:
        check(f"it says '{line}'", line in result.stdout, True)
    check("no cell is empty", re.search(r"\| - \|", result.stdout), None)
    seen = read_counts.snapshot(file)
    check("FETCH_ADDs, COMPARE_SWAPs, UD SENDs", (seen["faa"] > 0, seen["cas"] > 0, seen["ud_send_with_imm"] > 0), posted)
    atomic = [each for each in read_counts.registrations(file) if "remote atomic" in each["rights"]]
    check("memory for atomics, if the device has them", len(atomic) > 0, posted[0])


def fail(plan, says, **counts):
    result, file = run("--messages", "50", "--wait-ms", str(PATIENCE_MS), fail=plan)
    check("the program gives up", result.returncode, 1)
    check(f"it says '{says}'", says in result.stderr, True)
    seen = read_counts.snapshot(file)
    check("failed on purpose", seen["failed_on_purpose"], 1)
    for name, value in counts.items():
        check(name, seen[name], value)
    return file


def watch(plan, read, write, length=512, pieces=(8, 8)):
    """The order in which the lines of a READ and of a WRITE are seen; how many verbs and pieces there were."""
    result, file = run(str(length), tear=plan, program=watch_pieces)
    check("status", result.returncode, 0)
    lines = result.stdout.splitlines()
    check("the lines of a READ", lines[0], "read " + read)
    check("the lines of a WRITE", lines[1], "write " + write)
    seen = read_counts.snapshot(file)
    check("every verb is torn", seen["torn"], seen["read"] + seen["write"])
    check("pieces", seen["pieces"], pieces[0] * seen["read"] + pieces[1] * seen["write"])
    check("a completion for each READ", (seen["send_completions"], seen["signalled"]), (seen["read"],) * 2)
    check("a call for each verb", seen["doorbells"], seen["read"] + seen["write"])


def watch_whole():
    result, file = run("512", program=watch_pieces)
    check("status", result.returncode, 0)
    check("without a plan the lines of a READ come together", "=" in result.stdout.splitlines()[0], True)
    check("nothing is torn", seen_torn(read_counts.snapshot(file)), False)


count_everything("mix", sessions=2, partitions=3)
count_everything("fetch", sessions=1, partitions=2)
count_bench()
count_bench_without("atomics", ["| not available: the client's device has no atomics | n/a |", "Atomics not available: "], (False, False, True))
count_bench_without("ud", ["| not available: cannot create UD queue pair 1: ", "UD SEND not available: "], (True, True, False))
failed = fail("reg_mr:3", "cannot register", registrations=2)
check("states listed", [each["state"] for each in read_counts.registrations(failed)], ["registered"] * 2 + ["failed"])
fail("create_qp:2", "no queue pair", queue_pairs=1)
fail("post_send:9", "ibv_post_send")
fail("completion:5", "completion with")
result, _ = run("verbs", "--loop", "10.9.0.1:18515", "--duration", "0.01", fail="completion:20", program=bench)
check("egret-bench notices", (result.returncode, "a verb failed" in result.stderr), (1, True))
# What must come back, and what must arrive, is compared: one atomic that does more than it was told, SENDs that are not what they say.
for plan in ("change_atomic:1", "change_atomic:300", "change_send:1+"):
    result, file = run(*SWEEP, fail=plan, program=bench)
    check("egret-bench sees wrong bytes", (result.returncode, "wrong bytes" in result.stderr), (1, True))
    check("failed on purpose", read_counts.snapshot(file)["failed_on_purpose"] > 0, True)
# Of librdmacm, and what it needs of libibverbs to listen. Its other calls fail in the daemons (../daemons/test_verbs_fail.py).
for plan, says in (("open_device:1+", "cannot listen"), ("cm_create_id:1+", "cannot use rdma_cm"), ("cm_bind_addr:1+", "cannot listen"),
                   ("cm_listen:1", "cannot listen")):
    result, file = run("verbs", "--loop", "10.9.0.1:18515", "--duration", "0.01", fail=plan, program=bench)
    check(f"egret-bench says '{says}'", (result.returncode, says in result.stderr), (1, True))
    check("failed on purpose", read_counts.snapshot(file)["failed_on_purpose"] > 0, True)
result, _ = run("--messages", "50", "--wait-ms", str(PATIENCE_MS), fail="reg_mr:100000")
check("a plan that is never reached", result.returncode, 0)
for plan in ("reg_mr", "reg_mr:0", "reg_mr:x", "reg_mr:3-2", "reg_mr:3-", "no_such_call:1"):
    result, _ = run("--messages", "1", fail=plan)
    check("a plan that cannot be read ends the process", (result.returncode, "EGRET_VERBS_FAIL" in result.stderr), (70, True))
watch_whole()
for name, order in (("up", "0 1 2 3 4 5 6 7"), ("down", "7 6 5 4 3 2 1 0"), ("ends", "0 7 1 2 3 4 5 6")):
    watch(f"read:64:{name}:300,write:64:{name}:300", order, order)
result, _ = run("512", tear="read:64:shuffled:300,write:64:shuffled:300", program=watch_pieces)
for line in result.stdout.splitlines():
    shuffled = [int(number) for number in line.split()[1:] if number.isdigit()]
    check("the first line at first, the others in another order", (shuffled[:1], sorted(shuffled), shuffled == sorted(shuffled)), ([0], list(range(8)), False))
watch("read:64:down:300,write:64:up:300", "7 6 5 4 3 2 1 0", "0 1 2 3 4 5 6 7")
watch("read:8:down:100,write:8:down:100", "1 0", "1 0", length=128, pieces=(16, 16))
watch("read:8:up:100,write:64:down:300", "0 1 2 3 4 5 6 7", "7 6 5 4 3 2 1 0", pieces=(32, 8))  # 64 would be too many
watch("read:64:down:300:later,write:64:up:300", "7 6 5 4 3 2 1 0", "0 1 2 3 4 5 6 7")
result, _ = run("512", "beyond", tear="read:64:up:100", program=watch_pieces)
check("a piece that fails is the verb's failure", (result.returncode, "completion with remote access error" in result.stderr), (1, True))
count_everything("mix", sessions=2, partitions=3, withhold="5:every 2")
check("completions are withheld", read_counts.snapshot(sorted(folder.iterdir(), key=os.path.getmtime)[-1])["withheld"] > 0, True)
count_everything("mix", sessions=2, partitions=3, tear="read:64:ends:20:later:every 3,write:64:down:20:every 3")
count_bench(tear="read:64:ends:5:every 7,write:64:down:5:every 7")
result, file = run("--messages", "300", "--wait-ms", "3000", swallow="write:every 50")
check("a request that was swallowed is missed", (result.returncode != 0, "LOST" in result.stdout), (True, True))
check("swallowed", read_counts.snapshot(file)["swallowed"] > 0, True)
result, file = run(*SHORT, swallow="write:1+", program=bench)
check("WRITEs that were swallowed are wrong bytes", (result.returncode, "wrong bytes" in result.stderr), (1, True))
result, file = run(*SHORT, swallow="ud_send_with_imm:every 2", program=bench)
seen = read_counts.snapshot(file)
check("half of the SENDs are swallowed, with all completions", (seen["swallowed"], seen["send_completions"]), (seen["ud_send_with_imm"] // 2, seen["signalled"]))
check("the other half arrives at most", 0 < seen["recv_completions"] <= seen["ud_send_with_imm"] - seen["swallowed"] + seen["send"], True)
for name, plans in (("TEAR", ("read", "send:64:up:1", "read:63:up:1", "read:64:out:1", "read:64:up:x", "read:64:up:1:every 0", "read:64:up:1:often", "write:64:up:1:later")),
                    ("WITHHOLD", ("0", "x", "3:often", "3:every 0")), ("SPURIOUS", ("3", "every 0")),
                    ("SWALLOW", ("write", "read:1", "xc_write:1", "write:0", "write:3-2", "write:every 0"))):
    for plan in plans:
        result, _ = run("--messages", "1", **{name.lower(): plan})
        check("a plan that cannot be read ends the process", (result.returncode, f"EGRET_VERBS_{name}" in result.stderr), (70, True))
print(f"{len(wrong)} wrong" + "".join(f"\n  {each}" for each in wrong))
sys.exit(1 if wrong else 0)
