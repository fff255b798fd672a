"""Clients as applications use them, each a script of clients/ with a table row here: it sets, gets, gets many, compares and
swaps, counts, touches, deletes and moves 900 KiB, prints `pass` or `FAIL` for each, and exits with 1 if one failed.

A client that is not installed fails its test: tests/packages/test.txt says what testing needs.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from dialog import Case, converse
from servers import ORACLE_IS_OLD, SUT, SLACK, Egret, free_port

TOOL = "/usr/share/memcached/scripts/memcached-tool"
CLIENTS = pathlib.Path(__file__).resolve().parent / "clients"

# name, command line before HOST PORT, the script, arguments after them
SCRIPTS = [
    ("pymemcache", ["/usr/bin/python3"], "pymemcache_client.py", []),
    ("python-memcache", ["/usr/bin/python3"], "python_memcache.py", []),
    ("pylibmc, text", ["/usr/bin/python3"], "pylibmc_client.py", ["text"]),
    ("pylibmc, binary", ["/usr/bin/python3"], "pylibmc_client.py", ["binary"]),
    ("php-memcached, text", ["php"], "php_memcached.php", ["text"]),
    ("php-memcached, binary", ["php"], "php_memcached.php", ["binary"]),
    ("dalli", ["ruby"], "dalli.rb", []),
    ("Cache::Memcached", ["perl"], "cache_memcached.pl", ["plain"]),
    ("Cache::Memcached::Fast", ["perl"], "cache_memcached.pl", ["fast"]),
    ("libmemcached's tools, text", ["bash"], "libmemcached_tools.sh", ["text"]),
    ("libmemcached's tools, binary", ["bash"], "libmemcached_tools.sh", ["binary"]),
]


def run(argv, directory=None):
    """Its output; fails with all of it when a check failed or none was made."""
    done = subprocess.run(list(map(str, argv)), cwd=directory, capture_output=True, text=True, timeout=120 * SLACK, check=False)
    assert done.returncode == 0 and "FAIL" not in done.stdout, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("interpreter, script, arguments", [row[1:] for row in SCRIPTS], ids=[row[0] for row in SCRIPTS])
def test_client(subject, interpreter, script, arguments):
    host, port = subject.address
    assert run([*interpreter, CLIENTS / script, host, port, *arguments]).count("pass") >= 7


# npm's clients

@pytest.fixture(scope="module")
def node_directory():
    """The clients installed below the build directory; nothing is written to the source tree."""
    base = os.environ.get("EGRET_WORK")
    directory = pathlib.Path(base) / "node" if base else pathlib.Path(tempfile.mkdtemp(prefix="egret-node."))
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "check.js", "npm_memcached.js", "npm_discovery.js", "memjs_client.js"):
        shutil.copy(CLIENTS / name, directory / name)
    if not all((directory / "node_modules" / name).exists() for name in ("memcached", "memjs")):
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"], cwd=directory, check=True,
                       timeout=300)
    yield directory
    if not base:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.parametrize("script", ["npm_memcached.js", "memjs_client.js"])
def test_npm_client(subject, node_directory, script):
    host, port = subject.address
    assert run(["node", script, f"{host}:{port}"], node_directory).count("pass") >= 7


def test_npm_client_that_learns_its_servers(egret_only, node_directory):
    """`config get cluster` names two proxies; the client uses both."""
    server = Egret(start=False)
    try:
        ports = [free_port(), free_port()]
        server.proxy_options["cluster"] = ",".join(f"127.0.0.1:{port}" for port in ports)
        server.start_backend()
        for port in ports:
            server.addresses.append(("127.0.0.1", port))
            server.proxies.append(None)
            server.start_proxy(len(server.proxies) - 1)
        assert all(server.wait_ready(index) for index in range(len(ports)))
        assert run(["node", "npm_discovery.js", f"127.0.0.1:{ports[0]}", len(ports)], node_directory).count("pass") == 3
    finally:
        server.stop()


# libmemcached's conformance program

# These ask for an error where a delete has a time; memcached 1.6.45 takes it.
AS_MEMCACHED_FAILS = {"-a": {"ascii delete", "ascii delete noreply"}} if SUT == "egret" or not ORACLE_IS_OLD else {}


@pytest.mark.parametrize("protocol, least", [("-a", 27), ("-b", 27)])
def test_memccapable(subject, protocol, least):
    host, port = subject.address
    done = subprocess.run(["memccapable", "-h", host, "-p", str(port), protocol, "-t", str(int(10 * SLACK))], capture_output=True, text=True,
                          timeout=120 * SLACK, check=False)
    # A test's name has 40 columns, and what follows is either [pass] or the next name.
    tests = [part.strip() for part in re.findall(r"(?:ascii.{35}|binary.{34})(?:\[pass\])?", done.stdout.replace("\n", ""))]
    failed = {name for name in tests if not name.endswith("[pass]")}
    assert failed == AS_MEMCACHED_FAILS.get(protocol, set()) and len(tests) >= least, done.stdout + done.stderr


# memcached-tool (its other modes: test_stats_classes.py)

def test_memcached_tool_dump(subject):
    """What it prints is a script that fills another server; played to the same one after a flush, all is as before."""
    items = {b"dump%d" % n: (n, bytes([65 + n % 26]) * (n * n % 5000)) for n in range(60)}
    items[b"dump%odd"] = (3, b"a key that is dumped encoded")
    text = b"flush_all\r\n" + b"".join(b"set %s %d 0 %d\r\n%s\r\n" % (key, flags, len(value), value) for key, (flags, value) in items.items())
    converse(subject.address, [Case(text)])
    tool = subprocess.run(["perl", TOOL, "%s:%d" % subject.address, "dump"], capture_output=True, timeout=60 * SLACK, check=False)
    assert tool.returncode == 0, tool.stderr
    assert tool.stdout.count(b"add ") == len(items)
    ((answer, _),) = converse(subject.address, [Case(b"flush_all\r\n" + tool.stdout)])
    assert answer == b"OK\r\n" + b"STORED\r\n" * len(items)
    ((answer, _),) = converse(subject.address, [Case(b"".join(b"get %s\r\n" % key for key in items))])
    assert answer == b"".join(b"VALUE %s %d %d\r\n%s\r\nEND\r\n" % (key, flags, len(value), value) for key, (flags, value) in items.items())
