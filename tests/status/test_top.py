"""egret-top as people and scripts see it, against daemons whose metrics are known: see README.md."""
import json, os, pathlib, re, signal, socket, subprocess, sys, time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemons import System
from metrics import FakeDaemon, backend_text, proxy_text
from terminal import Terminal

TOP = str(pathlib.Path(os.environ["EGRET_BUILD"]) / "egret-top")
FAST = ["--interval", "200ms"]


def run(*arguments, **more):
    return subprocess.run([TOP, *arguments], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **more)


@pytest.fixture
def proxy():
    with FakeDaemon(proxy_text) as daemon:
        yield daemon


def row(terminal, first):
    """The words of the line that begins with this one."""
    return next((line.split() for line in terminal.lines if line.split()[:1] == [first]), None)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# --- on a terminal


def test_shows_both_daemons_with_their_parts(proxy):
    with FakeDaemon(backend_text) as backend, Terminal([TOP, proxy.address, backend.address, *FAST]) as terminal:
        terminal.wait_for("hit ratio 75.0%").wait_for("hit ratio 87.5%")
        assert f"egret-proxy {proxy.address}  up" in terminal.text and "version 9.8.7" in terminal.text
        assert row(terminal, "cache-1")[1] == "DOWN" and row(terminal, "cache-2")[1] == "up"
        assert "200M of 256M" in terminal.text and "items 400,000" in terminal.text and "sessions  3 of 64" in terminal.text
        assert "by shm 1" in terminal.text and "by rdma 2" in terminal.text and "by tcp 0" in terminal.text
        header = next(line for line in terminal.lines if "PARTITION" in line).split()
        assert row(terminal, "3")[header.index("OPS/MSG")] == "3"


def test_rates_are_growth_by_the_second(proxy):
    # The fake grows by an answer, of which there are five a second: 1000 requests each.
    with Terminal([TOP, proxy.address, *FAST]) as terminal:
        terminal.wait_for(lambda t: re.search(r"requests +[\d.]+k/s", t.text))
        shares = {}
        for name in ("get", "set", "delete"):
            shares[name] = re.search(rf"  {name} ([\d.]+)(k?)/s", terminal.text).groups()
        get, of_set = (float(number) * (1000 if unit else 1) for number, unit in (shares["get"], shares["set"]))
        assert get == pytest.approx(4 * of_set, rel=0.02) and shares["delete"][0] == "0"


def test_keys_sort_pause_help_and_quit(proxy):
    with Terminal([TOP, proxy.address, *FAST]) as terminal:
        terminal.wait_for(lambda t: (row(t, "cache-0") or [])[3:4] not in ([], ["-"], ["0"]))
        order = lambda t: re.findall(r"^  (cache-\d)", t.text, re.M)
        assert order(terminal) == ["cache-0", "cache-1", "cache-2"]
        terminal.press("r")
        terminal.wait_for(lambda t: order(t) == ["cache-2", "cache-1", "cache-0"])
        terminal.press("\x1bOC\x1bOC\x1bOC")  # three times right: ops by the second
        terminal.wait_for("OPS/S-").wait_for(lambda t: order(t) == ["cache-2", "cache-0", "cache-1"])
        terminal.press("l")
        terminal.wait_for("cache-0 1")
        terminal.press("?")
        terminal.wait_for("the other way round")
        terminal.press("?")
        terminal.wait_for("cache-0 1")
        terminal.press("p")
        terminal.wait_for("PAUSED")
        terminal.take(0.6)
        tick, clock = proxy.tick, terminal.lines[0]
        terminal.take(0.6)
        assert (proxy.tick, terminal.lines[0]) == (tick, clock), "paused, it asks nobody and shows no new time"
        terminal.press("p")
        terminal.wait_for(lambda t: proxy.tick > tick and "PAUSED" not in t.text)
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        assert terminal.is_as_before()


def test_takes_a_new_size_and_scrolls():
    with FakeDaemon(lambda tick: proxy_text(tick, backends=60)) as many, Terminal([TOP, many.address, *FAST], 140, 40) as terminal:
        terminal.wait_for("cache-20")
        assert "cache-59" not in terminal.text
        terminal.resize(60, 12)
        terminal.wait_for(lambda t: "cache-" in t.lines[-1] and "egret-top" in t.lines[0])
        for _ in range(9):
            terminal.press("\x1b[6~")  # page down
        terminal.wait_for(lambda t: "cache-59" in t.lines[-1])
        terminal.resize(150, 80)
        terminal.wait_for(lambda t: "cache-59" in t.text and "egret-proxy" in t.lines[2])


