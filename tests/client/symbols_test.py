#!/usr/bin/env python3
"""symbols_test.py LIBEGRET: what the shared object shows, needs and weighs.

    egret.h (EGRET_API) = libegret.map = the dynamic symbols of the object, each of a version of the map
    what it needs: libraries of the list below, and none of those that it loads late or must not have
    at most 1 MiB, stripped; no executable stack, nothing to relocate in its code
"""
import pathlib, re, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = sys.argv[1]
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


header = re.sub(r"/\*.*?\*/", "", (ROOT / "client/egret.h").read_text(), flags=re.S)
declared = set(re.findall(r"EGRET_API[^;]*?\b(egret_\w+)\s*\(", header))
mapped, versions = set(), set()
for version, body in re.findall(r"^(EGRET_[\d.]+) \{(.*?)^\}", (ROOT / "client/libegret.map").read_text(), re.M | re.S):
    versions.add(version)
    mapped |= {f"{name}@@{version}" for name in re.findall(r"^\s+(egret_\w+);", body, re.M)}
shown = set()
for line in said("readelf", "--dyn-syms", "-W", LIBRARY).splitlines():
    fields = line.split()
    if len(fields) >= 8 and fields[4] in ("GLOBAL", "WEAK") and fields[6] != "UND" and fields[3] != "NOTYPE":
        shown.add(fields[7])
shown -= versions
assert len(declared) > 30, "the header's functions are not found"
expect("libegret.map, against egret.h", {name.split("@")[0] for name in mapped}, declared)
expect("libegret.so, against libegret.map", {symbol for symbol in shown if symbol not in versions and not re.fullmatch(r"EGRET_[\d.]+@@.*", symbol)}, mapped)

dynamic = said("readelf", "-dW", LIBRARY)
for library in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
    if library not in NEEDED:
        wrong.append(f"it needs {library}")
if re.search(r"\(SONAME\).*\[(.*)\]", dynamic)[1] != "libegret.so.0":
    wrong.append("its name is not libegret.so.0")
if "TEXTREL" in dynamic:
    wrong.append("its code is relocated")
if not re.search(r"GNU_STACK.* RW ", said("readelf", "-lW", LIBRARY)):
    wrong.append("its stack is executable")
with tempfile.NamedTemporaryFile() as stripped:
    said("strip", "-o", stripped.name, LIBRARY)
    size = pathlib.Path(stripped.name).stat().st_size
    if size > MOST_BYTES:
        wrong.append(f"{size} bytes, more than {MOST_BYTES}")

needed = ", ".join(sorted(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)))
print("\n".join(wrong) or f"{len(shown)} functions as the header says, {size >> 10} KiB, needs {needed}")
sys.exit(1 if wrong else 0)
