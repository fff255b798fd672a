"""`--doctor` of a daemon, run and checked for its form: a line for each finding, and advice with each problem."""

import re
import resource
import subprocess

from servers import SLACK, egret_binary


def doctor(name, *settings, open_files=None):
    """What it prints with these settings; with `open_files`, under that limit of open files (soft and hard)."""
    argv = [egret_binary(name), "--doctor"]
    for setting in settings:
        argv += ["--set", setting]
    lower = None
    if open_files is not None:
        lower = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))
    run = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=30 * SLACK, check=False, preexec_fn=lower)
    assert not run.stderr, run.stderr
    for line in run.stdout.splitlines():
        assert re.match(r"(ok  |warn|FAIL) \S.*: ", line), line
        assert line.startswith("ok") == ("=>" not in line), f"a problem, and nothing else, has advice: {line}"
    assert run.returncode == (1 if "\nFAIL" in "\n" + run.stdout else 0)
    return run.stdout
