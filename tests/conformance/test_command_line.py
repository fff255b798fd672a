"""The daemons' command line: --version, --help, --check-config, and one clear line for everything that is wrong."""

import re
import subprocess

import pytest

from servers import CONF, SLACK, SUT, egret_binary, free_port, scratch_directory

pytestmark = pytest.mark.skipif(SUT != "egret", reason="Egret's own command line")

DAEMONS = ["egret-backend", "egret-proxy"]
OPTIONS = {
    "egret-backend": ["listen", "memory", "item_size_max", "partitions", "pin", "window", "request_slot_size", "response_slot_size"],
    "egret-proxy": ["listen", "backends", "workers", "max_connections"],
}
NUMBER = {"egret-backend": "partitions", "egret-proxy": "workers"}


def run(name, *arguments):
    return subprocess.run([egret_binary(name), *map(str, arguments)], capture_output=True, text=True, timeout=30 * SLACK, check=False,
                          stdin=subprocess.DEVNULL, cwd="/")


def shipped(name):
    return CONF / f"{name}.yaml"


def refuses(name, *arguments, naming):
    """Exit status 1, nothing on stdout, and one line on stderr that names all of `naming`."""
    result = run(name, *arguments)
    assert result.returncode == 1, f"status {result.returncode}\n{result.stdout}{result.stderr}"
    assert result.stderr.count("\n") == 1 and result.stderr.endswith("\n"), f"not one line:\n{result.stderr}"
    assert not result.stdout
    for part in naming:
        assert str(part) in result.stderr, f"{part!r} is not named in: {result.stderr}"


@pytest.fixture
def file_with(tmp_path):
    def write(text):
        path = tmp_path / "wrong.yaml"
        path.write_text(text)
        return path
    return write


@pytest.mark.parametrize("name", DAEMONS)
def test_version(name):
    result = run(name, "--version")
    assert result.returncode == 0 and not result.stderr
    assert re.fullmatch(name + r" \d+\.\d+\.\d+\S*\n", result.stdout), result.stdout


@pytest.mark.parametrize("name", DAEMONS)
def test_help_names_every_option(name):
    result = run(name, "--help")
    assert result.returncode == 0 and not result.stderr
    for word in ("--config", "--set", "--check-config", "--version", "--help"):
        assert word in result.stdout, f"{word} is not in --help"
    in_file = re.findall(r"^#? ?([a-z_]+):(?: |$)", shipped(name).read_text(), re.MULTILINE)
    assert set(OPTIONS[name]) <= set(in_file), f"{shipped(name).name} does not show all options"
    for option in set(in_file) | set(OPTIONS[name]):
        assert re.search(rf"^\s*{option}\b", result.stdout, re.MULTILINE), f"{option} is not in --help:\n{result.stdout}"


@pytest.mark.parametrize("name", DAEMONS)
def test_check_config_of_the_shipped_file(name):
    result = run(name, "--config", shipped(name), "--check-config")
    assert result.returncode == 0, result.stderr
    result = run(name, "--config", shipped(name), "--set", f"{NUMBER[name]}=2", "--check-config")
    assert result.returncode == 0, result.stderr
    result = run(name, "--check-config")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", DAEMONS)
@pytest.mark.parametrize("check", [[], ["--check-config"]])
def test_what_is_wrong_in_a_file(name, check, file_with):
    number = NUMBER[name]
    for text, line, key in (
        ("# a comment\n\nno_such_key: 5\n", 3, "no_such_key"),
        (f"{number}: many\n", 1, number),
        (f"\n\n\n{number}: -1\n", 4, number),
        (f"\n{number}: 1000000\n", 2, number),
        (f"{number}: 1.5\n", 1, number),
        (f"{number}: [1, 2]\n", 1, number),
        (f"{number}: {{a: 1}}\n", 1, number),
        (f"{number}:\n", 1, number),
        (f"{number}: ''\n", 1, number),
        (f"{number}: 2\n{number}: 2\n", 2, number),
        ("listen: nonsense\n", 1, "listen"),
        ("listen: []\n", 1, "listen"),
        ("log_level: loud\n", 1, "log_level"),
    ):
        path = file_with(text)
        refuses(name, "--config", path, *check, naming=[f"{path}:{line}", key])


