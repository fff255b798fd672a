#!/usr/bin/env python3
"""units.py FOLDER SOURCE...: which of a target's sources can be compiled as one, for builds that only test (EGRET_UNITE): lines `SOURCE UNIT`.

Sources whose internal names meet are of different units. Sources that are not named are of none: those that a mutant replaces by another
object (tests/mutation), and generated ones.
"""
import fcntl, math, pathlib, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = 14  # of a unit, at most


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


def units_of(paths, most=SOURCES):
    """Lists of at most so many sources whose internal names do not meet."""
    found = [([], {}) for _ in range(math.ceil(len(paths) / most))]  # sources, names
    for path in paths:
        names = internal_names(pathlib.Path(path).read_text())
        fit = [each for each in found if len(each[0]) < most and all(each[1].get(name, what) == what for name, what in names.items())]
        if not fit:
            fit = [([], {})]
            found += fit
        unit = min(fit, key=lambda each: len(each[0]))
        unit[0].append(path)
        unit[1].update(names)
    return [sources for sources, _ in found if sources]


def mutated():
    """The sources that mutants replace."""
    patches = (ROOT / "tests" / "mutation").rglob("*.patch")
    return {ROOT / name for patch in patches for name in re.findall(r"^--- a/(\S+)", patch.read_text(), re.M)}


def compile_commands(build):
    """Of BUILD, with every source by itself: where BUILD has united sources, a folder of it that is configured without."""
    build = pathlib.Path(build).resolve()
    if "EGRET_UNITE:BOOL=ON" not in (build / "CMakeCache.txt").read_text():
        return build / "compile_commands.json"
    plain = build / "plain"
    plain.mkdir(exist_ok=True)
    with open(plain / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["cmake", "--preset", "release", "-S", ROOT, "-B", plain], check=True, capture_output=True, cwd=ROOT)
    return plain / "compile_commands.json"


def main():
    folder = pathlib.Path(sys.argv[1])
    left_out = mutated()
    sources = {folder / name: name for name in sys.argv[2:]}
    united = [path for path in sources if path.suffix == ".cc" and path.is_relative_to(ROOT) and path.exists() and path.resolve() not in left_out]
    for number, unit in enumerate(units_of(united)):
        for path in unit:
            print(sources[path], number)


if __name__ == "__main__":
    main()
