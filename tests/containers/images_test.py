#!/usr/bin/env python3
"""images_test.py: the images of docker/Dockerfile are built by buildah and run by podman, as compose.yaml says, and serve.

    mmdebstrap ─▶ debian:12, debian:12-slim ─▶ buildah: Dockerfile ─▶ egret-backend, egret-proxy, egret-memcached ─▶ podman run

All of it is kept in build/release/containers (EGRET_BUILD: another build folder), nothing in this host's own storage. Ports are this host's: containers get no network of their own.
"""
import contextlib, json, os, pathlib, re, resource, shutil, socket, subprocess, time, unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("EGRET_BUILD", ROOT / "build/release")).resolve()
WORK = BUILD / "containers"
STORAGE = ["--root", str(WORK / "storage"), "--runroot", str(WORK / "run")]
BASE = "docker.io/library/debian:12"
TARGETS = ("backend", "proxy", "memcached")
MOST_ABOVE_BASE = 40_000_000
MOST_OFF_DOCUMENT_MB = 1
PATIENCE_SECONDS = 60
MOST_OF_A_LIMIT = 4096  # podman's own are more than whoever runs this may have
ENVIRONMENT = os.environ | {"DISABLE_HC_SYSTEMD": "true"}  # health checks are made here, not by timers of a systemd
# As the official image is made slim.
SLIM = "rm -rf /usr/share/doc/* /usr/share/man/* /usr/share/info/* /usr/share/locale/* /var/lib/apt/lists/* /var/cache/apt/*; " \
       "for folder in doc man info locale; do echo path-exclude=/usr/share/$folder/*; done >/etc/dpkg/dpkg.cfg.d/slim"


def run(*command, **more):
    return subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, **more)


def must(*command, **more):
    done = run(*command, **more)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout.strip()


def buildah(*words):
    return must("buildah", *STORAGE, *words)


def podman(*words):
    return must("podman", "--runtime", "runc", *STORAGE, *words)


def make_base():
    """Debian as an image, without a registry to get it from; once."""
    if run("buildah", *STORAGE, "inspect", "--type", "image", f"{BASE}-slim").returncode == 0:
        return
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "sources.list").write_text(must(ROOT / "tests/packages/mirrors.sh"))
    mirrors = [WORK / "sources.list"] if (WORK / "sources.list").stat().st_size else []
    must("mmdebstrap", "--quiet", "--variant=minbase", "bookworm", WORK / "debian.tar", *mirrors)
    container = buildah("from", "scratch")
    buildah("add", container, WORK / "debian.tar", "/")
    buildah("commit", container, BASE)
    buildah("run", "--isolation", "chroot", container, "--", "sh", "-c", SLIM)
    buildah("commit", "--squash", "--rm", container, f"{BASE}-slim")
    (WORK / "debian.tar").unlink()


