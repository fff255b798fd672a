#!/usr/bin/env python3
"""readmes.py: the documents hold together.

    - every folder that holds sources or configuration has a README of a sensible length; the main README has at most 200 lines
    - every relative link between Markdown files leads to a file and, with #fragment, to a heading of it
    - every page of docs/ is at most two clicks from the main README
"""
import pathlib, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("backend", "client", "proxy", "protocol", "conf", "systemd", "docker", "docs", "tools", "tests")
# Folders of data, or of parts that the README above them tells of.
WITHOUT = re.compile(r"^(tests/(bench/.+|fuzz/corpus(/.*)?|conformance/clients|rdma/.+|booted/image|packages|packaging/.+)|conf/packaging/debian|docker/.+)$")
MOST_LINES = 200  # of the main README
MOST_CLICKS = 2

wrong = []


def all_files():
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
        return [pathlib.Path(line) for line in listed.stdout.splitlines() if (ROOT / line).exists()]
    return [pathlib.Path("README.md")] + [path.relative_to(ROOT) for place in PLACES for path in (ROOT / place).rglob("*") if path.is_file()]


def prose(page):
    """The page without its blocks of code, in which nothing is a link or a heading."""
    return re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.M | re.S)


def anchors(page):
    """The fragments that lead to headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page):
    """(target, fragment) of each relative link; the target of a link within the page is the page."""
    for target, fragment in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", prose(page)):
        if "://" not in target:
            yield pathlib.Path(*(page.parent / target).parts) if target else page, fragment


def normal(path):
    return (ROOT / path).resolve().relative_to(ROOT) if (ROOT / path).resolve().is_relative_to(ROOT) else path


def check_folders(files):
    folders = {parent for path in files for parent in path.parents if parent.parts and parent.parts[0] in PLACES}
    for folder in sorted(folders):
        readme = ROOT / folder / "README.md"
        if WITHOUT.match(str(folder)):
            continue
        if not readme.exists():
            wrong.append(f"{folder} has no README.md")
        elif not 3 <= len(readme.read_text().splitlines()) <= 300:
            wrong.append(f"{folder}/README.md is not about a page")
    lines = len((ROOT / "README.md").read_text().splitlines())
    if lines > MOST_LINES:
        wrong.append(f"README.md has {lines} lines, more than {MOST_LINES}")
    return len(folders)


def check_links(pages):
    for page in pages:
        for target, fragment in links(page):
            if not (ROOT / target).exists():
                wrong.append(f"{page}: a link leads nowhere: {target}")
            elif fragment and target.suffix == ".md" and fragment not in anchors(normal(target)):
                wrong.append(f"{page}: {normal(target)} has no heading #{fragment}")


def check_clicks(pages):
    reached = {pathlib.Path("README.md")}
    for _ in range(MOST_CLICKS):
        reached |= {normal(target) for page in reached if page.suffix == ".md" for target, _ in links(page) if (ROOT / target).is_file()}
    for page in pages:
        if page.parts[0] == "docs" and page not in reached:
            wrong.append(f"{page} is more than {MOST_CLICKS} clicks from README.md")


files = all_files()
pages = [path for path in files if path.suffix == ".md"]
folder_count = check_folders(files)
check_links(pages)
check_clicks(pages)
print("\n".join(wrong) or f"{folder_count} folders have their READMEs, {len(pages)} documents hold together")
sys.exit(1 if wrong else 0)
