#!/usr/bin/env python3
"""optimised_test.py BUILD [WHOLE]: what the preset `optimised` is made of (conf/packaging/optimised).

Without WHOLE it compiles nothing: which flags each of the two stages gives the daemons' sources, what is refused, that the daemons of BUILD
serve each load of the training. With WHOLE it also builds the preset, and runs conformance tests against it (25 minutes).
"""
import json, os, pathlib, re, subprocess, sys, tempfile, unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTIMISED = ROOT / "conf/packaging/optimised"
BUILD = pathlib.Path(sys.argv[1]).resolve()
OF_DAEMONS = re.compile(r"^(backend|proxy|protocol|tools/memcached)/")
GATHER = ("-fprofile-generate", "-fprofile-update=prefer-atomic")
USE = ("-fprofile-use", "-fprofile-partial-training", "-flto")
LOADS = 18  # for each of the two: one process, and two daemons
CONFORMANCE = ("test_meta_commands.py", "test_binary_protocol.py", "test_random.py", "test_sizes.py")


def configure(folder, **cache):
    options = [f"-D{name}={value}" for name, value in cache.items()]
    return subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DEGRET_UNITS=OFF",
                           *options], capture_output=True, text=True)


def commands(folder):
    """{source: its command} of what the daemons are made of."""
    rows = json.loads(pathlib.Path(folder, "compile_commands.json").read_text())
    by_source = {os.path.relpath(row["file"], ROOT): row["command"] for row in rows}
    return {source: command for source, command in by_source.items() if OF_DAEMONS.match(source)}


class Stages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="egret-optimised-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def assert_all_have(self, flags):
        found = commands(self.folder)
        self.assertGreater(len(found), 200)
        for source, command in found.items():
            self.assertEqual([flag for flag in flags if flag not in command], [], source)
            self.assertNotIn("ccache", command, source)

    def test_each_source_counts_and_then_is_compiled_by_its_counts(self):
        done = configure(self.folder, EGRET_PROFILE="gather")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_all_have(GATHER)
        done = configure(self.folder, EGRET_PROFILE="use")
        self.assertNotEqual(done.returncode, 0, "there are no counts")
        self.assertIn("conf/packaging/optimised/build.sh gathers them", re.sub(r"\s+", " ", done.stderr))
        for part in ("backend", "proxy", "protocol/rpc"):
            pathlib.Path(self.folder, part, "counts.gcda").touch()
        self.assertIn("tools/memcached has no counts", re.sub(r"\s+", " ", configure(self.folder, EGRET_PROFILE="use").stderr))
        pathlib.Path(self.folder, "tools/memcached/counts.gcda").touch()
        done = configure(self.folder, EGRET_PROFILE="use")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_all_have(USE)

    def test_what_a_build_for_packages_compiles_is_all_that_they_install(self):
        self.assertEqual(configure(self.folder, EGRET_PROFILE="gather").returncode, 0)
        ninja = lambda *tool: subprocess.run(["ninja", "-C", self.folder, "-t", *tool], capture_output=True, text=True, check=True).stdout.splitlines()
        compiled = {row.split(": ")[0] for row in ninja("targets", "all") if ": CXX_" in row and "_LINKER_" in row}
        installed = set()
        for script in pathlib.Path(self.folder).rglob("cmake_install.cmake"):
            for name in re.findall(rf'"{re.escape(self.folder)}/([^"]+)"', script.read_text()):
                installed |= {name} & compiled
        self.assertLessEqual({"egret-proxy", "egret-backend", "libegret-preload.so"}, installed)
        self.assertEqual(installed - set(re.findall(r" -o (\S+)", "\n".join(ninja("commands", "shipped")))), set())

    def test_what_is_no_stage_and_another_compiler_are_refused(self):
        for cache, complaint in (({"EGRET_PROFILE": "yes"}, "gather or use, not yes"), ({"EGRET_PROFILE": "gather", "CMAKE_CXX_COMPILER": "clang++"}, "is for gcc, not for Clang")):
            with self.subTest(complaint), tempfile.TemporaryDirectory(prefix="egret-optimised-") as folder:
                done = configure(folder, **cache)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(complaint, re.sub(r"\s+", " ", done.stderr))


class Comparison(unittest.TestCase):
    def test_it_refuses_programs_that_are_not_built(self):
        script = "tools/bench/compare/run.sh"
        with tempfile.TemporaryDirectory(prefix="egret-optimised-") as root:
            copy = pathlib.Path(root, script)
            copy.parent.mkdir(parents=True)
            copy.write_text((ROOT / script).read_text())
            done = subprocess.run(["sh", copy], capture_output=True, text=True, env={**os.environ, "OPTIMISED": "yes"})
        self.assertEqual((done.returncode, done.stderr), (1, "`make optimised` builds what is to be compared\n"))


class Training(unittest.TestCase):
    def test_every_load_is_served(self):
        done = subprocess.run([OPTIMISED / "train.sh", BUILD, "0.05"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = done.stderr.count("run, round 1, ")
        self.assertEqual((rows, done.stderr.count("Egret: ")), (2 * LOADS, LOADS), done.stderr)


class Whole(unittest.TestCase):
    def test_what_is_built_serves_as_a_release_does(self):
        done = subprocess.run(["make", "deb", "OPTIMISED=yes"], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])
        self.assertEqual(len(list(ROOT.glob("build/optimised/packages/*.deb"))), done.stdout.count(".deb\n"))
        tests = [ROOT / "tests/conformance" / name for name in CONFORMANCE]
        for one_process in {}, {"EGRET_ONE_PROCESS": "1"}:
            with self.subTest(one_process=bool(one_process)):
                done = subprocess.run(["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], cwd=ROOT, capture_output=True, text=True,
                                      env={**os.environ, "EGRET_BUILD": str(ROOT / "build/optimised"), **one_process})
                self.assertEqual(done.returncode, 0, done.stdout[-6000:])


if __name__ == "__main__":
    if sys.argv.pop() != "WHOLE":
        del Whole
    else:
        sys.argv.pop()
    unittest.main(argv=sys.argv[:1], verbosity=2)
