#!/usr/bin/env python3
"""monitoring_test.py BUILD: a real Prometheus scrapes both daemons, evaluates every rule and every expression of the dashboard; whatever
reads memcached's `stats` can read the proxy's; /healthz tells which thread stands."""
import contextlib, json, os, pathlib, re, shutil, signal, socket, subprocess, sys, tempfile, time, unittest, urllib.error, urllib.parse, urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
CONF = ROOT / "conf/monitoring"
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
WAIT_SECONDS = 60  # bounds a hang

# What a scrape has besides what it found.
OF_PROMETHEUS = {"up", "ALERTS"}
# Named in expressions, and no metric.
WORDS = {"sum", "rate", "by", "le", "on", "or", "and", "max", "min", "increase", "time", "changes", "count", "without", "group_left", "histogram_quantile",
         "unless", "offset", "bool"}


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    return done.returncode, done.stdout + done.stderr


def wait_for(condition, what):
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError, LookupError):
            if found := condition():
                return found
        time.sleep(0.1)
    raise AssertionError(f"waited in vain for {what}")


def get(address, path):
    """Status and body."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=WAIT_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


class Daemon:
    def __init__(self, folder, name, *options, log=None):
        self.log = pathlib.Path(folder, f"{log or name}.log")
        words = [word for option in options for word in ("--set", option)]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([BUILD / name, *words], stderr=log, stdin=subprocess.DEVNULL)

    def told(self, pattern):
        return wait_for(lambda: re.search(pattern, self.log.read_text()), f"{pattern} in {self.log}")[1]

    def stop(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait(WAIT_SECONDS)


class Egret:
    """Both daemons, on ports that the kernel chose."""

    def __init__(self, folder, has_gutter=False):
        self.folder = folder
        self.start_backend()
        self.gutter, proxy_options = None, ()
        if has_gutter:
            self.gutter = Daemon(folder, "egret-backend", f"listen=shm:{folder}/gutter.sock", "partitions=1", "admin=", log="gutter")
            self.gutter.told(r"(serving):")
            proxy_options = ("failover=gutter", f"gutter=shm:{folder}/gutter.sock name=spare")
        members = pathlib.Path(folder, "backends")  # a file, so that there are metrics of a source
        members.write_text(f"shm:{folder}/backend.sock name=one\n")
        self.proxy = Daemon(folder, "egret-proxy", f"backends_file={members}", f"listen=unix:{folder}/proxy.sock", "workers=2",
                            "admin=127.0.0.1:0", *proxy_options)
        self.proxy_admin = self.proxy.told(r"admin address: (\S+)")
        self.proxy.told(r"(listening) on unix:")

    def start_backend(self, admin="127.0.0.1:0"):
        self.backend = Daemon(self.folder, "egret-backend", f"listen=shm:{self.folder}/backend.sock", "partitions=2", f"admin={admin}")
        self.backend_admin = self.backend.told(r"admin address: (\S+)")
        self.backend.told(r"(serving):")

    def stop(self):
        self.proxy.stop()
        self.backend.stop()
        if self.gutter:
            self.gutter.stop()

    def ask(self, *requests):
        """The answers of a connection of its own, up to the last one's end."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(WAIT_SECONDS)
            client.connect(f"{self.folder}/proxy.sock")
            client.sendall("".join(f"{request}\r\n" for request in (*requests, "quit")).encode())
            with client.makefile("rb") as answers:
                return answers.read().decode()

    def load(self, count=200):
        self.ask(*(f"set key{i} 0 0 5\r\nvalue" for i in range(count)))
        self.ask(*(f"get key{i} missing{i}" for i in range(count)))

    def stats(self, topic=""):
        lines = self.ask(f"stats {topic}".strip()).splitlines()
        assert lines[-1] == "END", lines
        return dict(line.split(" ", 2)[1:] for line in lines[:-1])


