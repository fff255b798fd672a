#!/usr/bin/env python3
"""tidy.py [--quick] [--recent] BUILD [PATH_PART...]: clang-tidy over the product's sources (or those whose path holds a
PATH_PART), on all CPUs.

Takes the checks of .clang-tidy and the compile commands of BUILD. A source that was clean is skipped until what the
compiler sees of it, or .clang-tidy, changes: BUILD/tidy keeps the hashes. --quick leaves out the
checks of clang's static analyzer, which take two thirds of the time, and those of SLOW: a full run (make soak, make
tidy) has them. --recent leaves out sources that none of the last RECENT commits, nor a change that is not committed, touches.

    --quick: sources compiled alike ─▶ units, each a source that includes some of them (units.py) ─▶ clang-tidy ─▶ clean, all of them
                                                                                                  └─▶ not: each by itself

Most of the time of a source goes into the headers it includes, which a unit reads once. Sources whose internal names meet
are of different units. What a unit complains of, compile errors too, is decided by its sources, each by itself.

tidy.py --quick --prove BUILD: tidy_sample.cc gives rise to the same complaints in a unit as by itself, one of each check or so.
"""
import collections, concurrent.futures, hashlib, json, os, pathlib, re, shlex, subprocess, sys, time

import units

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("protocol", "client", "proxy", "backend", "tools")
QUICK = "--quick" in sys.argv
RECENT = 40
# Checks that take a quarter of the rest, and have found little.
SLOW = ("bugprone-stringview-nullptr", "bugprone-suspicious-*", "bugprone-infinite-loop", "bugprone-assert-side-effect",
        "bugprone-multiple-statement-macro", "bugprone-unused-raii", "bugprone-sizeof-expression",
        "bugprone-not-null-terminated-result", "bugprone-misplaced-widening-cast", "bugprone-dangling-handle",
        "performance-type-promotion-in-math-fn")
ARGUMENTS = [word for word in sys.argv[1:] if not word.startswith("--")]
BUILD = pathlib.Path(ARGUMENTS[0]).resolve()
CLEAN = BUILD / "tidy"
UNITS = CLEAN / "units"
SAMPLE_CHECKS = 58  # that complain of tidy_sample.cc


def words_of(entry):
    """The compiler and its options, without what names this source and its object."""
    words = shlex.split(entry["command"])
    words = words[1 + max((at for at, word in enumerate(words) if word.endswith("/ccache")), default=-1):]
    words = [word for word in words if word not in ("-c", "-MD", entry["file"])]
    for option in ("-o", "-MT", "-MF"):
        if option in words:
            at = words.index(option)
            del words[at:at + 2]
    return words


def recently_changed():
    """Says of a path whether it was changed lately; without the history all of them were."""
    def said(*command):
        return subprocess.run(["git", *command], capture_output=True, text=True, cwd=ROOT, check=True).stdout.splitlines()
    try:
        changed = set(said("log", f"-{RECENT}", "--name-only", "--format=")) | set(said("diff", "--name-only", "HEAD"))
    except (OSError, subprocess.CalledProcessError):
        return lambda path: True
    return changed.__contains__


def mark_of(entry):
    """The file that says that this source is clean, by what the compiler sees of it (one of its own calls); and whether it
    is there, or one of more checks. None if the compiler fails."""
    run = subprocess.run(words_of(entry) + [entry["file"], "-E"], capture_output=True, cwd=entry["directory"])
    if run.returncode != 0:
        return None, False
    whole = CLEAN / hashlib.sha256(run.stdout + (ROOT / ".clang-tidy").read_bytes()).hexdigest()
    mark = whole.with_suffix(".quick") if QUICK else whole
    return mark, mark.exists() or whole.exists()


def tidy(path, build):
    """Returns what clang-tidy complains of."""
    start = time.monotonic()
    checks = ["--checks=" + ",".join(f"-{name}" for name in ("clang-analyzer-*", *SLOW))] if QUICK else []
    run = subprocess.run(["clang-tidy", "--quiet", f"--config-file={ROOT / '.clang-tidy'}", *checks, "-p", str(build), str(path)],
                         capture_output=True, text=True)
    complaints = "" if run.returncode == 0 else run.stdout + (run.stderr if not run.stdout else "")
    if os.environ.get("TIDY_TIMES"):
        print(f"{time.monotonic() - start:6.1f}s {os.path.relpath(path, ROOT)}{' !' if complaints else ''}", flush=True)
    return complaints


