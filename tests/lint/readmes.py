#!/usr/bin/env python3
"""readmes.py: every folder that holds sources or configuration has a README of a sensible length, and its links lead somewhere."""
import pathlib, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("backend", "proxy", "protocol", "conf", "systemd", "docker", "docs", "tools", "tests")
# Folders of data, or of parts that the README above them tells of.
WITHOUT = re.compile(r"^(tests/(bench/.+|fuzz/corpus(/.*)?|conformance/clients|rdma/.+|booted/image|packages)|conf/packaging/debian|docker/.+)$")

files = [pathlib.Path(line) for line in subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True,
    check=True).stdout.splitlines()] if (ROOT / ".git").exists() else [
    path.relative_to(ROOT) for place in PLACES for path in (ROOT / place).rglob("*") if path.is_file()]
folders = {parent for path in files for parent in path.parents if parent.parts and parent.parts[0] in PLACES}

wrong = []
for folder in sorted(folders):
    readme = ROOT / folder / "README.md"
    if WITHOUT.match(str(folder)):
        continue
    if not readme.exists():
        wrong.append(f"{folder} has no README.md")
    elif not 3 <= len(readme.read_text().splitlines()) <= 300:
        wrong.append(f"{folder}/README.md is not about a page")
for path in files:
    if path.suffix != ".md" or not (ROOT / path).exists():
        continue
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / path).read_text()):
        if "://" not in target and not ((ROOT / path).parent / target).exists():
            wrong.append(f"{path}: a link leads nowhere: {target}")
print("\n".join(wrong) or f"{len(folders)} folders have their READMEs")
sys.exit(1 if wrong else 0)
