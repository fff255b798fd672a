#!/usr/bin/env python3
"""format.py [--fix]: every C++ source is as clang-format writes it; --fix writes it so."""
import pathlib, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("protocol", "client", "proxy", "backend", "tools", "tests")

sources = sorted(str(path) for place in PLACES for path in (ROOT / place).rglob("*")
                 if path.suffix in (".cc", ".h") and "node_modules" not in path.parts)
mode = ["-i"] if "--fix" in sys.argv[1:] else ["--dry-run", "-Werror"]
run = subprocess.run(["clang-format", *mode, *sources], capture_output=True, text=True)
wrong = sorted({line.split(":")[0] for line in run.stderr.splitlines() if "clang-format-violations" in line})
for path in wrong:
    print(f"{pathlib.Path(path).relative_to(ROOT)} is not as clang-format writes it (make format)")
if run.returncode != 0 and not wrong:
    print(run.stderr)
print(f"format: {len(sources)} sources, {len(wrong)} to be formatted")
sys.exit(1 if wrong or run.returncode != 0 else 0)
