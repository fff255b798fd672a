#!/usr/bin/env python3
"""symbols_test.py LIBEGRET LIBEGRET_PRELOAD: what the shared objects show, need and weigh.

    egret.h (EGRET_API) = libegret.map = the dynamic symbols of libegret.so, each of a version of the map
    interpose.cc (EGRET_INTERPOSES) = preload.map = the dynamic symbols of libegret-preload.so, without a version, and each in libc's place
    what they need: libraries of the list below, and none of those that they load late or must not have
    at most 1 MiB each, stripped; no executable stack, nothing to relocate in their code
"""
import pathlib, re, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY, PRELOAD = sys.argv[1:]
NEEDED = {"libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "ld-linux-x86-64.so.2", "libfmt.so.9", "libxxhash.so.0", "libmd.so.0"}
MOST_BYTES = 1 << 20
wrong = []


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def expect(what, found, expected):
    for each in sorted(found - expected):
        wrong.append(f"{what}: {each} is too much")
    for each in sorted(expected - found):
        wrong.append(f"{what}: {each} is missing")


def without_comments(path):
    return re.sub(r"/\*.*?\*/", "", (ROOT / path).read_text(), flags=re.S)


def symbols_of(library):
    """What others may find in it, with versions as readelf writes them."""
    lines = [line.split() for line in said("readelf", "--dyn-syms", "-W", library).splitlines()]
    return {fields[7] for fields in lines if len(fields) >= 8 and fields[4] in ("GLOBAL", "WEAK") and fields[6] != "UND" and fields[3] != "NOTYPE"}


def check_symbols_of_library():
    declared = set(re.findall(r"EGRET_API[^;]*?\b(egret_\w+)\s*\(", without_comments("client/egret.h")))
    mapped, versions = set(), set()
    for version, body in re.findall(r"^(EGRET_[\d.]+) \{(.*?)^\}", (ROOT / "client/libegret.map").read_text(), re.M | re.S):
        versions.add(version)
        mapped |= {f"{name}@@{version}" for name in re.findall(r"^\s+(egret_\w+);", body, re.M)}
    assert len(declared) > 30, "the header's functions are not found"
    expect("libegret.map, against egret.h", {name.split("@")[0] for name in mapped}, declared)
    shown = symbols_of(LIBRARY)
    expect("libegret.so, against libegret.map", {symbol for symbol in shown if symbol not in versions and not re.fullmatch(r"EGRET_[\d.]+@@.*", symbol)}, mapped)
    return len(declared)


def check_symbols_of_preload():
    meant = set(re.findall(r"^EGRET_INTERPOSES [^(;]*?(\w+)\(", (ROOT / "client/preload/interpose.cc").read_text(), re.M))
    mapped = set(re.findall(r"(\w+);", re.search(r"global:(.*?)local: \*;", without_comments("client/preload/preload.map"), re.S)[1]))
    assert len(meant) > 30, "the functions of interpose.cc are not found"
    expect("preload.map, against interpose.cc", mapped, meant)
    expect("libegret-preload.so, against interpose.cc", symbols_of(PRELOAD), meant)
    libc = re.search(r"libc\.so\.6 => (\S+)", said("ldd", PRELOAD))[1]
    of_libc = {symbol.split("@")[0] for symbol in symbols_of(libc)}
    expect("libegret-preload.so, against libc", meant - of_libc, set())
    return len(meant)


def check_object(library, names):
    """`names`: those under which the linker puts it into programs; none of a library that is only preloaded. What it weighs and needs, in words."""
    dynamic = said("readelf", "-dW", library)
    needed = sorted(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    wrong.extend(f"{library} needs {each}" for each in needed if each not in NEEDED)
    if re.findall(r"\(SONAME\).*\[(.*)\]", dynamic) != names:
        wrong.append(f"the name of {library} is not {names}")
    if "TEXTREL" in dynamic:
        wrong.append(f"the code of {library} is relocated")
    if not re.search(r"GNU_STACK.* RW ", said("readelf", "-lW", library)):
        wrong.append(f"the stack of {library} is executable")
    with tempfile.NamedTemporaryFile() as stripped:
        said("strip", "-o", stripped.name, library)
        size = pathlib.Path(stripped.name).stat().st_size
    if size > MOST_BYTES:
        wrong.append(f"{library} has {size} bytes, more than {MOST_BYTES}")
    return f"{size >> 10} KiB, needs {', '.join(needed)}"


of_library = f"{check_symbols_of_library()} functions as the header says, {check_object(LIBRARY, ['libegret.so.0'])}"
of_preload = f"{check_symbols_of_preload()} functions of libc, {check_object(PRELOAD, [])}"
print("\n".join(wrong) or f"libegret.so: {of_library}\nlibegret-preload.so: {of_preload}")
sys.exit(1 if wrong else 0)
