#!/usr/bin/env python3
"""repacked.py VERSION FOLDER DEB...: the same packages with another version, a higher one than theirs: each conffile has one more comment line.

As a module also `earlier_release`: the packages as an earlier release had them, as far as an upgrade looks at them.
"""
import pathlib, re, shutil, subprocess, sys, tempfile

ADDED_LINE = "# next\n"


def repacked(deb, version, folder, change_conffile):
    """Writes the package with this version into the folder and returns its path. `change_conffile`: called with each conffile's own path and its path in the tree."""
    with tempfile.TemporaryDirectory() as work:
        tree = pathlib.Path(work, "tree")
        subprocess.run(["dpkg-deb", "-R", str(deb), str(tree)], check=True)
        control = tree / "DEBIAN/control"
        control.write_text(re.sub(r"^Version: .*$", f"Version: {version}", control.read_text(), flags=re.M))
        conffiles = tree / "DEBIAN/conffiles"
        for conffile in conffiles.read_text().split() if conffiles.exists() else []:
            change_conffile(conffile, pathlib.Path(f"{tree}{conffile}"))
        name, _, architecture = pathlib.Path(deb).name.split("_")
        target = pathlib.Path(folder, f"{name}_{version}_{architecture}")
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(tree), str(target)], check=True, stdout=subprocess.DEVNULL)
        return target


def higher_version(deb, version, folder):
    def one_more_line(_, file):
        with file.open("a") as end:
            end.write(ADDED_LINE)
    return repacked(deb, version, folder, one_more_line)


def earlier_release(deb, version, folder, files):
    """The package with the conffiles that this release shipped, which are below `files`."""
    return repacked(deb, version, folder, lambda conffile, file: shutil.copyfile(f"{files}{conffile}", file))


if __name__ == "__main__":
    for package in sys.argv[3:]:
        higher_version(package, *sys.argv[1:3])
