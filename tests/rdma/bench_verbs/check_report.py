#!/usr/bin/env python3
"""check_report.py FILE [advise]: a report of `egret-bench verbs` has all its tables, no cell of which is empty, and no wrong byte. One of
`--advise` has only what is suggested."""
import re, sys

text = open(sys.argv[1]).read()
wrong = []
TABLES = {"Table I": 1, "Figure 1": 1, "By payload size": 2, "Figure 8": 1, "Atomics": 2, "UD SEND": 2, "Queue pairs": 1,
          "What they suggest": 1}  # tables below the heading
if sys.argv[2:] == ["advise"]:
    wrong += [f"{heading}, though only advice is wanted" for heading in TABLES if heading != "What they suggest" and f"## {heading}" in text]
    TABLES = {"What they suggest": 1}
for heading, expected in TABLES.items():
    found = re.search(rf"^## {heading}.*?\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not found:
        wrong.append(f"no {heading}")
        continue
    tables = re.findall(r"(?:^\|.*\n)+", found[1], re.M)
    if len(tables) != expected:
        wrong.append(f"{heading}: {len(tables)} tables")
    for table in tables:
        names, _, *rows = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in table.splitlines()]
        if not rows:
            wrong.append(f"{heading}: a table without rows")
        for row in rows:
            # Numbers greater than 0, several of them in the latencies. The share of results that fit, or of SENDs that are lost, may be 0.
            good = len(row) == len(names) and all(
                re.fullmatch(r"\**[\d.e+-]+( %)?\**( / [\d.e+-]+)*", cell) and
                all(float(number) > 0 or cell == "0 %" for number in re.findall(r"[\d.]+(?:e[+-]?\d+)?", cell)) for cell in row)
            if not good:
                wrong.append(f"{heading}: {row}")
some = r"[1-9]\d*" if len(TABLES) > 1 else "0"
for sentence in (r"^F = \*\*\d+\*\*", r"^\*\*R\*\* .*→ \*\*\d+\*\*", r"^\*\*window\*\*.*→ \*\*\d+\*\*.*qps_per_session` \*\*\d+\*\*",
                 r"^\*\*Q\*\*\* .*→ \*\*\d+\*\*", r"^\*\*spin\*\*: .*→ \*\*\d+us\*\*", r"^    push_above_sessions: \d+$", r"^    fetch_max: \d+$",
                 r"^    max_refetches: \d+$", r"^    spin: \d+us$", r"^    window: \d+$", r"^    qps_per_session: \d+$",
                 r"An emulated RDMA device", *([r"^\*\*Below 80 % of its best\*\*"] if len(TABLES) > 1 else []),
                 rf"^[1-9]\d* cells, [1-9]\d* WRITEs, [1-9]\d* READs, {some} FETCH_ADDs, {some} COMPARE_SWAPs and {some} UD SENDs posted, 0 wrong bytes"):
    if not re.search(sentence, text, re.M):
        wrong.append(f"nothing like {sentence}")
print("\n".join(wrong) or "every cell is filled")
sys.exit(1 if wrong else 0)
