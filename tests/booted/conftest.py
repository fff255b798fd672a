"""conftest.py: before the first test, prepare.sh makes the packages and the disk; where it cannot, all tests are skipped."""
import pathlib, subprocess

import pytest

from guest import BUILD, SKIPPED


@pytest.fixture(scope="session", autouse=True)
def prepared():
    done = subprocess.run([pathlib.Path(__file__).parent / "prepare.sh", BUILD], stderr=subprocess.PIPE, text=True)
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
