#!/usr/bin/env python3
"""installed_docs.py OUT: the documents that packages install, in OUT/egret-proxy, OUT/egret-backend, OUT/egret-tools, OUT/libegret0 and OUT/libegret-dev.

    README.md, docs/, ... ─▶ where each page is installed (places) ─▶ links made anew ─▶ OUT/PACKAGE/...

A link to something that is installed leads there. A link to something that is not (the sources' own READMEs, say) becomes its text and the place
in the sources, since there is nothing to lead to. tests/packaging holds every link of an installed document to a file that is installed.
"""
import os, pathlib, re, shutil, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ("egret-proxy", "egret-backend", "egret-tools", "libegret0", "libegret-dev")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def places(package):
    """{path in the sources: path below share/doc/PACKAGE} of all that may be linked to. What others install has its place here, too."""
    if package.startswith("libegret"):  # nothing about the daemons; the examples with what is built with them
        dev = {path: pathlib.Path(path).name for path in ("docs/client/README.md", "docs/client/options.md")}
        dev |= {f"docs/client/{path.name}": f"examples/{path.name}" for path in (ROOT / "docs/client").glob("*.c*")}
        return dev if package == "libegret-dev" else {}
    found = {"README.md": "README.md", "CHANGELOG.md": "changelog.gz", "LICENSE": "copyright", "protocol/page/proxy.png": "docs/operate/status-page.png"}
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.is_file() and path.suffix != ".json":
            found[str(path.relative_to(ROOT))] = str(path.relative_to(ROOT))
    if package == "egret-tools":
        for path in (ROOT / "conf/monitoring").iterdir():
            found[str(path.relative_to(ROOT))] = f"monitoring/{path.name}"
    else:
        found |= {"systemd/README.md": "docs/operate/systemd.md", "systemd/placement.conf": "placement.conf"}
    return found


def relinked(text, source, installed):
    """The text of a page, with links for the place where it is installed."""
    def link(match):
        image, words, target, fragment = match[1], match[2], match[3], match[4] or ""
        if "://" in target or not target:
            return match[0]
        path = os.path.normpath(pathlib.Path(source).parent / target)
        for name in (path, f"{path}/README.md"):
            if name in installed:
                return f"{image}[{words}]({os.path.relpath(installed[name], pathlib.Path(installed[source]).parent)}{fragment})"
        return words if words.strip("`/") in path else f"{words} (sources: {path})"

    blocks = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)  # every second one is code, in which nothing is a link
    return "".join(block if number % 2 else LINK.sub(link, block) for number, block in enumerate(blocks))


def write(package, out):
    installed = places(package)
    (out / package).mkdir(parents=True)
    for source, place in installed.items():
        if source in ("CHANGELOG.md", "LICENSE", "systemd/placement.conf"):
            continue  # install.cmake
        target = out / package / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.endswith(".md"):
            target.write_text(relinked((ROOT / source).read_text(), source, installed))
        else:
            shutil.copyfile(ROOT / source, target)


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1])
    shutil.rmtree(out, ignore_errors=True)
    for package in PACKAGES:
        write(package, out)