class Prometheus:
    def __init__(self, folder, targets):
        """The shipped configuration, but for the targets and how often things are done."""
        shutil.copy(CONF / "egret-rules.yml", folder)
        text = re.sub(r"interval: 15s", "interval: 1s", (CONF / "prometheus.yml").read_text())
        for shipped, address in targets.items():
            assert shipped in text
            text = text.replace(shipped, address)
        pathlib.Path(folder, "prometheus.yml").write_text(text)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        with open(f"{folder}/prometheus.log", "w") as log:
            self.process = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                             f"--web.listen-address={self.address}"], stdout=log, stderr=log)

    def stop(self):
        self.process.terminate()
        self.process.wait(WAIT_SECONDS)

    def ask(self, path, **parameters):
        status, body = get(self.address, f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        answer = json.loads(body)
        assert (status, answer["status"]) == (200, "success"), f"{parameters}: {body}"
        return answer["data"]

    def query(self, expression):
        return self.ask("query", query=expression)["result"]


def rules():
    """The expressions of the rules' file by name, as promtool's own parser need not be asked: `expr:` and what is indented under it."""
    text = (CONF / "egret-rules.yml").read_text()
    return re.findall(r"- (?:record|alert): (\S+)\n +expr: (?:>-\n)?((?:.*\n)+?)(?= +(?:for|labels|- |\n)|\n|\Z)", text)


def expressions():
    dashboard = json.loads((CONF / "egret-dashboard.json").read_text())
    panels = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", [])]
    notes = [(note["name"], note["expr"]) for note in dashboard["annotations"]["list"] if "expr" in note]
    filled = [(title, text.replace("$__rate_interval", "1m").replace("$proxy", ".*").replace("$backend", ".*")) for title, text in panels + notes]
    return filled + [(name, " ".join(text.split())) for name, text in rules()]


def metrics_in(expression):
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(?:by|on|without|group_left)\s*\([^)]*\)', " ", expression)
    return {word for word in re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", bare) if word not in WORDS and not re.fullmatch(r"e\d*", word)}


class WithEgret(unittest.TestCase):
    HAS_GUTTER = False

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="egret-monitoring-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.egret = Egret(self.folder, self.HAS_GUTTER)
        self.addCleanup(self.egret.stop)


class Rules(unittest.TestCase):
    def test_promtool_finds_nothing_wrong(self):
        for what, file in (("rules", "egret-rules.yml"), ("config", "prometheus.yml")):
            status, said = run("promtool", "check", what, CONF / file)
            self.assertEqual(status, 0, said)

    def test_every_alert_fires_when_it_should(self):
        with tempfile.TemporaryDirectory() as folder:
            for file in (CONF / "egret-rules.yml", HERE / "rules_test.yml"):
                shutil.copy(file, folder)
            status, said = run("promtool", "test", "rules", "rules_test.yml", cwd=folder)
            self.assertEqual(status, 0, said)
            # So that a test which passes is one that looked.
            without = pathlib.Path(folder, "egret-rules.yml")
            without.write_text(without.read_text().replace("egret_proxy_backend_up == 0", "egret_proxy_backend_up == 2"))
            self.assertNotEqual(run("promtool", "test", "rules", "rules_test.yml", cwd=folder)[0], 0)

    def test_every_alert_is_tested_and_says_what_to_do(self):
        text = (CONF / "egret-rules.yml").read_text()
        tested = (HERE / "rules_test.yml").read_text()
        alerts = re.findall(r"- alert: (\S+)\n((?:        .*\n)+)", text)
        self.assertGreater(len(alerts), 15)
        for name, body in alerts:
            self.assertIn(name, tested)
            self.assertRegex(body, r"severity: (critical|warning)")
            self.assertRegex(body, r"summary: .+\n +description: .+")


class Dashboard(unittest.TestCase):
    def test_panels_have_their_own_place_and_the_chosen_data_source(self):
        dashboard = json.loads((CONF / "egret-dashboard.json").read_text())
        taken, ids = set(), set()
        for panel in dashboard["panels"]:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24)
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertNotIn(panel["id"], ids)
            taken |= cells
            ids.add(panel["id"])
            self.assertTrue(panel["type"] == "row" or (panel["targets"] and panel["description"]), panel["title"])
            for target in panel.get("targets", []):
                self.assertEqual(target["datasource"], {"type": "prometheus", "uid": "${datasource}"})
        self.assertEqual([each["name"] for each in dashboard["templating"]["list"]], ["datasource", "proxy", "backend"])


