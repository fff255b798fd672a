#!/usr/bin/env python3
"""arrows.py COMPILE_COMMANDS: the build lets a layer include what the design lets it know, and nothing else.

For each arrow a file of one line is preprocessed exactly as a source of the layer is. A forbidden header must not be found; an
allowed one must be, so the check itself can fail. And no source reaches around the include path with "..".
"""
import json, pathlib, re, shlex, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = {"base": "base/status.h", "events": "events/event.h", "admin": "admin/metrics.h", "op": "op/op.h", "memcache": "memcache/command.h", "wire": "wire/slot.h",
           "transport": "transport/transport.h", "rpc": "rpc/client_lane.h", "pool": "pool/pool.h", "page": "page/page.h", "store": "store/store.h",
           "proxy": "proxy/config.h", "memcached": "memcached/request.h", "top": "top/exposition.h", "backend": "backend/config.h"}
PLACES = {"store": "backend/store", "proxy": "proxy", "memcached": "tools/memcached", "top": "tools/top", "backend": "backend"}
KNOWS = {"base": {"base"}, "events": {"base", "events"}, "admin": {"base", "events", "admin"}, "op": {"base", "op"}, "memcache": {"base", "op", "memcache"}, "wire": {"base", "op", "wire"},
         "store": {"base", "op", "store"}, "transport": {"base", "transport"},
         "rpc": {"base", "op", "wire", "transport", "rpc"},
         "pool": {"base", "op", "wire", "transport", "rpc", "pool"},
         "proxy": {"base", "events", "admin", "page", "op", "memcache", "wire", "transport", "rpc", "pool", "proxy"},
         "memcached": {"base", "memcached"}, "top": {"base", "top"},
         "backend": {"base", "events", "admin", "page", "op", "store", "wire", "transport", "rpc", "backend"}}


def command_of(layer, commands):
    """The compiler call of one of the layer's sources, without its source and output."""
    place = ROOT / PLACES.get(layer, f"protocol/{layer}")
    for entry in commands:
        if pathlib.Path(entry["file"]).resolve().parent == place.resolve():
            words = shlex.split(entry["command"])
            if words[0].endswith("ccache"):
                words = words[1:]
            kept, skip = [], False
            for word in words:
                if skip or word in ("-c", "-MD"):
                    skip = False
                elif word in ("-o", "-MT", "-MF"):
                    skip = True
                elif word != entry["file"]:
                    kept.append(word)
            return kept
    sys.exit(f"arrows: no source of {layer} in the compile commands")


def finds(call, header):
    # Preprocessed, not compiled: all that is included is looked for, in a quarter of the time. Not where the headers lie.
    run = subprocess.run(call + ["-E", "-x", "c++", "-"], input=f'#include "{header}"\n', stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd="/")
    if run.returncode == 0:
        return True
    if re.search(r"No such file|file not found", run.stderr):
        return False
    sys.exit(f"arrows: {header} fails for another reason:\n{run.stderr}")


def main():
    commands = json.load(open(sys.argv[1]))
    wrong = []
    for layer, knows in KNOWS.items():
        call = command_of(layer, commands)
        for other, header in HEADERS.items():
            if finds(call, header) != (other in knows):
                wrong.append(f"{layer} {'cannot' if other in knows else 'can'} include {header}")
    for place in ("protocol", "proxy", "backend", "tools"):
        for path in (ROOT / place).rglob("*.[ch]*"):
            if re.search(r'#include "[^"]*\.\.', path.read_text()):
                wrong.append(f"{path.relative_to(ROOT)} includes by a path with '..'")
    print("\n".join(wrong) or f"{len(KNOWS) * len(HEADERS)} arrows are as designed")
    sys.exit(1 if wrong else 0)


main()
