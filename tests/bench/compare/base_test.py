"""`make compare`'s scripts on a repository made up for the test: what base.sh builds of another commit, and what run.sh
passes on and writes.

    base_test.py FOLDER-OF-THE-SCRIPTS
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(sys.argv.pop(1))

# The programs are files with the commit's word in them.
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(egret LANGUAGES NONE)
foreach(program backend proxy memcached)
  add_custom_target(egret-${program} COMMAND ${CMAKE_COMMAND} -E make_directory ${program}
                    COMMAND cp ${CMAKE_SOURCE_DIR}/word ${program}/egret-${program} COMMAND chmod +x ${program}/egret-${program})
endforeach()
"""
PRESETS = {"version": 6, "configurePresets": [{"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build/release"}]}

# In place of egret-bench: writes down how it was called, and the files it was asked for.
BENCH = """#!/bin/sh
for each; do printf '%s\\n' "$each"; done >>called
while [ $# -gt 1 ]; do
  case $1 in --json) echo "new figures" >"$2" ;; --markdown) cp tables "$2" ;; -o) echo "new picture" >"$2/cpu.svg" ;; esac
  shift
done
"""
# The tables that it prints: the rows that README.md shows, and one more.
ROWS = ("32 B, depth 1, TCP", "32 B, depth 16, TCP", "32 B, multiget of 50, TCP", "1 KiB, depth 1, TCP", "100 KiB, depth 1, TCP",
        "32 B, 20,000 requests/s, TCP", "another row")
TABLES = ("what was run\n\n| workload | one process |\n| --- | --- |\n" + "".join(f"| {row} | of another table |\n" for row in ROWS) +
          "\n| workload | CPU per op |\n| --- | --- |\n" + "".join(f"| {row} | new figures |\n" for row in ROWS))
README = "before\n<!-- compare -->\nold table\n<!-- /compare -->\nafter\n"


