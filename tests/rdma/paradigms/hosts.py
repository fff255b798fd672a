"""The documented commands of `egret-bench paradigms`, as they are written in docs/benchmarks/paradigms.md: two processes that find each
other, the token, --loop, JSON, pictures, and what a device lacks."""
import json, os, pathlib, re, shutil, subprocess

from laboratory import ADDRESS, BENCH, IDS, LIBRARY, WORK, at_least, check

AT = f"{ADDRESS}:18520"  # the documents' port
SHORT = ("--keys", "500", "--ops", "400", "--rounds", "1")
SILENT = "egret-bench paradigms: refused by the listening side: wrong token"


def environment(**more):
    return {**os.environ, "LD_PRELOAD": str(LIBRARY), "EGRET_COUNT_VERBS_FILE": str(WORK / "hosts.counts"), "EGRET_VERBS_YIELD": "1", **more}


def start(*arguments):
    return subprocess.Popen([BENCH, "paradigms", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**environment(), "EGRET_COUNT_VERBS_FILE": ""})


def listen(*arguments):
    """The process; what it warns of; the command that it shows for the other side."""
    process = start("--listen", AT, *arguments)
    warning, shown = process.stderr.readline(), process.stderr.readline()
    check("--listen says that it opens memory", "whoever connects with the token can read and write the memory" in warning, True)
    found = re.fullmatch(rf"on the other side: (--connect {re.escape(AT)} --token (\w+))\n", shown)
    check("--listen shows a token of 128 bits and the other side's options", found is not None and len(found[2]) == 32, True)
    return process, found[1].split()


def wrong_tokens():
    """None, and a wrong one."""
    for token in ((), ("--token", "0" * 32)):
        listening, _ = listen(*SHORT)
        connecting = start("--connect", AT, *token)
        _, said = connecting.communicate(timeout=60)
        check(f"--connect {' '.join(token)}", (connecting.returncode, said.strip()), (1, SILENT))
        out, said = listening.communicate(timeout=60)
        check("the listening side", (listening.returncode, out), (1, ""))
        check("the listening side says whom it refused", said, lambda text: re.fullmatch(rf"egret-bench paradigms: {ADDRESS} is refused: wrong token\n", text))


def two_processes(folder):
    """Both print the same report; the listening one decides."""
    ids = [each for each in ("raw-read", "rfp", "pilaf", "herd", "drtm") if each in IDS]
    listening, connect = listen(*SHORT, "--only", ",".join(ids), "--clients", "2", "--json", "--svg", str(folder))
    connecting = start(*connect)
    there, said_there = connecting.communicate(timeout=120)
    here, said_here = listening.communicate(timeout=120)
    check("two processes", (connecting.returncode, listening.returncode), (0, 0))
    check("both have the same report", there == here, True)
    check("the connecting one says nothing", said_there, "")
    check("the listening one says what runs", set(re.findall(r"round 1/1: ([\w-]+)", said_here)), set(ids))
    report = json.loads(here)
    rows = report["cases"][0]["rows"]
    check("rows", {each["id"] for each in rows}, set(ids))
    for row in rows:
        answers = row.get("answers", {})
        check(f"{row['id']}: ops, wrong", (answers.get("ops"), answers.get("wrong")), (400, 0))
    pictures = sorted(each.name for each in folder.iterdir())
    check("pictures", len(pictures), at_least(1))
    for name in pictures:
        text = (folder / name).read_text()
        check(f"{name} is a picture", (text.startswith("<svg"), text.rstrip().endswith("</svg>")), (True, True))
    print(f"two processes of egret-bench: {len(rows)} rows, {', '.join(pictures)}", flush=True)


def loop_without(what, missing):
    """--loop, on a device that lacks something: rows that say so, and the others."""
    ids = [each for each in ("raw-read", "herd", "seq-faa") if each in IDS]
    for _ in range(2):  # a guest that was held up does not connect
        result = subprocess.run([BENCH, "paradigms", "--loop", AT, *SHORT, "--only", ",".join(ids), "--clients", "2"], capture_output=True,
                                text=True, timeout=120, env=environment(EGRET_VERBS_HIDE=what))
        if "the other side" not in result.stderr:
            break
    check(f"--loop without {what}: {result.stderr.strip().splitlines()[-1:]}", result.returncode, 0)
    for each in ids:
        reason = next(iter(re.findall(rf"^.*{each}.*not available: (.+)$", result.stdout, re.M)), "")
        check(f"without {what}, {each} is not available", reason.strip(" |"), lambda seen: bool(re.search(missing[each], seen)) if each in missing else seen == "")
        if reason:
            print(f"without {what}, {each}: not available: {reason.strip(' |')}", flush=True)
    check("no verdict on an emulated device", "no verdict" in result.stdout, True)


def loopback():
    """An address without a host is loopback's: this host reaches it by its device's address. (To see that another host
    is refused takes two guests.)"""
    listening = start("--listen", ":18520", *SHORT, "--only", "raw-read", "--clients", "1")
    check("--listen :PORT", listening.stderr.readline(), lambda said: said.startswith("listening on 127.0.0.1:18520: "))
    token = listening.stderr.readline().split()[-1]
    connecting = start("--connect", AT, "--token", token)
    out, said = connecting.communicate(timeout=60)
    check("--connect of this host", (connecting.returncode, said, "raw-read" in out), (0, "", True))
    check("the listening side", (listening.communicate(timeout=60)[0], listening.returncode), (out, 0))
    print("--listen :18520: this host's --connect is served")


def prove():
    folder = pathlib.Path("/tmp/paradigms-pictures")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    wrong_tokens()
    two_processes(folder)
    loop_without("atomics", {"seq-faa": "has no atomics"})
    loop_without("ud", {"herd": "UD"})
    loopback()