class Scrapes(WithEgret):
    HAS_GUTTER = True  # so that there are metrics of one

    def setUp(self):
        super().setUp()
        self.prometheus = Prometheus(self.folder, {"127.0.0.1:11280": self.egret.proxy_admin, "127.0.0.1:11281": self.egret.backend_admin})
        self.addCleanup(self.prometheus.stop)
        wait_for(lambda: get(self.prometheus.address, "/-/ready")[0] == 200, "Prometheus to be ready")  # before, its answers are no JSON

    def value(self, expression):
        result = self.prometheus.query(expression)
        return float(result[0]["value"][1]) if result else None

    def test_both_daemons_are_up_and_their_series_there(self):
        self.egret.load()
        wait_for(lambda: self.value('count(up{job=~"egret-.*"} == 1)') == 2, "both targets to be up")
        wait_for(lambda: self.value("egret_proxy_get_hits_total") == 200, "the load in the proxy's figures")
        wait_for(lambda: self.value("sum(egret_backend_get_hits_total)") == 200, "the load in the backend's figures")
        self.assertEqual(self.value("egret_proxy_get_misses_total"), 200)
        self.assertEqual(self.value('egret_proxy_requests_total{command="set"}'), 200)
        # Nobody else asks: what the proxy's workers sent, and an op with which it told each partition to whom it belongs, is what the backend executed.
        wait_for(lambda: self.value("egret_proxy_members_told_total") == 1, "the backend to be told")
        executed = self.value('sum(egret_proxy_lane_ops_total{backend="one"})') + self.value("count(egret_backend_partition_up)")
        wait_for(lambda: self.value("sum(egret_backend_ops_total)") == executed, f"{executed} ops in the backend's figures")
        self.assertEqual(self.value('egret_proxy_backend_up{backend="one"}'), 1)

        self.every_expression_is_of_metrics_that_exist()
        self.rules_are_evaluated()

    def every_expression_is_of_metrics_that_exist(self):
        known = set(self.prometheus.ask("label/__name__/values")) | {name for name, _ in rules()} | OF_PROMETHEUS
        asked = expressions()
        self.assertGreater(len(asked), 60)
        for name, expression in asked:
            with self.subTest(name, expression=expression):
                self.prometheus.query(expression)
                named = metrics_in(expression)
                self.assertTrue(named)
                self.assertLessEqual(named, known)

    def rules_are_evaluated(self):
        groups = wait_for(lambda: [group for group in self.prometheus.ask("rules")["groups"] if group["lastEvaluation"] > "0002"], "an evaluation")
        for group in groups:
            for rule in group["rules"]:
                self.assertEqual(rule.get("lastError", ""), "", rule["name"])
        self.assertEqual(sum(len(group["rules"]) for group in groups), len(rules()))

    def test_a_backend_that_is_killed_is_noticed_and_its_return_too(self):
        wait_for(lambda: self.value('egret_proxy_backend_up{backend="one"}') == 1, "the backend to be up")
        admin = self.egret.backend_admin
        self.egret.backend.process.kill()
        self.egret.backend.process.wait()
        for alert in ("EgretDown", "EgretBackendDown", "EgretNoBackend"):
            wait_for(lambda: self.prometheus.query(f'ALERTS{{alertname="{alert}"}}'), f"{alert} to be pending")
        self.egret.start_backend(admin)
        wait_for(lambda: self.value('egret_proxy_backend_up{backend="one"}') == 1, "the backend to be up again")
        wait_for(lambda: not self.prometheus.query('ALERTS{alertname=~"Egret.*Down"}'), "the alerts to end")


