#!/usr/bin/env python3
"""debs_test.py BUILD: the Debian packages are built, please lintian, and are installed, upgraded and purged as they should be.

The parts in a chroot run this file again, as `debs_test.py --in-chroot BUILD CASE` in a mount namespace of its own.
"""
import os, pathlib, pwd, re, shutil, subprocess, sys, tempfile, time, unittest

from installed_links import dead_links, named_files
from repacked import ADDED_LINE, earlier_release, higher_version

ROOT = pathlib.Path(__file__).resolve().parents[2]
NO_OVERLAY = 77
PACKAGES = ("egret-backend", "egret-proxy", "egret-tools", "libegret-dev", "libegret0")
RELEASE_0_1_0 = pathlib.Path(__file__).resolve().parent / "release_0.1.0"  # the configuration files that it shipped


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


def must(*command, **more):
    done = run(*command, **more)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


# --- in the chroot


def enter_chroot(debs):
    """From here on / is an overlay over the system that forgets everything; /debs holds the packages."""
    must("mount", "--make-rprivate", "/")
    base = tempfile.mkdtemp(prefix="egret-debs-")  # whoever started us removes it
    print(base, flush=True)
    if run("mount", "-t", "tmpfs", "tmpfs", base).returncode != 0:
        sys.exit(NO_OVERLAY)
    for name in ("upper", "work", "root"):
        os.mkdir(f"{base}/{name}")
    options = f"lowerdir=/,upperdir={base}/upper,workdir={base}/work"
    if run("mount", "-t", "overlay", "overlay", "-o", options, f"{base}/root").returncode != 0:
        sys.exit(NO_OVERLAY)
    root = f"{base}/root"
    must("mount", "-t", "proc", "proc", f"{root}/proc")
    must("mount", "--rbind", "/dev", f"{root}/dev")
    must("mount", "-t", "tmpfs", "tmpfs", f"{root}/run")
    shutil.copytree(debs, f"{root}/debs")
    os.chroot(root)
    os.chdir("/")
    os.environ.update(DEBIAN_FRONTEND="noninteractive", PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C.UTF-8")


def install(*debs):
    # Slim images tell dpkg to leave documents out.
    must("dpkg", "--path-include=/usr/share/*", "--force-confdef", "-i", *(debs or sorted(map(str, pathlib.Path("/debs").glob("*.deb")))))


def ask_daemons(lines, *proxy_options):
    """What the daemons answer to these lines, started as the units start them, but for systemd."""
    sys.path.insert(0, str(ROOT / "tests/systemd"))
    from daemons import Supervised
    os.umask(0)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        def start(unit, *more):
            command = re.search(r"^ExecStart=(.*)$", pathlib.Path(f"/usr/lib/systemd/system/{unit}.service").read_text(), re.M)[1].split()
            assert command[0].startswith("/usr/bin/"), command
            return Supervised(folder, ["setpriv", "--reuid=egret", "--regid=egret", "--clear-groups", *command, *more])
        backend = start("egret-backend")
        assert backend.notice("READY=1")
        proxy = start("egret-proxy", *proxy_options)
        ready = proxy.notice("READY=1")
        assert ready, "the proxy does not serve"
        port = re.search(r"X_EGRET_LISTENING=tcp:.*:(\d+)", ready)[1]
        talk = f"exec 3<>/dev/tcp/127.0.0.1/{port}; printf '{lines}quit\\r\\n' >&3; cat <&3"
        said = must("bash", "-c", talk)
        served, options = pathlib.Path(folder, "served"), pathlib.Path(folder, "client.yaml")
        served.touch()
        options.write_text(f"backend_uids: [{pwd.getpwnam('egret').pw_uid}]\n")
        options.chmod(0o600)
        preloaded = must("egret-run", "env", f"EGRET_PRELOAD_LOG={served}", f"EGRET_CONFIG={options}", "bash", "-c", talk)
        told = served.read_text()
        proxy.close(), backend.close()
        assert preloaded.count("\n") == said.count("\n") and "is served by slots" in told, (preloaded, said, told)
        return said


def case_serves():
    install()
    said = ask_daemons("set k 0 0 5\\r\\nhello\\r\\nget k\\r\\n", "--set", "listen=tcp:127.0.0.1:0")
    assert "\nhello" in said, said


def case_files():
    install()
    for unit in ("egret-backend", "egret-proxy"):
        assert os.path.islink(f"/etc/systemd/system/multi-user.target.wants/{unit}.service"), unit
    assert not os.path.lexists("/etc/systemd/system/multi-user.target.wants/egret-memcached.service")
    for program, section in (("egret-proxy", 8), ("egret-backend", 8), ("egret-memcached", 1), ("egret-bench", 1), ("egret-top", 1), ("egret-run", 1), ("egret", 3)):
        page = f"/usr/share/man/man{section}/{program}.{section}.gz"
        said = run("man", "-l", "--warnings", page, env=os.environ | {"MANWIDTH": "100"})
        assert said.returncode == 0 and not said.stderr and program in said.stdout, (page, said.stderr)
        if section == 8:
            for row in re.findall(r"^\| `(\w+)`", must(program, "--help-markdown"), re.M):
                assert re.search(rf"^ +{row}\b", said.stdout, re.M), f"{page} does not tell of {row}"
    for line, expected in (("egret-proxy --set tls_ver", "tls_verify="), ("egret-proxy --set fetch_mode=re", "fetch_mode=reply"),
                           ("egret-backend --che", "--check-config"), ("egret-memcached --memory-l", "--memory-limit"), ("egret-bench --spawn-e", "--spawn-egret"), ("egret-top --inter", "--interval")):
        assert completed(line) == [expected], (line, completed(line))
    must("egret-proxy", "--config", "/etc/egret/egret-proxy.yaml", "--check-config")


# What a program is built with: pkg-config, CMake; and it runs against the daemons that are installed.
CMAKE_LISTS = """cmake_minimum_required(VERSION 3.25)
project(x C CXX)
find_package(egret 0.2 REQUIRED)
add_executable(x /usr/share/doc/libegret-dev/examples/first.cc)
set_target_properties(x PROPERTIES CXX_STANDARD 20)
target_link_libraries(x PRIVATE egret::egret)
"""


def case_library():
    install()
    os.mkdir("/program")
    flags = must("pkg-config", "--cflags", "--libs", "egret").split()
    assert "egret_mget" in must("man", "egret_mget"), "each function has a man page"
    must("cc", "-o", "/program/first", "/usr/share/doc/libegret-dev/examples/first.c", *flags)
    pathlib.Path("/program/CMakeLists.txt").write_text(CMAKE_LISTS)
    must("cmake", "-S", "/program", "-B", "/program/build")
    must("cmake", "--build", "/program/build")
    assert "libegret.so.0 => /usr/lib/" in re.sub(r"/lib/", "/usr/lib/", must("ldd", "/program/first"), count=1)
    pathlib.Path("/program/client.yaml").write_text("backends: [shm:/program/backend]\n")
    backend = subprocess.Popen(["egret-backend", "--config", "/dev/null", "--set", "listen=shm:/program/backend", "--set", "admin=", "--set", "memory=32MiB"], stderr=subprocess.DEVNULL)
    environment = os.environ | {"EGRET_CONFIG": "/program/client.yaml"}
    said = run("/program/first", env=environment)
    for _ in range(600):
        if said.returncode == 0 or backend.poll() is not None:
            break
        time.sleep(0.05)
        said = run("/program/first", env=environment)
    assert "get: hello" in said.stdout, said
    assert "changed" not in must("/program/build/x", env=environment)
    backend.terminate(), backend.wait()


def completed(line):
    """What bash offers for the last word of a line."""
    program = line.split()[0]
    return must("bash", "-c", f'''. /usr/share/bash-completion/bash_completion
        . /usr/share/bash-completion/completions/{program}
        COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDS=({line}) COMP_CWORD={len(line.split()) - 1}
        compopt() {{ :; }}
        _{program.replace("-", "_")} 2>/dev/null
        printf '%s\\n' "${{COMPREPLY[@]}}"''').split()


def case_upgrade():
    install()
    edited, untouched = "/etc/egret/egret-proxy.yaml", "/etc/default/egret-memcached"
    pathlib.Path(edited).write_text("workers: 3\n")
    install(higher_version(next(pathlib.Path("/debs").glob("egret-proxy_*.deb")), "99.0", "/"))
    assert "99.0" in must("dpkg-query", "-W", "egret-proxy")
    assert pathlib.Path(edited).read_text() == "workers: 3\n"
    assert pathlib.Path(untouched).read_text().endswith(ADDED_LINE)


# What an operator has set in the files of 0.1.0.
EDITED = {"/etc/egret/egret-proxy.yaml": {"listen": "tcp:127.0.0.1:0", "workers": "1", "max_connections": "100", "fetch_min": "512"},
          "/etc/egret/egret-backend.yaml": {"memory": "32MiB", "partitions": "1", "lane_idle": "1ms"}}


def edited(path):
    """Edits the file: every option of 0.1.0 is set, these to other values than their defaults. Returns its text."""
    text = re.sub(r"^#(\w+:)", r"\1", pathlib.Path(path).read_text(), flags=re.M)
    for key, value in EDITED[path].items():
        text, found = re.subn(rf"^{key}: .*$", f"{key}: {value}", text, flags=re.M)
        assert found == 1, f"0.1.0 had no option {key}"
    pathlib.Path(path).write_text(text)
    return text


def shipped(deb, path):
    """A file as the package has it."""
    return must("bash", "-c", f"dpkg-deb --fsys-tarfile {deb} | tar -xO .{path}")


def case_upgrade_from_0_1_0():
    """Files of 0.1.0 that were edited are kept, the new daemons take them and obey them; a file that was not edited is renewed."""
    debs = {path.name.split("_")[0]: path for path in pathlib.Path("/debs").glob("egret-*.deb")}  # 0.1.0 had no library
    os.mkdir("/earlier")
    install(*(str(earlier_release(deb, "0.1.0", "/earlier", RELEASE_0_1_0)) for deb in debs.values()))
    assert must("dpkg-query", "-W", "-f", "${Version} ", *debs) == "0.1.0 " * len(debs)
    before = {path: edited(path) for path in EDITED}
    for package in ("egret-backend", "egret-proxy", "egret-tools"):
        install(str(debs[package]))
    assert "0.1.0" not in must("dpkg-query", "-W", "-f", "${Version} ", *debs)
    for path in EDITED:
        program = pathlib.Path(path).stem
        assert pathlib.Path(path).read_text() == before[path], f"{path} was edited, and is not what it was"
        now, then = shipped(debs[program], path), pathlib.Path(f"{RELEASE_0_1_0}{path}").read_text()
        beside = pathlib.Path(f"{path}.dpkg-dist")
        assert beside.exists() == (now != then) and (not beside.exists() or beside.read_text() == now), f"{beside}: the new file, if it is another"
        must(program, "--config", path, "--check-config")
    untouched = "/etc/default/egret-memcached"
    assert pathlib.Path(untouched).read_text() == shipped(debs["egret-proxy"], untouched)
    said = ask_daemons("stats settings\\r\\nstats\\r\\n")
    assert re.search(r"STAT maxconns 100\b", said) and re.search(rf"STAT limit_maxbytes {32 << 20}\b", said), said


def every_name():
    """What is in the system, but for caches, backups of the databases and the source tree."""
    found = must("find", "/etc", "/usr", "/var", "/run", "-path", str(ROOT), "-prune", "-o", "-path", "/var/cache", "-prune", "-o", "-print")
    return {name for name in found.splitlines() if not re.search(r"^/etc/\.pwd\.lock$|^/etc/\w+-$|^/var/(log|tmp)/|^/var/lib/dpkg/(lock|triggers|[\w-]+-old$)", name)}


def case_purge():
    before = every_name()
    install()
    pathlib.Path("/etc/egret/egret-proxy.yaml").write_text("workers: 3\n")
    must("dpkg", "--purge", "egret-proxy")
    assert os.path.exists("/run/egret") and "egret" in pathlib.Path("/etc/passwd").read_text(), "the backend still needs them"
    must("dpkg", "--purge", "egret-backend", "egret-tools", "libegret-dev", "libegret0")
    left = every_name() - before
    assert not left, left
    for database in ("passwd", "group", "shadow"):
        assert "egret" not in pathlib.Path(f"/etc/{database}").read_text(), database


# --- outside


class Debs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="egret-debs-")
        cls.addClassCleanup(cls.folder.cleanup)
        must("cpack", "--config", str(BUILD / "CPackConfig.cmake"), "-D", f"CPACK_OUTPUT_FILE_PREFIX={cls.folder.name}", "-B", cls.folder.name, cwd=BUILD)
        cls.debs = sorted(str(deb) for deb in pathlib.Path(cls.folder.name).glob("*.deb"))

    def test_there_are_five(self):
        self.assertEqual([pathlib.Path(deb).name.split("_")[0] for deb in self.debs], list(PACKAGES))

    def test_lintian_has_no_complaint(self):
        done = run("lintian", "--no-cfg", "--allow-root", "--fail-on", "error,warning", *self.debs)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def unpacked(self, deb):
        """The files of one package alone."""
        folder = tempfile.TemporaryDirectory(prefix="egret-deb-")
        self.addCleanup(folder.cleanup)
        must("dpkg-deb", "-x", deb, folder.name)
        return folder.name

    def test_every_link_of_an_installed_document_leads_to_an_installed_file(self):
        for deb, package in zip(self.debs, PACKAGES):
            with self.subTest(package):
                looked_at, wrong = dead_links(self.unpacked(deb), package)
                self.assertEqual(wrong, [])
                if package.startswith("egret"):
                    self.assertGreater(looked_at, 100, "the documents are not there")

    def test_a_dead_link_is_found(self):
        """So that a check which finds none is one that looked."""
        root = pathlib.Path(self.unpacked(self.debs[0]))
        (root / "usr/share/doc/egret-backend/docs/operate/pools.md").unlink()
        self.assertIn("pools.md is not installed", "".join(dead_links(root, "egret-backend")[1]))

    def test_documents_that_units_and_man_pages_name_are_installed(self):
        for deb, package in zip(self.debs, PACKAGES):
            root = self.unpacked(deb)
            names = set(named_files(root))
            self.assertEqual([name for name in names if not pathlib.Path(root, name).exists()], [])
            self.assertEqual(bool(names), package not in ("egret-tools", "libegret0"))

    def in_chroot(self, case):
        if os.geteuid() != 0:
            self.skipTest("only root can make a chroot")
        debs = os.path.join(self.folder.name, "debs")
        os.makedirs(debs, exist_ok=True)
        for deb in self.debs:
            shutil.copy(deb, debs)
        done = run("unshare", "--mount", sys.executable, __file__, "--in-chroot", debs, case)
        base = done.stdout.split("\n")[0]
        if os.path.isdir(base):
            os.rmdir(base)  # where the overlay was, in its own namespace
        if done.returncode == NO_OVERLAY:
            self.skipTest("no overlay can be mounted here")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_installed_daemons_serve(self):
        self.in_chroot("serves")

    def test_everything_is_in_its_place(self):
        self.in_chroot("files")

    def test_a_program_is_built_with_the_library(self):
        self.in_chroot("library")

    def test_an_upgrade_keeps_what_was_edited(self):
        self.in_chroot("upgrade")

    def test_an_upgrade_from_0_1_0_keeps_what_was_edited_and_obeys_it(self):
        self.in_chroot("upgrade_from_0_1_0")

    def test_a_purge_leaves_nothing(self):
        self.in_chroot("purge")


if __name__ == "__main__":
    if sys.argv[1] == "--in-chroot":
        enter_chroot(sys.argv[2])
        globals()[f"case_{sys.argv[3]}"]()
    else:
        BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
        unittest.main()
