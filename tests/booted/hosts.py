"""hosts.py: what the tests of this folder do to a booted host, over and over. A test starts with serving(), whatever ran before it."""
import json, time, unittest

from guest import COMMAND_SECONDS, Guest

DAEMONS = ("egret-backend", "egret-proxy")
# pymemcache is a real client; it has sizes that take a slot, several, and a value in pieces.
CLIENT = """
from pymemcache.client.base import Client
client = Client(("127.0.0.1", 11211), timeout=100)
for size in (1, 100, 5000, 900000):
    assert client.set("k%d" % size, b"v" * size, noreply=False)
    assert client.get("k%d" % size) == b"v" * size, size
assert client.incr("none", 1, noreply=False) is None
assert client.delete("k1", noreply=False) and client.get("k1") is None
"""
SERVED = "exec 3<>/dev/tcp/127.0.0.1/11211; printf 'set up 0 0 1\\r\\n1\\r\\nquit\\r\\n' >&3; grep -q STORED <&3"


class Host(Guest):
    def install(self, *packages):
        self.must("apt-get -q update && apt-get -q install -y --allow-downgrades -o Dpkg::Options::=--force-confold " + " ".join(packages))

    def serving(self, backend="", proxy=""):
        """Both daemons are installed in their first version, started with nothing but these lines in their files, and serve."""
        self.publish("first")
        self.install(*(f"{daemon}=0.*" for daemon in DAEMONS))
        self.configure("egret-backend", backend)
        self.configure("egret-proxy", proxy)
        self.must("systemctl reset-failed; systemctl restart egret-backend egret-proxy")
        self.wait_served()

    def configure(self, daemon, lines):
        self.must(f"cat >/etc/egret/{daemon}.yaml <<'YAML'\n{lines}\nYAML")

    def wait_served(self):
        self.wait_for(SERVED, "a set to be answered")

    def use_client(self):
        self.must(f"python3 - <<'CLIENT'{CLIENT}CLIENT")

    def show(self, unit, key):
        """A property of a unit, as systemd has it."""
        return self.must(f"systemctl show --value -p {key} {unit}").strip()

    def pid(self, unit):
        return int(self.show(unit, "MainPID"))

    def now(self):
        """For journal()."""
        return self.must("journalctl --sync; date '+%F %T.%6N'").strip()

    def journal(self, unit, since, more=""):
        self.must("journalctl --sync")
        return self.must(f"journalctl -q -o cat -u {unit} --since '{since}' {more}")

    def wait_for(self, command, what, seconds=COMMAND_SECONDS):
        """Until a line of bash succeeds."""
        status, output = self.run(f"until ({command}) >/dev/null 2>&1; do sleep 0.3; done", seconds)
        assert status == 0, f"{what}: not within {seconds} s: {command}: {output[-2000:]}"


class Load:
    """load.py in a guest: `with` ends it; then totals are what it met with."""

    def __init__(self, host):
        self.host = host
        self.file = host.share / "load.json"

    def __enter__(self):
        self.file.unlink(missing_ok=True)
        self.host.must("systemctl stop load 2>/dev/null; systemd-run -q --unit=load --collect -p CPUWeight=20 python3 /share/load.py /share/load.json")
        self.let_it_work()
        return self

    def let_it_work(self, requests=200):
        """Until so many more requests have been answered."""
        before = self.read()["answers"]
        deadline = time.monotonic() + COMMAND_SECONDS
        while self.read()["answers"] < before + requests:
            assert time.monotonic() < deadline, f"the load stands still: {self.read()}"
            time.sleep(0.2)

    def read(self):
        try:
            return json.loads(self.file.read_text())
        except FileNotFoundError:
            return {"answers": 0}

    def __exit__(self, *_):
        self.host.must("systemctl stop load")
        self.totals = self.read()


class HostTest(unittest.TestCase):
    """A class of tests on one booted host, `self.host`."""

    @classmethod
    def setUpClass(cls):
        cls.host = Host()
        cls.addClassCleanup(cls.host.close)
        cls.host.wait_booted()

    def assert_nobody_noticed(self, totals):
        """But for errors, which are answers."""
        self.assertEqual({key: totals[key] for key in ("refused", "unanswered", "wrong")}, {"refused": 0, "unanswered": 0, "wrong": 0}, totals)