class Table(WithEgret):
    HAS_GUTTER = True

    def test_every_metric_of_the_table_is_there_and_no_other(self):
        self.egret.load()
        for program, address in (("egret-proxy", self.egret.proxy_admin), ("egret-backend", self.egret.backend_admin)):
            table = set(re.findall(r"^\| `(\w+)`", run(BUILD / program, "--help-metrics")[1], re.M))
            self.assertGreater(len(table), 30)
            self.assertEqual(set(re.findall(r"^# TYPE (\w+) ", get(address, "/metrics")[1], re.M)), table)


class Pages(WithEgret):
    def test_metrics_are_what_promtool_likes_to_read(self):
        self.egret.load()
        for address in (self.egret.proxy_admin, self.egret.backend_admin):
            status, said = run("promtool", "check", "metrics", input=get(address, "/metrics")[1])
            self.assertEqual((status, said), (0, ""))

    def test_counters_do_not_go_down_at_stats_reset(self):
        self.egret.load()
        addresses = (self.egret.proxy_admin, self.egret.backend_admin)

        def counters(address):
            return {name: float(value) for name, value in re.findall(r"^(\w+_total(?:\{.*\})?) (\S+)$", get(address, "/metrics")[1], re.M)}
        before = [counters(address) for address in addresses]
        self.assertEqual(self.egret.ask("stats reset"), "RESET\r\n")
        for address, figures in zip(addresses, before):
            after = counters(address)
            self.assertEqual([name for name in figures if after[name] < figures[name]], [])

    def test_ready_is_who_has_a_backend(self):
        self.assertEqual(get(self.egret.proxy_admin, "/healthz"), (200, "ok\n"))
        wait_for(lambda: get(self.egret.proxy_admin, "/readyz") == (200, f"ready\nbackend one (shm:{self.egret.folder}/backend.sock): up, 2 of 2 workers have a session\n"), "readiness")
        self.assertEqual(get(self.egret.backend_admin, "/readyz")[0], 200)
        self.egret.backend.process.kill()
        self.egret.backend.process.wait()
        status, said = wait_for(lambda: (answer := get(self.egret.proxy_admin, "/readyz"))[0] != 200 and answer, "the proxy not to be ready")
        self.assertEqual(status, 503)
        self.assertIn("no backend is up\nbackend one (", said)
        self.assertEqual(get(self.egret.proxy_admin, "/healthz"), (200, "ok\n"))

    def test_many_scrapes_at_once_are_all_answered(self):
        self.egret.load(10)
        for address in (self.egret.proxy_admin, self.egret.backend_admin):
            host, port = address.rsplit(":", 1)
            clients = [socket.create_connection((host, int(port)), WAIT_SECONDS) for _ in range(40)]
            for client in clients:
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            for client in clients:
                with client, client.makefile("rb") as answer:
                    self.assertIn(b"process_cpu_seconds_total", answer.read())

    def test_a_daemon_stops_while_somebody_waits_for_an_answer(self):
        host, port = self.egret.backend_admin.rsplit(":", 1)
        clients = [socket.create_connection((host, int(port)), WAIT_SECONDS) for _ in range(8)]
        for client in clients:
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 4)
        self.egret.backend.process.terminate()
        self.assertEqual(self.egret.backend.process.wait(WAIT_SECONDS), 0)
        for client in clients:
            client.close()

    def test_a_thread_that_stands_is_named(self):
        """A tracer holds one thread, as a hang would; the others go on."""
        for daemon, address, thread in ((self.egret.proxy, self.egret.proxy_admin, "worker"), (self.egret.backend, self.egret.backend_admin, "partition")):
            with self.subTest(thread), held(daemon.process.pid, f"{thread}-1"):
                self.assertEqual(get(address, "/healthz"), (503, f"{thread} 1 does not answer\n"))
                status, said = get(address, "/metrics")
                self.assertEqual(status, 200)
                if thread == "partition":
                    self.assertIn('egret_backend_partition_up{partition="1"} 0\n', said)
                    self.assertNotIn('egret_backend_curr_items{partition="1"}', said)
                    self.assertIn('egret_backend_curr_items{partition="0"}', said)
            wait_for(lambda: get(address, "/healthz") == (200, "ok\n"), f"the {thread} to go on")


