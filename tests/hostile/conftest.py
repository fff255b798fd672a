"""Lets the tests of this folder use what those of tests/conformance use: servers.py, bystander.py, dialog.py."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
