#!/usr/bin/env python3
"""tidy.py [--quick] BUILD [PATH_PART...]: clang-tidy over the product's sources (or those whose path holds a
PATH_PART), on all CPUs.

Takes the checks of .clang-tidy and the compile commands of BUILD. A source that was clean is skipped until what the
compiler sees of it, or .clang-tidy, changes: BUILD/tidy keeps the hashes. --quick leaves out the
checks of clang's static analyzer, which take two thirds of the time, and those of SLOW: a full run (make soak, make
tidy) has them.

    --quick: sources compiled alike ─▶ units, each a source that includes up to UNIT of them ─▶ clang-tidy ─▶ clean, all of them
                                                                                                  └─▶ not: each by itself

Most of the time of a source goes into the headers it includes, which a unit reads once. Sources whose internal names meet
are of different units. What a unit complains of, compile errors too, is decided by its sources, each by itself.

tidy.py --quick --prove BUILD: tidy_sample.cc gives rise to the same complaints in a unit as by itself, one of each check or so.
"""
import collections, concurrent.futures, hashlib, json, math, os, pathlib, re, shlex, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("protocol", "client", "proxy", "backend", "tools")
QUICK = "--quick" in sys.argv
# Checks that take a quarter of the rest, and have found little.
SLOW = ("bugprone-stringview-nullptr", "bugprone-suspicious-*", "bugprone-infinite-loop", "bugprone-assert-side-effect",
        "bugprone-multiple-statement-macro", "bugprone-unused-raii", "bugprone-sizeof-expression",
        "bugprone-not-null-terminated-result", "bugprone-misplaced-widening-cast", "bugprone-dangling-handle",
        "performance-type-promotion-in-math-fn")
ARGUMENTS = [word for word in sys.argv[1:] if not word.startswith("--")]
BUILD = pathlib.Path(ARGUMENTS[0]).resolve()
CLEAN = BUILD / "tidy"
UNITS = CLEAN / "units"
UNIT = 14  # sources of a unit, at most: they are all read again where one has a complaint
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


def internal_names(text):
    """What a source declares in unnamed namespaces and as static, its macros, and short names for what others declare. Name
    to what it stands for; two sources of a unit may not have the same for different things."""
    names = dict.fromkeys(re.findall(r"^#\s*define (\w+)", text, re.M), object())
    names.update((name, place + name) for place, name in re.findall(r"^using (?:::)?(?:egret::)?((?:\w+::)+)(\w+);", text, re.M))
    blocks = re.findall(r"^namespace \{$(.*?)^\}  // namespace$", text, re.M | re.S)
    blocks += re.findall(r"^static .*$", text, re.M)
    for block in blocks:
        found = re.findall(r"^(?:class|struct|union|enum(?: class)?) (?:alignas\(\w+\) )?(\w+)|^using (\w+) =", block, re.M)
        found = [name or alias for name, alias in found]
        found += re.findall(r"^(?!using )[^\s#/}][^(=]*?\b(\w+)(?:\[.*?\])*(?: =|\(|\{|;)", block, re.M)
        names.update(dict.fromkeys(found, object()))
    return names


def units_of(sources):
    """Sources (path, entry) into lists of at most UNIT that are compiled alike and whose internal names do not meet."""
    alike = collections.defaultdict(list)
    for path, entry in sources:
        alike[tuple(words_of(entry))].append((path, entry))
    units = []
    for group in alike.values():
        found = [([], {}) for _ in range(math.ceil(len(group) / UNIT))]  # sources, names
        for path, entry in group:
            names = internal_names(pathlib.Path(entry["file"]).read_text())
            fit = [each for each in found if all(each[1].get(name, what) == what for name, what in names.items())]
            if not fit:
                fit = [([], {})]
                found += fit
            unit = min(fit, key=lambda each: len(each[0]))
            unit[0].append((path, entry))
            unit[1].update(names)
        units += [unit[0] for unit in found]
    return units


def write_units(units):
    """A source for each unit of two or more, and their compile commands."""
    UNITS.mkdir(exist_ok=True)
    commands = []
    for number, unit in enumerate(units):
        source = UNITS / f"unit{number}.cc"
        source.write_text("".join(f'#include "{ROOT / path}"\n' for path, _ in unit))
        entry = unit[0][1]
        commands.append({"directory": entry["directory"], "file": str(source),
                         "command": shlex.join(words_of(entry) + ["-Wno-shadow", "-c", str(source)])})
    (UNITS / "compile_commands.json").write_text(json.dumps(commands))


def main():
    CLEAN.mkdir(exist_ok=True)
    entries = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        relative = os.path.relpath(os.path.realpath(entry["file"]), ROOT)
        if relative.split(os.sep)[0] in PLACES and all(part in relative for part in ARGUMENTS[1:]):
            entries[relative] = entry
    if not entries:
        sys.exit("tidy: no sources to check")
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
            units = units_of([(path, entries[path]) for path in dirty])
            write_units(units)
            alone = []
            for unit, text in zip(units, pool.map(lambda number: tidy(UNITS / f"unit{number}.cc", UNITS), range(len(units)))):
                paths = [path for path, _ in unit]
                if text:
                    alone += paths
                else:
                    keep(paths)
        for path, text in zip(alone, pool.map(lambda path: tidy(ROOT / path, BUILD), alone)):
            if text:
                complaints.append(text)
                print(text, flush=True)
            else:
                keep([path])
    print(f"tidy: {len(entries)} sources, {len(dirty)} looked at, {len(alone)} by themselves, {len(complaints)} with complaints")
    sys.exit(1 if complaints else 0)


prove() if "--prove" in sys.argv else main()