@contextlib.contextmanager
def held(pid, name):
    """Stops one thread of another process: PTRACE_SEIZE and PTRACE_INTERRUPT, until the end."""
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    seize, interrupt, detach = 0x4206, 0x4207, 17
    tasks = pathlib.Path(f"/proc/{pid}/task")
    thread = next(int(task.name) for task in tasks.iterdir() if (task / "comm").read_text().strip() == name)
    for request in (seize, interrupt):
        if libc.ptrace(request, thread, None, None) != 0:
            raise unittest.SkipTest(f"this host lets nobody trace: {os.strerror(ctypes.get_errno())}")
    os.waitpid(thread, 0x40000000)  # __WALL
    try:
        yield
    finally:
        libc.ptrace(detach, thread, None, None)


class MemcachedExporter(WithEgret):
    """What memcached_exporter asks for and how it reads it: `stats`, `stats settings`, `stats items`, `stats slabs`; numbers, times as
    seconds.microseconds, classes as items:CLASS:NAME and CLASS:NAME."""

    def test_what_it_reads_is_there_and_a_number(self):
        self.egret.load()
        stats = self.egret.stats()
        needed = [f"{op}_{outcome}" for op in ("get", "delete", "incr", "decr", "cas", "touch") for outcome in ("hits", "misses")]
        needed += ["cas_badval", "cmd_flush", "cmd_set", "uptime", "time", "bytes", "limit_maxbytes", "curr_items", "total_items", "bytes_read",
                   "bytes_written", "curr_connections", "total_connections", "rejected_connections", "conn_yields", "listen_disabled_num", "evictions",
                   "reclaimed", "store_too_large", "store_no_memory", "accepting_conns", "max_connections"]
        for name in needed:
            self.assertRegex(stats[name], r"^\d+$", name)
        for name in ("rusage_user", "rusage_system"):
            self.assertRegex(stats[name], r"^\d+\.\d{6}$")
        self.assertTrue(stats["version"])
        self.assertEqual((stats["get_hits"], stats["get_misses"], stats["curr_items"], stats["cmd_set"]), ("200", "200", "200", "200"))
        settings = self.egret.stats("settings")
        self.assertRegex(settings["maxconns"], r"^\d+$")
        self.assertIn(settings["lru_crawler"], ("yes", "no"))

    def test_classes_are_told_as_it_parses_them(self):
        self.egret.load()
        items = self.egret.stats("items")
        self.assertEqual(sum(int(value) for name, value in items.items() if name.endswith(":number")), 200)
        for name, value in items.items():
            self.assertRegex(f"{name} {value}", r"^items:\d+:\w+ \d+$")
        slabs = self.egret.stats("slabs")
        for name, value in slabs.items():
            self.assertRegex(f"{name} {value}", r"^(\d+:\w+|active_slabs|total_malloced) \d+$")
        for name in ("chunk_size", "chunks_per_page", "total_pages", "total_chunks", "used_chunks", "free_chunks", "free_chunks_end", "mem_requested", "cmd_set",
                     "get_hits", "cas_badval"):
            self.assertTrue(any(key.endswith(f":{name}") for key in slabs) or name in ("mem_requested",), name)


if __name__ == "__main__":
    unittest.main()
