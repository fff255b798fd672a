#!/usr/bin/env python3
"""prove.py LIBRARY HANDSHAKES EGRET_BENCH: in the guest; what the library counts of a program is what the program counts of itself.

The handshakes print how many messages, fetches, rings, wants and delivers there were; each is a known number of verbs.
egret-bench, which connects by rdma_cm, prints how many WRITEs and READs it posted. Then calls are made to fail, and the program
must notice each of them, and no call that the plan does not name.
"""
import os, pathlib, re, subprocess, sys, tempfile

import read_counts

# A guest may stand still for seconds on a machine that is busy. A result that is late is not a lost one here: what is proved is the counts.
PATIENCE_MS, LIMIT = 60_000, 240
WINDOW = 4  # slots of a lane, if nothing else is asked for

library, handshakes, bench = sys.argv[1:4]
folder = pathlib.Path(tempfile.mkdtemp())
wrong = []


def check(what, seen, expected):
    print(f"  {'' if seen == expected else 'WRONG '}{what}: {seen}" + ("" if seen == expected else f", expected {expected}"))
    if seen != expected:
        wrong.append(what)


def run(*arguments, fail="", program=handshakes):
    """Runs the program under the library: its result and its counts, if it came to any."""
    file = folder / f"counts{len(list(folder.iterdir()))}"
    environment = dict(os.environ, LD_PRELOAD=library, EGRET_COUNT_VERBS_FILE=str(file), EGRET_VERBS_FAIL=fail)
    result = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, timeout=LIMIT)
    print(f"--- {' '.join(arguments)}{fail and ', failing ' + fail}\n{result.stdout}{result.stderr}", end="")
    return result, file


def count_everything(mode, sessions, partitions):
    result, file = run("--mode", mode, "--messages", "400", "--sessions", str(sessions), "--partitions", str(partitions),
                       "--window", str(WINDOW), "--wait-ms", str(PATIENCE_MS), "--seed", os.environ.get("EGRET_SEED", "1"))
    check("status", result.returncode, 0)
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
    check("SENDs, others, unseen", (seen["send"], seen["other"], seen["uncounted"], seen["failed_on_purpose"]), (0, 0, 0, 0))
    listed = read_counts.registrations(file)
    check("bytes listed", sum(each["length"] for each in listed), seen["registered_bytes"])
    check("states listed", {each["state"] for each in listed}, {"deregistered"})


def count_bench():
    pairs = 3  # the control connection's, and one for each of two threads
    result, file = run("verbs", "--loop", "10.9.0.1:18515", "--threads", "1,2", "--sizes", "8,1024", "--fetch-sizes", "256",
                       "--value-sizes", "32,512", "--depth", "8", "--duration", "0.05", program=bench)
    check("status", result.returncode, 0)
    own = re.search(r"(\d+) WRITEs and (\d+) READs posted, 0 wrong bytes", result.stdout)
    seen = read_counts.snapshot(file)
    check("WRITEs and READs", (seen["write"], seen["read"]), (int(own[1]), int(own[2])))
    check("READs under way reach the depth", seen["reads_under_way"], 8)
    check("lists are posted by one call", seen["doorbells"] < seen["write"] + seen["read"], True)
    check("all is signalled but what others stand for", seen["send_completions"], seen["signalled"])
    check("queue pairs, both ends", (seen["queue_pairs"], seen["queue_pairs_destroyed"]), (2 * pairs,) * 2)
    check("messages, local and target memory, both ends", (seen["registrations"], seen["deregistrations"]), (6, 6))
    check("unseen", (seen["uncounted"], seen["relaxed_ordering"], seen["failed_on_purpose"]), (0, 0, 0))


def fail(plan, says, **counts):
    result, file = run("--messages", "50", "--wait-ms", str(PATIENCE_MS), fail=plan)
    check("the program gives up", result.returncode, 1)
    check(f"it says '{says}'", says in result.stderr, True)
    seen = read_counts.snapshot(file)
    check("failed on purpose", seen["failed_on_purpose"], 1)
    for name, value in counts.items():
        check(name, seen[name], value)
    return file


count_everything("mix", sessions=2, partitions=3)
count_everything("fetch", sessions=1, partitions=2)
count_bench()
failed = fail("reg_mr:3", "cannot register", registrations=2)
check("states listed", [each["state"] for each in read_counts.registrations(failed)], ["registered"] * 2 + ["failed"])
fail("create_qp:2", "no queue pair", queue_pairs=1)
fail("post_send:9", "ibv_post_send")
fail("completion:5", "completion with")
result, _ = run("verbs", "--loop", "10.9.0.1:18515", "--duration", "0.01", fail="completion:20", program=bench)
check("egret-bench notices", (result.returncode, "a verb failed" in result.stderr), (1, True))
# Of librdmacm, and what it needs of libibverbs to listen. Its other calls fail in the daemons (../daemons/test_verbs_fail.py).
for plan, says in (("open_device:1", "cannot listen"), ("cm_create_id:1+", "cannot use rdma_cm"), ("cm_bind_addr:1+", "cannot listen"),
                   ("cm_listen:1", "cannot listen")):
    result, file = run("verbs", "--loop", "10.9.0.1:18515", "--duration", "0.01", fail=plan, program=bench)
    check(f"egret-bench says '{says}'", (result.returncode, says in result.stderr), (1, True))
    check("failed on purpose", read_counts.snapshot(file)["failed_on_purpose"] > 0, True)
result, _ = run("--messages", "50", "--wait-ms", str(PATIENCE_MS), fail="reg_mr:100000")
check("a plan that is never reached", result.returncode, 0)
for plan in ("reg_mr", "reg_mr:0", "reg_mr:x", "reg_mr:3-2", "reg_mr:3-", "no_such_call:1"):
    result, _ = run("--messages", "1", fail=plan)
    check("a plan that cannot be read ends the process", (result.returncode, "EGRET_VERBS_FAIL" in result.stderr), (70, True))
print(f"{len(wrong)} wrong" + "".join(f"\n  {each}" for each in wrong))
sys.exit(1 if wrong else 0)