class Repository(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.git("init", "-q")
        shutil.copytree(SCRIPTS, self.root / "tools/bench/compare")
        (self.root / "CMakeLists.txt").write_text(CMAKE)
        (self.root / "CMakePresets.json").write_text(json.dumps(PRESETS))
        (self.root / ".gitignore").write_text("/build/\n/called\n/tables\n")
        (self.root / "tables").write_text(TABLES)
        (self.root / "README.md").write_text(README)
        (self.root / "docs/benchmarks/figures").mkdir(parents=True)
        (self.root / "docs/benchmarks/results.md").write_text(README)
        (self.root / "docs/benchmarks/figures/compare.json").write_text("old figures\n")
        (self.root / "conf").mkdir()
        (self.root / "tools/memcached/oneprocess").mkdir(parents=True)
        (self.root / "tools/memcached/oneprocess/main.cc").write_text("")
        bench = self.root / "build/release/egret-bench"
        bench.parent.mkdir(parents=True)
        bench.write_text(BENCH)
        bench.chmod(0o755)
        self.commits = [self.commit("first"), self.commit("second")]

    def git(self, *arguments):
        done = subprocess.run(["git", "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments], cwd=self.root, check=True,
                              capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, word):
        (self.root / "word").write_text(word)
        (self.root / "conf/egret-proxy.yaml").write_text(f"# {word}\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", word)
        return self.git("rev-parse", "HEAD")

    def run_script(self, name, *arguments, **environment):
        clean = {name: value for name, value in os.environ.items() if name not in ("BASE", "MEMCACHED", "TWEMPROXY")}
        return subprocess.run([self.root / "tools/bench/compare" / name, *arguments], capture_output=True, text=True, timeout=60,
                              cwd="/", env={**clean, **environment})


class Base(Repository):
    def build(self, ref):
        done = self.run_script("base.sh", ref)
        self.assertEqual(done.returncode, 0, done.stderr)
        return pathlib.Path(done.stdout.strip()), done.stderr

    def test_the_programs_and_the_configuration_are_those_of_the_commit(self):
        folder, _ = self.build("HEAD~1")
        self.assertEqual(folder, self.root / "build/base" / self.commits[0] / "bin")
        self.assertEqual({each.name: each.read_text() for each in folder.iterdir()},
                         {"egret-backend": "first", "egret-proxy": "first", "egret-memcached": "first"})
        self.assertTrue(all(os.access(each, os.X_OK) for each in folder.iterdir()))
        self.assertEqual((folder / "../conf/egret-proxy.yaml").read_text(), "# first\n")

    def test_a_commit_whose_egret_memcached_starts_the_daemons_has_these_built_alone(self):
        shutil.rmtree(self.root / "tools/memcached/oneprocess")
        folder, _ = self.build(self.commit("of old"))
        self.assertEqual({each.name: each.read_text() for each in folder.iterdir()}, {"egret-backend": "of old", "egret-proxy": "of old"})

    def test_the_tree_and_the_list_of_work_trees_are_as_before(self):
        self.build("HEAD~1")
        self.assertEqual(self.git("status", "--short"), "")
        self.assertEqual(self.git("rev-parse", "HEAD"), self.commits[1])
        self.assertEqual(len(self.git("worktree", "list").splitlines()), 1)

    def test_a_commit_is_built_once(self):
        folder, _ = self.build("HEAD~1")
        (folder / "egret-proxy").write_text("kept")
        again, said = self.build(self.commits[0])
        self.assertEqual(((again / "egret-proxy").read_text(), said), ("kept", ""))
        self.assertNotEqual(self.build("HEAD")[0], folder)

    def test_a_commit_that_does_not_exist(self):
        done = self.run_script("base.sh", "no-such-commit")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", "base.sh: no commit is called no-such-commit\n"))

    def test_a_commit_that_does_not_build_leaves_nothing_that_looks_built(self):
        (self.root / "CMakeLists.txt").write_text("broken(")
        broken = self.commit("broken")
        done = self.run_script("base.sh", broken)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertFalse((self.root / "build/base" / broken / "bin").exists())
        self.assertEqual(len(self.git("worktree", "list").splitlines()), 1)


class Run(Repository):
    def run_compare(self, *options, **environment):
        done = self.run_script("run.sh", *options, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.root / "called").read_text().splitlines()

    def test_a_run_of_everything_replaces_the_figures(self):
        called = self.run_compare("--quiet", "0.3")
        self.assertEqual(called[:6], ["compare", "--spawn-egret", "build/release", "--sweep", "--quiet", "0.3"])
        self.assertIn("| another row | new figures |", (self.root / "docs/benchmarks/results.md").read_text())
        self.assertIn("| 32 B, depth 1, TCP | new figures |", (self.root / "README.md").read_text())
        self.assertNotIn("another row", (self.root / "README.md").read_text())
        self.assertNotIn("another table", (self.root / "README.md").read_text())
        self.assertEqual((self.root / "docs/benchmarks/figures/compare.json").read_text(), "new figures\n")
        self.assertEqual((self.root / "docs/benchmarks/figures/cpu.svg").read_text(), "new picture\n")

    def test_the_peers_are_those_that_are_named(self):
        called = self.run_compare(MEMCACHED="/opt/memcached", TWEMPROXY="/opt/nutcracker")
        self.assertEqual(called[called.index("--memcached") + 1], "/opt/memcached -t 1")
        self.assertEqual(called[called.index("--twemproxy") + 1], "/opt/nutcracker")

    def test_some_rows_replace_nothing(self):
        called = self.run_compare("--case", "32 B, depth 1")
        self.assertEqual(called[called.index("--case") + 1], "32 B, depth 1")
        self.assertEqual(self.git("status", "--short"), "")

    def test_with_a_base_both_builds_run_and_nothing_is_replaced(self):
        called = self.run_compare("--rounds", "7", BASE="HEAD~1")
        self.assertEqual(called[called.index("--base") + 1], str(self.root / "build/base" / self.commits[0] / "bin"))
        self.assertTrue(self.commits[0].startswith(called[called.index("--base-name") + 1]))
        self.assertEqual(called[called.index("--rounds") + 1], "7")
        self.assertEqual(self.git("status", "--short"), "")

    def test_a_base_that_does_not_exist_measures_nothing(self):
        done = self.run_script("run.sh", BASE="no-such-commit")
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse((self.root / "called").exists())


if __name__ == "__main__":
    unittest.main(verbosity=1)