def context():
    """The sources as they are now: who edits while images are built would have each of them built of something else."""
    tree = WORK / "context"
    shutil.rmtree(tree, ignore_errors=True)
    names = must("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines() if (ROOT / ".git").exists() else \
        [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file() and path.relative_to(ROOT).parts[0] != "build"]
    for name in filter(lambda name: (ROOT / name).exists(), names):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    return tree


def build(tree, target, *more):
    buildah("bud", "--isolation", "chroot", "--pull-never", "--layers", "--format", "docker", "--ignorefile", tree / "docker/Dockerfile.dockerignore",
            "-f", tree / "docker/Dockerfile", *more, "--target", target, "-t", f"egret-{target}", tree)


def documented_size(target):
    """MB above Debian's slim image, as docker/README.md has it."""
    return float(re.search(rf"egret-{target} ([0-9.]+) MB", (ROOT / "docker/README.md").read_text())[1])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("only root can make a Debian and run it here")
        # Both tools leave the storage mounted on itself, and `make clean` could not remove it.
        cls.addClassCleanup(lambda: run("umount", "--lazy", WORK / "storage/overlay"))
        make_base()
        tree = context()
        # buildah 1.28 cannot mount a stage that it finds in its cache: the stage is an image of its own, built once for all.
        build(tree, "build")
        for target in TARGETS:
            build(tree, target, "--build-context", "build=container-image://localhost/egret-build")

    def setUp(self):
        self.containers = []
        self.volume = podman("volume", "create")
        self.addCleanup(lambda: podman("volume", "rm", "-f", self.volume))

    def start(self, image, *arguments):
        """As compose.yaml starts it: read-only, no capability, /run/egret shared."""
        limits = []
        for name, key in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
            limits += ["--ulimit", "{0}={1}:{1}".format(name, min(MOST_OF_A_LIMIT, resource.getrlimit(key)[1]))]
        container = podman("run", "-d", "--pull", "never", "--network", "host", "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges",
                           *limits, "-v", f"{self.volume}:/run/egret", image, *arguments)
        self.addCleanup(lambda: podman("rm", "-f", "-t", "1", container))
        return container

    def health(self, container):
        return run("podman", "--runtime", "runc", *STORAGE, "healthcheck", "run", container).returncode == 0

    def wait_for(self, condition, what, container):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"{what}: {run('podman', '--runtime', 'runc', *STORAGE, 'logs', container)}")
            time.sleep(0.1)

    def ask(self, port, request):
        with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as client:
            client.sendall(request + b"quit\r\n")
            with client.makefile("rb") as answer:
                return answer.read()

    def serves(self, port):
        with contextlib.suppress(OSError):
            return self.ask(port, b"set k 0 0 5\r\nhello\r\nget k\r\n") == b"STORED\r\nVALUE k 0 5\r\nhello\r\nEND\r\n"
        return False

    def stop(self, container):
        podman("stop", "-t", "20", container)
        self.assertEqual(podman("inspect", "--format", "{{.State.ExitCode}}", container), "0", "it did not end by itself when asked to")

    def test_backend_and_proxy_share_a_socket_and_serve(self):
        backend = self.start("egret-backend", "--set", "memory=64MiB")
        self.wait_for(lambda: self.health(backend), "a healthy backend", backend)
        port = free_port()
        proxy = self.start("egret-proxy", "--set", f"listen=tcp:127.0.0.1:{port}")
        self.wait_for(lambda: self.serves(port), "a request to be served", proxy)
        large = b"v" * 900000
        self.assertEqual(self.ask(port, b"set large 0 0 900000\r\n" + large + b"\r\nget large\r\n"),
                         b"STORED\r\nVALUE large 0 900000\r\n" + large + b"\r\nEND\r\n")
        self.assertEqual(podman("exec", proxy, "id", "-un"), "egret")
        podman("exec", proxy, "egret-healthcheck", "ready", "127.0.0.1", port)

        podman("kill", backend)
        podman("exec", proxy, "egret-healthcheck", "proxy", "127.0.0.1", port)
        self.assertNotEqual(run("podman", "--runtime", "runc", *STORAGE, "exec", proxy, "egret-healthcheck", "ready", "127.0.0.1", port).returncode, 0)
        podman("start", backend)
        self.wait_for(lambda: self.serves(port), "a request to be served by a new backend", proxy)
        self.stop(proxy)
        self.stop(backend)

    def test_egret_memcached_takes_memcacheds_flags(self):
        port = free_port()
        container = self.start("egret-memcached", "-m", "64", "-l", "127.0.0.1", "-p", port)
        self.wait_for(lambda: self.serves(port), "a request to be served", container)
        self.assertIn(b"STAT limit_maxbytes 67108864\r\n", self.ask(port, b"stats\r\n"))
        self.stop(container)

    def test_images_are_small(self):
        def size(image):
            return json.loads(podman("image", "inspect", image))[0]["Size"]
        base = size(f"{BASE}-slim")
        for target in TARGETS:
            print(f"egret-{target}: {(size(f'egret-{target}') - base) / 1e6:.1f} MB above Debian's {base / 1e6:.0f} MB")
            self.assertLess(size(f"egret-{target}") - base, MOST_ABOVE_BASE)
            self.assertAlmostEqual((size(f"egret-{target}") - base) / 1e6, documented_size(target), delta=MOST_OFF_DOCUMENT_MB, msg="docker/README.md says otherwise")


if __name__ == "__main__":
    unittest.main()
