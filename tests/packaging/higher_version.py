#!/usr/bin/env python3
"""higher_version.py VERSION FOLDER DEB...: the same packages with a higher version, each of whose conffiles has one more comment line."""
import pathlib, re, subprocess, sys, tempfile

ADDED_LINE = "# next\n"


def higher_version(deb, version, folder):
    """Writes DEB's successor into the folder and returns its path."""
    with tempfile.TemporaryDirectory() as work:
        tree = pathlib.Path(work, "tree")
        subprocess.run(["dpkg-deb", "-R", str(deb), str(tree)], check=True)
        control = tree / "DEBIAN/control"
        control.write_text(re.sub(r"^Version: .*$", f"Version: {version}", control.read_text(), flags=re.M))
        conffiles = tree / "DEBIAN/conffiles"
        for conffile in conffiles.read_text().split() if conffiles.exists() else []:
            with open(f"{tree}{conffile}", "a") as file:
                file.write(ADDED_LINE)
        name, _, architecture = pathlib.Path(deb).name.split("_")
        target = pathlib.Path(folder, f"{name}_{version}_{architecture}")
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(tree), str(target)], check=True, stdout=subprocess.DEVNULL)
        return target


if __name__ == "__main__":
    for package in sys.argv[3:]:
        higher_version(package, *sys.argv[1:3])