def test_a_daemon_that_dies_is_down_and_comes_back():
    port = free_port()
    with Terminal([TOP, f"127.0.0.1:{port}", *FAST]) as terminal:
        terminal.wait_for("DOWN")
        with FakeDaemon(proxy_text, port):
            terminal.wait_for("hit ratio 75.0%")
        terminal.wait_for("DOWN for")
        assert "cache-0" not in terminal.text and "hit ratio" not in terminal.text
        with FakeDaemon(lambda tick: proxy_text(tick, start=2000), port):
            terminal.wait_for("RESTARTED").wait_for("hit ratio 75.0%")


def test_a_daemon_that_stalls_or_fails_is_down_while_others_are_shown(proxy):
    with FakeDaemon(backend_text) as backend, Terminal([TOP, proxy.address, backend.address, *FAST]) as terminal:
        terminal.wait_for("hit ratio 87.5%").wait_for("hit ratio 75.0%")
        backend.mode = "stall"
        terminal.wait_for(lambda t: re.search(rf"{backend.address}  DOWN for \d+s: no answer", t.text))
        assert "87.5%" not in terminal.text
        before = proxy.tick
        terminal.wait_for(lambda t: proxy.tick > before + 2 and "hit ratio 75.0%" in t.text)
        backend.mode = "answer"
        backend.released.set()
        terminal.wait_for("hit ratio 87.5%")
        backend.mode = "fail"
        terminal.wait_for("answers with HTTP status 503")


def test_a_hostile_daemon_cannot_write_on_the_terminal():
    text = 'egret_proxy_build_info{version="\x1b]0;owned\x07"} 1\negret_proxy_backend_up{backend="\x1b[2J\x9b31m<b>"} 1\n'
    with FakeDaemon(lambda tick: text) as hostile, Terminal([TOP, hostile.address, *FAST]) as terminal:
        terminal.wait_for("x1b[2J")
        assert b"owned\x07" not in terminal.raw and b"\x1b[2J\x9b" not in terminal.raw


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGSEGV, signal.SIGABRT])
def test_the_terminal_is_as_it_was_after_a_signal(proxy, number):
    with Terminal([TOP, proxy.address, *FAST], columns=100) as terminal:
        terminal.wait_for("cache-0")
        os.kill(terminal.pid, number)
        status = terminal.wait_for_end()
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == number
        assert terminal.is_as_before(), terminal.raw[-200:]


def test_control_c_ends_it(proxy):
    with Terminal([TOP, proxy.address, *FAST]) as terminal:
        terminal.wait_for("cache-0")
        terminal.press("\x03")
        assert os.WTERMSIG(terminal.wait_for_end()) == signal.SIGINT
        assert terminal.is_as_before()


def test_a_terminal_that_knows_nothing_gets_lines(proxy):
    with Terminal([TOP, proxy.address, *FAST], columns=1000, TERM="unheard-of") as terminal:
        terminal.wait_for(f"egret-proxy {proxy.address} up")
        assert b"\x1b" not in terminal.raw


# --- real daemons under load


def test_every_figure_of_real_daemons_is_known(tmp_path):
    system = System(tmp_path)
    try:
        look = lambda: json.loads(run(system.proxy.admin, system.backend.admin, "--once", "--json").stdout)["daemons"]
        daemons = look()
        for _ in range(20):  # until the load is on, after its first sets of all keys
            if (daemons[0]["get"] or 0) > (daemons[0]["set"] or 0) > 0 and daemons[1]["hits"]:
                break
            daemons = look()
        for daemon in daemons:
            for part in [daemon, *daemon.get("backends", []), *daemon.get("lanes_of_backends", []), *daemon.get("partitions", [])]:
                # A backend of one transport has no figures of the others.
                assert [name for name, value in part.items() if value is None and not name.startswith("by_")] == []
        proxy, backend = daemons
        assert (proxy["connections"], proxy["errors"], proxy["backends"][0]["name"], proxy["backends"][0]["up"]) == (20, 0, "cache-a", 1)
        assert proxy["get"] > proxy["set"] > 0 and 0 < proxy["p50"]["seconds"] <= proxy["p99"]["seconds"]
        assert (backend["sessions"], backend["by_shm"], backend["by_rdma"], backend["by_tcp"]) == (1, 1, 0, 0)
        assert 0 < backend["bytes"] < backend["limit"] == 64 << 20 and backend["items"] > 0
        system.backend.kill()
        for _ in range(20):
            proxy, backend = look()
            if proxy["backends"][0]["up"] == 0:
                break
        assert (proxy["backends"][0]["up"], backend["up"]) == (0, False)
    finally:
        system.close()


