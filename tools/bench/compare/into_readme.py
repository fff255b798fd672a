#!/usr/bin/env python3
"""into_readme.py TABLES.md: puts the tables of `egret-bench compare --markdown` and the pictures into docs/benchmarks/results.md, and six rows of them into the README.
into_readme.py --between-hosts TABLES.md: puts them into docs/benchmarks/between-hosts.md.
into_readme.py --check: whether the README's six rows are those of results.md.

Each of the pages has the marks <!-- compare --> and <!-- /compare --> once; what stands between them is replaced.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
README, RESULTS, BETWEEN_HOSTS = ROOT / "README.md", ROOT / "docs/benchmarks/results.md", ROOT / "docs/benchmarks/between-hosts.md"
PICTURES = (("CPU per operation", "cpu.svg"), ("Latency against throughput", "throughput-latency.svg"))
README_ROWS = ("32 B, depth 1, TCP", "32 B, depth 16, TCP", "32 B, multiget of 50, TCP", "1 KiB, depth 1, TCP", "100 KiB, depth 1, TCP",
               "32 B, 20,000 requests/s, TCP")
GOALS_HEAD = "| workload | CPU per op"
BLOCK = re.compile(r"(?<=<!-- compare -->\n).*?(?=\n<!-- /compare -->)", re.DOTALL)


def block_of(page):
    blocks = BLOCK.findall(page.read_text())
    if len(blocks) != 1:
        sys.exit(f"into_readme.py: {page.relative_to(ROOT)} has {len(blocks)} blocks between <!-- compare --> and <!-- /compare -->, expected one")
    return blocks[0]


def put(page, block):
    block_of(page)
    page.write_text(BLOCK.sub(lambda _: block, page.read_text()))


def six_rows(tables):
    """What was run, the head of the table with the goals and six of its rows."""
    lines = tables.split("\n")
    said = next(number for number, line in enumerate(lines) if line.startswith("|"))
    first = next(number for number, line in enumerate(lines) if line.startswith(GOALS_HEAD))
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in reversed(lines[first:])}  # reversed: the first table counts
    missing = [name for name in README_ROWS if name not in rows]
    if missing:
        sys.exit(f"into_readme.py: the tables lack rows that the README shows: {missing}")
    return "\n".join([*lines[:said], *lines[first:first + 2], *(rows[name] for name in README_ROWS)])


if sys.argv[1] == "--check":
    if block_of(README) != six_rows(block_of(RESULTS)):
        sys.exit("README.md's rows are not those of docs/benchmarks/results.md: tools/bench/compare/into_readme.py writes both")
elif sys.argv[1] == "--between-hosts":
    put(BETWEEN_HOSTS, pathlib.Path(sys.argv[2]).read_text().strip())
else:
    tables = pathlib.Path(sys.argv[1]).read_text().strip()
    pictures = "\n\n".join(f"![{title}](figures/{name})" for title, name in PICTURES)
    put(RESULTS, f"{tables}\n\n{pictures}")
    put(README, six_rows(tables))
