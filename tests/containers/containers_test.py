#!/usr/bin/env python3
"""containers_test.py BUILD: the files of docker/ are well-formed and say what the daemons take; the health check tells well from ill."""
import contextlib, os, pathlib, re, shutil, subprocess, sys, tempfile, unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "tests/systemd"))
from daemons import Daemons
HEALTH_CHECK = ROOT / "docker/healthcheck.sh"


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    return done.returncode, done.stdout + done.stderr


def listening(pid):
    """The loopback addresses that a process listens on."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    rows = [row.split() for row in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [f"127.0.0.1:{int(row[1].split(':')[1], 16)}" for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="egret-containers-")
        cls.addClassCleanup(cls.folder.cleanup)
        here = pathlib.Path(__file__).parent
        for name in ("package.json", "check.js"):
            shutil.copy(here / name, cls.folder.name)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"], cwd=cls.folder.name, check=True,
                       stdout=subprocess.DEVNULL)

    def check(self, root, *more):
        return run("node", "check.js", str(root), *more, cwd=self.folder.name)

    def test_manifests_and_dockerfile_are_well_formed(self):
        self.assertEqual(self.check(ROOT)[0], 0, self.check(ROOT)[1])

    def test_manifests_name_the_images_of_this_version(self):
        version = run(BUILD / "egret-proxy", "--version")[1].split()[-1]
        for name, image in (("backend", "backend"), ("gutter", "backend"), ("proxy", "proxy")):
            manifest = (ROOT / f"docker/kubernetes/{name}.yaml").read_text()
            self.assertEqual(re.findall(r"image: (egret-\S+)", manifest), [f"egret-{image}:{version}"])

    def test_the_check_finds_what_is_wrong(self):
        """So that a check which finds nothing is one that looked."""
        faults = {"kubernetes/proxy.yaml": [("terminationGracePeriodSeconds: 10", "terminationGraceSeconds: 10"), ("containerPort: 11211", "containerPort: many"),
                                            ("configMap: {name: egret-proxy}", "configMap: {name: another}")],
                  "Dockerfile": [("WORKDIR", "WORKDIRECTORY")]}
        for file, changes in faults.items():
            for before, after in changes:
                with tempfile.TemporaryDirectory() as copy:
                    shutil.copytree(ROOT / "docker", f"{copy}/docker")
                    at = pathlib.Path(copy, "docker", file)
                    self.assertIn(before, at.read_text())
                    at.write_text(at.read_text().replace(before, after, 1))
                    status, said = self.check(copy)
                    self.assertEqual((status, file.split("/")[-1] in said or "proxy" in said), (1, True), said)

    def test_the_daemons_take_the_configuration_in_the_manifests(self):
        with tempfile.TemporaryDirectory() as folder:
            secret = pathlib.Path(folder, "secret")
            secret.write_text("x" * 32)
            secret.chmod(0o400)
            self.check(ROOT, folder)
            for program, file in (("egret-backend", "egret-backend"), ("egret-backend", "egret-gutter"), ("egret-proxy", "egret-proxy")):
                status, said = run(BUILD / program, "--config", f"{folder}/{file}.yaml", "--set", f"secret_file={secret}", "--check-config")
                self.assertEqual(status, 0, said)

    def test_compose_takes_its_files_and_the_daemons_their_commands(self):
        services = {"compose.yaml": ["backend", "proxy"], "compose.rdma.yaml": ["backend", "proxy"], "compose.tcp.yaml": ["backend", "proxy"],
                    "compose.pool.yaml": ["one", "two", "spare", "proxy"]}
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        made = run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=host", "-keyout", f"{folder}/host.key",
                   "-out", f"{folder}/host.pem")
        self.assertEqual(made[0], 0, made[1])
        shutil.copy(f"{folder}/host.pem", f"{folder}/ca.pem")
        for file, names in services.items():
            status, said = run("docker-compose", "-f", str(ROOT / "docker" / file), "config", env=os.environ | {"BACKEND": "10.0.0.2"})
            self.assertEqual(status, 0, said)
            for service in names:
                section = re.search(rf"^  {service}:\n((?:    .*\n)+)", said, re.M)[1]
                command = re.search(r"^    command:\n((?:    - .*\n)+)", section, re.M)[1]
                words = [line.strip()[2:].strip("'\"").replace("/certificates/", f"{folder}/") for line in command.splitlines()]
                program = re.search(r"^    image: (\S+)$", section, re.M)[1]
                status, answer = run(BUILD / program, *words, "--check-config")
                self.assertEqual(status, 0, f"{file}: {words}: {answer}")

    def test_without_an_address_rdma_is_refused(self):
        self.assertNotEqual(run("docker-compose", "-f", str(ROOT / "docker/compose.rdma.yaml"), "config")[0], 0)


class Health(unittest.TestCase):
    def check(self, *words):
        return run(str(HEALTH_CHECK), *map(str, words))[0]

    def test_it_tells_well_from_ill(self):
        with Daemons(BUILD) as daemons:
            place = daemons.folder.name
            where = daemons.address()
            self.assertEqual((self.check("proxy", *where), self.check("ready", *where), self.check("backend", f"{place}/backend.sock")), (0, 0, 0))
            daemons.backend.process.kill()
            daemons.backend.process.wait()
            self.assertNotEqual(self.check("ready", *where), 0)
            self.assertNotEqual(self.check("backend", f"{place}/backend.sock"), 0)
            self.assertEqual(self.check("proxy", *where), 0)
        self.assertNotEqual(self.check("proxy", *where), 0)
        self.assertNotEqual(self.check("neither"), 0)

    def test_without_an_address_it_asks_for_the_threads(self):
        """As the images do: at the admin address."""
        with Daemons(BUILD, backend_options=("admin=127.0.0.1:0",), proxy_options=("admin=127.0.0.1:0",)) as daemons:
            admin = {}
            for name, pid in (("backend", daemons.backend.process.pid), ("proxy", daemons.proxy.process.pid)):
                admin[name] = next(address for address in listening(pid) if address != ":".join(map(str, daemons.address())))
            for what, name in (("proxy", "proxy"), ("ready", "proxy"), ("backend", "backend")):
                self.assertEqual(self.check_at(admin[name], what), 0, what)
            daemons.backend.process.kill()
            daemons.backend.process.wait()
            self.assertNotEqual(self.check_at(admin["backend"], "backend"), 0)
            self.assertNotEqual(self.check_at(admin["proxy"], "ready"), 0)
            self.assertEqual(self.check_at(admin["proxy"], "proxy"), 0)

    def check_at(self, admin, what):
        return run(str(HEALTH_CHECK), what, env=os.environ | {"EGRET_ADMIN": admin})[0]


if __name__ == "__main__":
    unittest.main()