# --- without one


def test_once_is_two_looks_and_the_picture(proxy):
    done = run(proxy.address, "--once", *FAST)
    assert done.returncode == 0 and not done.stderr
    assert "hit ratio 75.0%" in done.stdout and re.search(r"^  cache-1 +DOWN", done.stdout, re.M) and "\x1b" not in done.stdout
    assert proxy.tick == 2


def test_once_json_is_one_object(proxy):
    port = free_port()
    done = run(proxy.address, f"127.0.0.1:{port}", "--once", "--json", *FAST)
    up, down = json.loads(done.stdout)["daemons"]
    assert up["up"] and up["hit_ratio"] == 0.75 and up["delete"] == 0 and up["touch"] is None and up["connections"] == 12
    assert up["p50"] == {"seconds": pytest.approx(0.0001), "beyond": False} and up["p999"] == {"seconds": 0.01, "beyond": True}
    assert [b["up"] for b in up["backends"]] == [1, 0, 1] and up["backends"][2]["ops_per_message"] == 8
    assert [b["address"] for b in up["backends"]] == [f"rdma:10.0.0.{number}:11311" for number in range(3)]
    assert (down["up"], down["address"]) == (False, f"127.0.0.1:{port}") and "connect" in down["error"]


def test_once_says_by_its_status_that_nobody_answers():
    address = f"127.0.0.1:{free_port()}"
    done = run(address, "--once")
    assert done.returncode == 1 and f"{address}  DOWN" in done.stdout


def test_a_pipe_gets_a_line_for_each_daemon_and_interval(proxy):
    process = subprocess.Popen([TOP, proxy.address, *FAST], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    for _ in range(3):
        line = process.stdout.readline()
        assert re.match(rf"\d\d:\d\d:\d\d egret-proxy {proxy.address} up .* hit_ratio=75.0% .* backends_up=2/3$", line), line
    process.stdout.close()
    assert process.wait(30) in (1, -signal.SIGPIPE), "who reads no more ends it"


def test_a_unix_socket_is_an_address(proxy, tmp_path):
    path = str(tmp_path / "a socket")
    relay = subprocess.Popen(["/usr/bin/python3", "-c", RELAY, path, str(proxy.port)], stdout=subprocess.PIPE)
    try:
        assert relay.stdout.readline()
        done = run(f"unix:{path}", "--once", *FAST)
        assert done.returncode == 0 and "hit ratio 75.0%" in done.stdout
    finally:
        relay.kill()
        relay.wait()


# Passes bytes on between a Unix socket and a port.
RELAY = """
import socket, sys, threading
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("ready", flush=True)
def pump(a, b):
    while data := a.recv(65536):
        b.sendall(data)
    b.shutdown(socket.SHUT_WR)
while True:
    client, _ = listener.accept()
    server = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    for pair in ((client, server), (server, client)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
"""


def test_an_answer_without_end_is_refused():
    with FakeDaemon(lambda tick: "a 1\n" * (9 << 20)) as endless:
        done = run(endless.address, "--once", *FAST)
        assert done.returncode == 1 and "answers with more than 32MiB" in done.stdout


@pytest.mark.parametrize("arguments", [["nowhere"], ["--interval", "0"], ["--interval", "x"], ["host:99999"], ["--no-such"]])
def test_a_wrong_command_line_is_one_clear_error(arguments):
    done = run(*arguments)
    assert done.returncode == 1 and not done.stdout and done.stderr.strip()
