"""installed_links.py: where the documents of an installed tree lead."""
import gzip, pathlib, re

SHARE = "usr/share/doc"


def anchors(page):
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page):
    """(target, fragment) of each relative link."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for target, fragment in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if "://" not in target:
            yield page.parent / target if target else page, fragment


def dead_links(root, package):
    """(links looked at, what is wrong) of the documents that a package has put below the root."""
    looked_at, wrong = 0, []
    for page in sorted(pathlib.Path(root, SHARE, package).rglob("*.md")):
        for target, fragment in links(page):
            looked_at += 1
            if not target.exists():
                wrong.append(f"{page}: {target} is not installed")
            elif fragment and fragment not in anchors(target):
                wrong.append(f"{page}: {target} has no heading #{fragment}")
    return looked_at, wrong


def named_files(root):
    """The documents that units and man pages below the root name, as paths below the root."""
    for unit in pathlib.Path(root, "usr/lib/systemd/system").glob("egret-*"):
        yield from re.findall(r"file:/(\S+)", unit.read_text())
    for page in pathlib.Path(root, "usr/share/man").rglob("*.gz"):
        yield from re.findall(r"/(usr/share/doc/\S+)", gzip.decompress(page.read_bytes()).decode().replace("\\-", "-"))
