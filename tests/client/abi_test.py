#!/usr/bin/env python3
"""abi_test.py [--update]: what egret.h promises to programs that were compiled earlier is what it was: sizes and places in structs, values of
constants, what functions take and return.

    egret.h ─ a stub for each function, compiled in C ─▶ abidw ─▶ its ABI ─ abidiff ─ libegret.abi, of the last time

Until 1.0 the ABI of libegret.so.0 may break: then --update, and CHANGELOG.md tells of it. Which symbols there are is symbols_test.py's matter.
"""
import pathlib, re, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
CLIENT, KNOWN = HERE.parents[1] / "client", HERE / "libegret.abi"
FLAGS = ["--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed", "--no-architecture", "--type-id-style", "hash"]


def said(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout


def stubs():
    header = re.sub(r"/\*.*?\*/", "", (CLIENT / "egret.h").read_text(), flags=re.S)
    functions = [text for text in re.findall(r"EGRET_API\s+([^;#]+);", header) if "(" in text]
    assert len(functions) > 30, "the header's functions are not found"
    constants = re.findall(r"^\s*(EGRET_\w+)\s*=", header, re.M)
    assert len(constants) > 30, "the header's constants are not found"
    values = "".join(f"  of_{name} = {name},\n" for name in constants)
    return ('#include "egret.h"\n' + "".join(f"{text} {{ __builtin_trap(); }}\n" for text in functions) +
            f"enum egret_constants {{\n{values}}};\nenum egret_constants egret_constants_are(void) {{ __builtin_trap(); }}\n")


with tempfile.TemporaryDirectory() as folder:
    source, library, found = (pathlib.Path(folder, name) for name in ("egret_abi.c", "libegret_abi.so", "found.abi"))
    source.write_text(stubs())
    said("cc", "-std=c11", "-g", "-O0", "-fPIC", "-shared", "-Wl,-soname,libegret.so.0", f"-I{CLIENT}", "-o", library, source)
    said("abidw", *FLAGS, "--out-file", found, library)
    if "--update" in sys.argv:
        KNOWN.write_text(found.read_text())
        sys.exit(0)
    done = subprocess.run(["abidiff", "--no-architecture", KNOWN, found], capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout + done.stderr + "the ABI of libegret is another one: tests/client/abi_test.py --update, and tell of it in CHANGELOG.md")
        sys.exit(1)
    # A check that finds nothing must be one that looks: the same with a struct that has grown.
    text = source.read_text().replace('#include "egret.h"', re.sub(r"(typedef struct egret_result \{)", r"\1 char grown[64];", (CLIENT / "egret.h").read_text()))
    assert "grown" in text, "egret_result is not found"
    source.write_text(text)
    said("cc", "-std=c11", "-g", "-O0", "-fPIC", "-shared", "-Wl,-soname,libegret.so.0", f"-I{CLIENT}", "-o", library, source)
    said("abidw", *FLAGS, "--out-file", found, library)
    assert subprocess.run(["abidiff", "--no-architecture", KNOWN, found], capture_output=True).returncode & 4, "a change is not found"
    print(f"{text.count('__builtin_trap') - 1} functions, as they were")
