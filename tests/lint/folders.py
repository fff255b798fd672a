#!/usr/bin/env python3
"""folders.py: no folder of the product holds more C++ sources than a reader takes in at once."""
import collections, pathlib, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("protocol", "proxy", "backend", "tools")
MOST = 25
# Folders that hold more, and how many they may hold: none may grow. To be split, then taken out of this list.
TOLERATED = {"backend/store": 43, "protocol/base": 46, "protocol/memcache": 30, "tools/bench": 44, "tools/bench/store": 28}

held = collections.Counter(str(path.parent.relative_to(ROOT)) for place in PLACES for path in (ROOT / place).rglob("*") if path.suffix in (".cc", ".h"))
if not held:
    sys.exit("folders: no sources found")
wrong = [f"{folder}: {count} sources, at most {TOLERATED.get(folder, MOST)}" for folder, count in sorted(held.items()) if count > TOLERATED.get(folder, MOST)]
wrong += [f"{folder}: only {held[folder]} sources by now: take it out of the list in tests/lint/folders.py" for folder in TOLERATED if held[folder] <= MOST]
print("\n".join(wrong) or f"{len(held)} folders, the fullest with {max(held.values())} sources; {len(TOLERATED)} have more than {MOST}")
sys.exit(1 if wrong else 0)
