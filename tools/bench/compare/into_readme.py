#!/usr/bin/env python3
"""into_readme.py TABLES.md: puts the tables of `egret-bench compare --markdown` and the pictures into docs/benchmarks/results.md, and six rows of them into the README.

Each document has the marks <!-- compare --> and <!-- /compare --> once; what stands between them is replaced.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PICTURES = (("CPU per operation", "cpu.svg"), ("Latency against throughput", "throughput-latency.svg"))
README_ROWS = ("32 B, depth 1, TCP", "32 B, depth 16, TCP", "32 B, multiget of 50, TCP", "1 KiB, depth 1, TCP", "100 KiB, depth 1, TCP",
               "32 B, 20,000 requests/s, TCP")


def put(name, block):
    page = ROOT / name
    text, places = re.subn(r"(<!-- compare -->\n).*?(<!-- /compare -->)", lambda found: f"{found[1]}{block}\n{found[2]}", page.read_text(), flags=re.DOTALL)
    if places != 1:
        sys.exit(f"into_readme.py: {name} has no marks <!-- compare --> and <!-- /compare -->")
    page.write_text(text)


def row(tables, name):
    """The row of this name in the first table that has one."""
    found = re.search(rf"^\| {re.escape(name)} \|.*$", tables, re.M)
    if not found:
        sys.exit(f"into_readme.py: the tables have no row '{name}', which the README shows")
    return found[0]


tables = pathlib.Path(sys.argv[1]).read_text().strip()
pictures = "\n\n".join(f"![{title}](figures/{name})" for title, name in PICTURES)
put("docs/benchmarks/results.md", f"{tables}\n\n{pictures}")
lines = tables.split("\n")
first = next(number for number, line in enumerate(lines) if line.startswith("|"))
put("README.md", "\n".join([*lines[:first + 2], *(row(tables, name) for name in README_ROWS)]))  # what was run, the head of the first table
