#!/usr/bin/env python3
"""into_readme.py TABLES.md: puts the tables of `egret-bench compare --markdown` and the pictures between the main README's markers."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PICTURES = (("CPU per operation", "cpu.svg"), ("Latency against throughput", "throughput-latency.svg"))

readme = ROOT / "README.md"
tables = pathlib.Path(sys.argv[1]).read_text().strip()
pictures = "\n\n".join(f"![{title}](docs/benchmarks/figures/{name})" for title, name in PICTURES)
text, places = re.subn(r"(<!-- compare -->\n).*?(<!-- /compare -->)", lambda found: f"{found[1]}{tables}\n\n{pictures}\n{found[2]}",
                       readme.read_text(), flags=re.DOTALL)
if places != 1:
    sys.exit("into_readme.py: README.md has no markers <!-- compare --> and <!-- /compare -->")
readme.write_text(text)