def prove():
    """Exits with 1 unless a unit hides nothing."""
    sample = ROOT / "tests" / "lint" / "tidy_sample.cc"
    folder = CLEAN / "proof"
    folder.mkdir(parents=True, exist_ok=True)
    unit = folder / "unit.cc"
    unit.write_text(f'#include <vector>\n#include "{sample}"\n')
    (folder / "compile_commands.json").write_text(json.dumps(
        [{"directory": str(folder), "file": str(path), "command": f"c++ -std=c++20 -w -c {path}"} for path in (sample, unit)]))
    alone, together = (sorted(set(re.findall(r"tidy_sample\.cc:(\d+):.*\[([a-z.-]+),-warnings-as-errors\]", tidy(path, folder))))
                       for path in (sample, unit))
    checks = {name for _, name in alone}
    print(f"tidy: {len(alone)} complaints of {len(checks)} checks about the sample, {len(together)} in a unit")
    for line, name in sorted(set(alone) ^ set(together)):
        print(f"tidy_sample.cc:{line}: {name} is not the same in a unit")
    sys.exit(1 if alone != together or len(checks) < SAMPLE_CHECKS else 0)


def units_of(sources):
    """Sources (path, entry) into lists of sources that are compiled alike and whose internal names do not meet."""
    alike = collections.defaultdict(dict)
    for path, entry in sources:
        alike[tuple(words_of(entry))][entry["file"]] = (path, entry)
    return [[group[file] for file in unit] for group in alike.values() for unit in units.units_of(list(group))]


def write_units(together):
    """A source for each unit of two or more, and their compile commands."""
    UNITS.mkdir(exist_ok=True)
    commands = []
    for number, unit in enumerate(together):
        source = UNITS / f"unit{number}.cc"
        source.write_text("".join(f'#include "{ROOT / path}"\n' for path, _ in unit))
        entry = unit[0][1]
        commands.append({"directory": entry["directory"], "file": str(source),
                         "command": shlex.join(words_of(entry) + ["-Wno-shadow", "-c", str(source)])})
    (UNITS / "compile_commands.json").write_text(json.dumps(commands))


def main():
    CLEAN.mkdir(exist_ok=True)
    entries = {}
    commands = units.compile_commands(BUILD)
    for entry in json.loads(commands.read_text()):
        relative = os.path.relpath(os.path.realpath(entry["file"]), ROOT)
        if relative.split(os.sep)[0] in PLACES and all(part in relative for part in ARGUMENTS[1:]):
            entries[relative] = entry
    if not entries:
        sys.exit("tidy: no sources to check")
    if "--recent" in sys.argv:
        is_recent = recently_changed()
        entries = {path: entry for path, entry in entries.items() if is_recent(path)}
    complaints = []
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        marks = dict(zip(entries, pool.map(mark_of, entries.values())))
        dirty = [path for path in entries if not marks[path][1]]

        def keep(paths):  # they are clean
            for path in paths:
                if marks[path][0] is not None:
                    marks[path][0].touch()

        alone = dirty
        if QUICK and len(dirty) > 1:
            together = units_of([(path, entries[path]) for path in dirty])
            write_units(together)
            alone = []
            for unit, text in zip(together, pool.map(lambda number: tidy(UNITS / f"unit{number}.cc", UNITS), range(len(together)))):
                paths = [path for path, _ in unit]
                if text:
                    alone += paths
                else:
                    keep(paths)
        for path, text in zip(alone, pool.map(lambda path: tidy(ROOT / path, commands.parent), alone)):
            if text:
                complaints.append(text)
                print(text, flush=True)
            else:
                keep([path])
    print(f"tidy: {len(entries)} sources, {len(dirty)} looked at, {len(alone)} by themselves, {len(complaints)} with complaints")
    sys.exit(1 if complaints else 0)


prove() if "--prove" in sys.argv else main()
