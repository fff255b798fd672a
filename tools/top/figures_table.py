#!/usr/bin/env python3
"""figures_table.py FIGURES.json OUT.inc: the tables of figures as C++ constants, for figures.cc."""
import json, pathlib, sys

source = json.loads(pathlib.Path(sys.argv[1]).read_text())


def text(value):
    return json.dumps(value) if value is not None else "{}"


def name_of(word):
    return "k" + "".join(part.capitalize() for part in word.split("_"))


def row(entry):
    unknown = set(entry) - {"name", "title", "how", "unit", "metric", "other", "q", "label"}
    assert not unknown, f"{entry['name']}: {unknown}"
    ((label, value),) = entry.get("label", {"": ""}).items()
    return (f'  {{{text(entry["name"])}, {text(entry["title"])}, How::{name_of(entry["how"])}, Unit::{name_of(entry["unit"])}, {text(entry["metric"])}, '
            f'{text(entry.get("other"))}, {entry.get("q", 0)}, {{{text(label)}, {text(value)}}}}},\n')


lines = ["// Made of protocol/page/figures.json.\n"]
for table, groups in source["tables"].items():
    rows = [entry for group in groups for entry in source["groups"][group]]
    names = [entry["name"] for entry in rows]
    assert len(set(names)) == len(names), f"{table}: a name twice"
    lines += [f"constexpr FigureRow {name_of(table)}[] = {{\n", *map(row, rows), "};\n"]
pathlib.Path(sys.argv[2]).write_text("".join(lines))