def test_what_is_wrong_with_sizes(file_with):
    for text, key in (("memory: lots\n", "memory"), ("memory: 64XB\n", "memory"), ("memory: -5\n", "memory"), ("item_size_max: 1\n", "item_size_max"),
                      ("pin: maybe\n", "pin"), ("request_slot_size: 4097\n", "request_slot_size"), ("memory: 64MiB\npartitions: 60\n", "memory"),
                      ("item_size_max: 1GiB\n", "item_size_max"), ("window: 1\n", "window")):
        path = file_with(text)
        refuses("egret-backend", "--config", path, "--check-config", naming=[f"{path}:1", key])


@pytest.mark.parametrize("name", DAEMONS)
def test_files_that_are_no_configuration(name, file_with, tmp_path):
    for text in ("just words\n", "a: [1, 2\n", "- 1\n- 2\n", "\x00\x01\x02", "a: b: c\n", "\t\n: :\n", "{" * 5000):
        path = file_with(text)
        refuses(name, "--config", path, "--check-config", naming=[path])
    refuses(name, "--config", tmp_path / "missing.yaml", naming=["missing.yaml"])
    refuses(name, "--config", tmp_path, naming=[tmp_path])


@pytest.mark.parametrize("name", DAEMONS)
def test_an_empty_file_is_all_defaults(name, file_with):
    assert run(name, "--config", file_with(""), "--check-config").returncode == 0
    assert run(name, "--config", file_with("# nothing\n"), "--check-config").returncode == 0


@pytest.mark.parametrize("name", DAEMONS)
def test_what_is_wrong_with_set(name):
    number = NUMBER[name]
    for argument, key in ((f"{number}=many", number), ("no_such_key=1", "no_such_key"), (f"{number}=", number), (number, number), ("=5", "=5"),
                          ("listen=nonsense", "listen"), (f"{number}=-1", number), (f"{number}=99999999999999999999", number)):
        refuses(name, "--config", shipped(name), "--set", argument, naming=["--set", key])


@pytest.mark.parametrize("name", DAEMONS)
def test_a_later_set_wins_over_an_earlier_one_and_over_the_file(name, file_with):
    number = NUMBER[name]
    path = file_with(f"{number}: 3\n")
    assert run(name, "--config", path, "--set", f"{number}=1", "--check-config").returncode == 0
    refuses(name, "--config", path, "--set", f"{number}=1", "--set", f"{number}=x", "--check-config", naming=["--set", number])


@pytest.mark.parametrize("name", DAEMONS)
def test_arguments_that_do_not_exist(name):
    for arguments in (["--no-such"], ["stray"], ["--config"], ["--set"], ["-z"]):
        result = run(name, *arguments)
        assert result.returncode == 1 and result.stderr.count("\n") == 1, f"{arguments}: status {result.returncode}\n{result.stderr}"


def test_an_address_in_use_is_one_line_and_status_1():
    """The proxy that comes second says so and ends."""
    import socket
    directory = scratch_directory()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("egret-proxy", "--config", shipped("egret-proxy"), "--set", f"listen=tcp:127.0.0.1:{port}",
                     "--set", f"backends=shm:{directory}/none.sock")
        assert result.returncode == 1, result.stderr
        assert str(port) in result.stderr.strip().splitlines()[-1]
    result = run("egret-backend", "--config", shipped("egret-backend"), "--set", f"listen=shm:{directory}/no/such/place.sock")
    assert result.returncode == 1 and "place.sock" in result.stderr.strip().splitlines()[-1]
    directory.rmdir()
    assert free_port()
