#!/usr/bin/env python3
"""arrows.py BUILD: the build lets a layer include what the design lets it know, and nothing else.

For each layer one file is preprocessed exactly as a source of the layer is. It includes a header of each layer that may be known, and
all that these include must be found; and it asks for a header of each other layer, which must not be found. Both can fail. And no
source reaches around the include path with "..".
"""
import json, pathlib, re, shlex, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lint"))
import units

HEADERS = {"base": "base/status.h", "events": "events/event.h", "admin": "admin/metrics.h", "op": "op/op.h", "memcache": "memcache/command.h", "wire": "wire/slot.h",
           "tls": "tls/files.h", "transport": "transport/transport.h", "rpc": "rpc/client_lane.h", "pool": "pool/pool.h", "page": "page/page.h", "access": "access/ledger.h", "store": "store/store.h",
           "proxy": "proxy/config.h", "client": "client/engine/engine.h", "memcached": "memcached/request.h", "top": "top/exposition.h", "backend": "backend/config.h"}
PLACES = {"store": "backend/store", "client": "client/engine", "proxy": "proxy", "memcached": "tools/memcached", "top": "tools/top", "backend": "backend"}
KNOWS = {"base": {"base"}, "events": {"base", "events"}, "admin": {"base", "events", "admin"}, "op": {"base", "op"}, "memcache": {"base", "op", "memcache"}, "wire": {"base", "op", "wire"},
         "store": {"base", "op", "store"}, "tls": {"base", "tls"}, "transport": {"base", "tls", "transport"},
         "rpc": {"base", "op", "wire", "transport", "rpc"},
         "pool": {"base", "events", "op", "wire", "transport", "rpc", "pool"},
         "access": {"base", "op", "access"},
         "client": {"base", "op", "wire", "transport", "rpc", "pool", "client"},
         "proxy": {"base", "events", "admin", "page", "op", "access", "memcache", "tls", "wire", "transport", "rpc", "pool", "proxy"},
         "memcached": {"base", "memcached"}, "top": {"base", "top"},
         "backend": {"base", "events", "admin", "page", "op", "access", "store", "tls", "wire", "transport", "rpc", "backend"}}
# Of a layer with a part that knows less: a source of the rest.
SOURCES = {"pool": "pool.cc"}
# Who may know a part of a layer alone: without the events that the rest of it needs.
PARTS = {("client", "pool"): "pool/placement.h"}


def command_of(layer, commands):
    """The compiler call of one of the layer's sources, without its source and output."""
    place = ROOT / PLACES.get(layer, f"protocol/{layer}")
    for entry in commands:
        file = pathlib.Path(entry["file"]).resolve()
        if file.parent == place.resolve() and SOURCES.get(layer, file.name) == file.name:
            words = shlex.split(entry["command"])
            words = words[1 + max((at for at, word in enumerate(words) if word.endswith("/ccache")), default=-1):]
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


def wrong_arrows(layer, call):
    """What the layer can or cannot include against the design."""
    known = [PARTS.get((layer, other), header) for other, header in HEADERS.items() if other in KNOWS[layer]]
    foreign = [header for other, header in HEADERS.items() if other not in KNOWS[layer]]
    asks = "".join(f'#if __has_include("{header}")\n#warning CAN_INCLUDE {header}\n#endif\n' for header in foreign)
    includes = "".join(f'#include "{header}"\n' for header in known)
    # Preprocessed, not compiled, which takes a quarter of the time. Not where the headers lie.
    run = subprocess.run(call + ["-Wno-error", "-E", "-x", "c++", "-"], input=asks + includes, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd="/")
    wrong = [f"{layer} can include {header}" for header in re.findall(r"#warning CAN_INCLUDE (\S+)", run.stderr)]
    return wrong if run.returncode == 0 else wrong + [f"{layer} cannot include all of {', '.join(known)}:\n{run.stderr}"]


def main():
    commands = json.loads(units.compile_commands(sys.argv[1]).read_text())
    wrong = []
    for layer in KNOWS:
        wrong += wrong_arrows(layer, command_of(layer, commands))
    for place in ("protocol", "client", "proxy", "backend", "tools"):
        for path in (ROOT / place).rglob("*.[ch]*"):
            if re.search(r'#include "[^"]*\.\.', path.read_text()):
                wrong.append(f"{path.relative_to(ROOT)} includes by a path with '..'")
    print("\n".join(wrong) or f"{len(KNOWS) * len(HEADERS)} arrows are as designed")
    sys.exit(1 if wrong else 0)


main()
