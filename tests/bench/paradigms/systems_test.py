"""systems_test.py EGRET_BENCH: each system is a page that a reader with the paper beside it recognises: at most 300 lines; its head draws
it, names paper, section or figure, and says what it relies on; every id has a head and a page of the documents."""
import pathlib, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
MOST_LINES = 300
SYSTEMS = sorted((ROOT / "tools/bench/paradigms/systems").glob("*.cc"))
PAGES = ROOT / "docs/benchmarks"


def head_of(path):
    return path.read_text().split("#include", 1)[0]


assert len(SYSTEMS) >= 15, SYSTEMS
for path in SYSTEMS:
    head = head_of(path)
    lines = path.read_text().count("\n")
    assert lines <= MOST_LINES, f"{path.name} has {lines} lines"
    assert re.search(r"[▶◀]", head), f"{path.name} draws nothing"
    assert re.search(r"paper 00[0-4]|EuroSys", head) and re.search(r"section|figure|table", head), f"{path.name} names no place in a paper"
    assert re.search(r"[Rr]elies on", head), f"{path.name} does not say what it relies on"
    assert all(line.startswith("//") or not line for line in head.split("\n")), f"{path.name} does not begin with its head"
    long = [line for line in head.split("\n") if len(line) > 128]
    assert not long, f"{path.name}: {long}"

heads = "".join(head_of(path) for path in SYSTEMS)
help_text = subprocess.run([sys.argv[1], "paradigms", "--help"], capture_output=True, text=True, check=True).stdout
ids = re.findall(r"^  ([a-z0-9-]+): ", help_text.split("Paradigms:\n", 1)[1].split("Papers:\n", 1)[0], re.MULTILINE)
assert len(ids) == 19, ids
overview = (PAGES / "paradigms.md").read_text()
pages = (PAGES / "paradigms/README.md").read_text()
for name in ids:
    assert re.search(rf"(^|[ /]){re.escape(name)}[:,]", heads), f"no head tells of {name}"
    assert f"`{name}`" in overview and f"`{name}`" in pages, f"no page tells of {name}"
print(f"ok: {len(SYSTEMS)} files, {len(ids)} ids")
