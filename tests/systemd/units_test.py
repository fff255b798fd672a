#!/usr/bin/env python3
"""units_test.py BUILD: the units are well-formed and hardened, and their system call filters let the daemons do all they do."""
import pathlib, re, subprocess, sys, tempfile, unittest

from daemons import Daemons

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
UNITS = sorted((ROOT / "systemd").glob("*.service"))
SOCKETS = sorted((ROOT / "systemd").glob("*.socket"))
MOST_EXPOSURE = 2.0


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def values(text, key):
    return re.findall(rf"^{key}=(.*)$", text, re.M)


def calls_of(group):
    """The system calls of a group like @system-service, groups within it included."""
    found = set()
    for line in subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True).stdout.splitlines():
        name = line.strip()
        if line.startswith("    ") and not name.startswith("#"):
            found |= calls_of(name) if name.startswith("@") else {name}
    return found


def allowed_calls(text):
    """As systemd.exec(5) has it: the first line makes an allow list, later ones add to it or, with ~, take from it."""
    allowed = set()
    for line in values(text, "SystemCallFilter"):
        named = set()
        for word in line.removeprefix("~").split():
            named |= calls_of(word) if word.startswith("@") else {word}
        allowed = allowed - named if line.startswith("~") else allowed | named
    return allowed


class Units(unittest.TestCase):
    def test_there_are_units(self):
        self.assertEqual([unit.stem for unit in UNITS], ["egret-backend", "egret-memcached", "egret-proxy"])
        self.assertEqual([unit.stem for unit in SOCKETS], ["egret-proxy"])

    def test_each_is_well_formed(self):
        with tempfile.TemporaryDirectory() as folder:
            for unit in UNITS + SOCKETS:  # as installed from this build; no man page has been installed for it
                text = unit.read_text().replace("/usr/local/bin", str(BUILD))
                pathlib.Path(folder, unit.name).write_text(re.sub("^Documentation=.*\n", "", text, flags=re.M))
            drop_in = pathlib.Path(folder, "egret-backend.service.d")
            drop_in.mkdir()
            (drop_in / "placement.conf").write_text((ROOT / "systemd/placement.conf").read_text())
            for unit in UNITS + SOCKETS:
                status, said = run("systemd-analyze", "verify", "--recursive-errors=no", "--man=no", f"{folder}/{unit.name}")
                ours = [line for line in said.splitlines() if "egret" in line]
                self.assertEqual((status, ours), (0, []), unit.name)

    def test_each_is_hardened(self):
        for unit in UNITS:
            status, said = run("systemd-analyze", "security", "--offline=true",
                               f"--threshold={int(MOST_EXPOSURE * 10)}", str(unit))
            self.assertEqual(status, 0, said)
            exposure = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)[1])
            self.assertLessEqual(exposure, MOST_EXPOSURE, unit.name)

    def test_only_rdma_devices_are_allowed(self):
        for unit in UNITS:
            for device in values(unit.read_text(), "DeviceAllow"):
                self.assertRegex(device, r"^(char-infiniband_verbs|/dev/infiniband/rdma_cm) rw$", unit.name)

    def test_the_filters_let_daemons_do_what_they_do(self):
        """Every call that both make from start to stop, pinned to CPUs, with large values, is on the unit's list."""
        with tempfile.TemporaryDirectory() as folder:
            def traced(name):
                return ["strace", "-D", "-f", "-qq", "-o", f"{folder}/{name}"]
            options = ["pin=on"]
            with Daemons(BUILD, traced, {"WATCHDOG_USEC": "400000"}, ["lock_memory=true", *options], options) as both:
                self.assertEqual(both.ask(b"set k 0 0 500000\r\n" + b"x" * 500000 + b"\r\n", b"\r\n"), b"STORED\r\n")
                self.assertTrue(both.ask(b"get k\r\n", b"END\r\n").startswith(b"VALUE k 0 500000\r\n"))
                self.assertIn(b"STAT pid", both.ask(b"stats\r\n", b"END\r\n"))
                self.assertIsNotNone(both.backend.notice("WATCHDOG=1"))
            for name in ("egret-backend", "egret-proxy"):
                made = set(re.findall(r"^\d+ +(\w+)\(", pathlib.Path(folder, name).read_text(), re.M))
                self.assertIn("memfd_create" if name == "egret-backend" else "accept4", made)
                self.assertIn("sched_setaffinity", made)
                allowed = allowed_calls((ROOT / f"systemd/{name}.service").read_text())
                self.assertEqual(made - allowed - {"execve"}, set(), name)


if __name__ == "__main__":
    unittest.main()
