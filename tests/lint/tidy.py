#!/usr/bin/env python3
"""tidy.py [--quick] BUILD [PATH_PART...]: clang-tidy over the product's sources (or those whose path holds a
PATH_PART), on all CPUs.

Takes the checks of .clang-tidy and the compile commands of BUILD. A source that was clean is skipped until what the
compiler sees of it, or .clang-tidy, changes: BUILD/tidy keeps the hashes. --quick leaves out the
checks of clang's static analyzer, which take two thirds of the time, and those of SLOW: a full run (make soak, make
tidy) has them.
"""
import concurrent.futures, hashlib, json, os, pathlib, shlex, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("protocol", "proxy", "backend", "tools")
QUICK = "--quick" in sys.argv
# Checks that take a quarter of the rest, and have found little.
SLOW = ("bugprone-stringview-nullptr", "bugprone-suspicious-*", "bugprone-infinite-loop", "bugprone-assert-side-effect",
        "bugprone-multiple-statement-macro", "bugprone-unused-raii", "bugprone-sizeof-expression",
        "bugprone-not-null-terminated-result", "bugprone-misplaced-widening-cast", "bugprone-dangling-handle",
        "performance-type-promotion-in-math-fn")
ARGUMENTS = [word for word in sys.argv[1:] if not word.startswith("--")]
BUILD = pathlib.Path(ARGUMENTS[0]).resolve()
CLEAN = BUILD / "tidy"


def preprocessed(entry):
    """What the compiler sees: the source with all it includes, by one of its own calls. None if that fails."""
    words = shlex.split(entry["command"])
    words = words[1 + max((at for at, word in enumerate(words) if word.endswith("/ccache")), default=-1):]
    words = [word for word in words if word not in ("-c", "-MD")]
    for option in ("-o", "-MT", "-MF"):
        if option in words:
            at = words.index(option)
            del words[at:at + 2]
    run = subprocess.run(words + ["-E"], capture_output=True, cwd=entry["directory"])
    return run.stdout if run.returncode == 0 else None


def check(entry):
    """Returns (path, seconds, complaints); seconds is None for what was clean before, by at least the same checks."""
    path = pathlib.Path(entry["file"])
    seen = preprocessed(entry)
    mark = None
    if seen is not None:
        whole = CLEAN / hashlib.sha256(seen + (ROOT / ".clang-tidy").read_bytes()).hexdigest()
        mark = whole.with_suffix(".quick") if QUICK else whole
        if mark.exists() or whole.exists():
            return path, None, ""
    start = time.monotonic()
    checks = ["--checks=" + ",".join(f"-{name}" for name in ("clang-analyzer-*", *SLOW))] if QUICK else []
    run = subprocess.run(["clang-tidy", "--quiet", *checks, "-p", str(BUILD), str(path)], capture_output=True, text=True)
    complaints = "" if run.returncode == 0 else run.stdout + (run.stderr if not run.stdout else "")
    if not complaints and mark is not None:
        mark.touch()
    return path, time.monotonic() - start, complaints


def main():
    CLEAN.mkdir(exist_ok=True)
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    entries = {}
    for entry in commands:
        relative = os.path.relpath(os.path.realpath(entry["file"]), ROOT)
        if relative.split(os.sep)[0] in PLACES and all(part in relative for part in ARGUMENTS[1:]):
            entries[relative] = entry
    if not entries:
        sys.exit("tidy: no sources to check")
    complaints = []
    looked_at = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for path, seconds, text in pool.map(check, entries.values()):
            looked_at += seconds is not None
            if seconds is not None and os.environ.get("TIDY_TIMES"):
                print(f"{seconds:6.1f}s {os.path.relpath(path, ROOT)}", flush=True)
            if text:
                complaints.append(text)
                print(text, flush=True)
    print(f"tidy: {len(entries)} sources, {looked_at} looked at, {len(complaints)} with complaints")
    sys.exit(1 if complaints else 0)


main()
