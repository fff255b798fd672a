#!/usr/bin/env python3
"""option_docs.py BUILD [--update]: docs/reference/ and conf/ say what the programs' own tables say.

    page of docs/reference   between these marks                                  is the output of
    options.md               <!-- options:egret-proxy --> .. <!-- /options -->    egret-proxy --help-markdown
    metrics.md               <!-- metrics:egret-proxy --> .. <!-- /metrics -->    egret-proxy --help-metrics
    log-events.md            <!-- events:egret-proxy --> .. <!-- /events -->      egret-proxy --help-events
    stats.md                 <!-- stats:egret-proxy --> .. <!-- /stats -->        egret-proxy --help-stats
    egret-memcached.md       <!-- flags:egret-memcached --> .. <!-- /flags -->    egret-memcached --help-markdown
    ../client/options.md     likewise                                             egret-client-options (client/config)

The first three have a second place, for egret-backend. conf/egret-proxy.yaml is the output of `egret-proxy --help-yaml`; it passes
`--check-config`, also with every line uncommented. --update writes all of it anew.
"""
import pathlib, re, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DAEMONS = ("egret-proxy", "egret-backend")
BUILD = pathlib.Path(sys.argv[1])
UPDATE = "--update" in sys.argv[2:]
wrong = []


def output(program, *arguments):
    run = subprocess.run([BUILD / program, *arguments], capture_output=True, text=True)
    if run.returncode != 0:
        wrong.append(f"{program} {' '.join(map(str, arguments))}: {run.stderr.strip()}")
    return run.stdout


def expect(path, text):
    if path.read_text() == text:
        return
    if UPDATE:
        path.write_text(text)
    else:
        wrong.append(f"{path.relative_to(ROOT)} is not up to date: tests/lint/option_docs.py {BUILD} --update")


# (page of docs/reference, kind of the block, program, argument that prints it)
BLOCKS = [("options.md", "options", daemon, "--help-markdown") for daemon in DAEMONS] + [
    ("metrics.md", "metrics", daemon, "--help-metrics") for daemon in DAEMONS] + [
    ("log-events.md", "events", daemon, "--help-events") for daemon in DAEMONS] + [
    ("stats.md", "stats", "egret-proxy", "--help-stats"),
    ("egret-memcached.md", "flags", "egret-memcached", "--help-markdown"),
    ("../client/options.md", "options", "egret-client-options", "--help-markdown")]


def with_block(page, text, kind, program, block):
    """`text`, which is the page's, with what stands between the two marks replaced."""
    marked = f"<!-- {kind}:{program} -->\n{block}<!-- /{kind} -->"
    text, found = re.subn(rf"<!-- {kind}:{program} -->.*?<!-- /{kind} -->", lambda _: marked, text, flags=re.S)
    if found != 1:
        wrong.append(f"{page.relative_to(ROOT)}: {found} places for the {kind} of {program}, expected one")
    return text


for name in sorted({name for name, *_ in BLOCKS}):
    page = ROOT / "docs" / "reference" / name
    text = page.read_text()
    for _, kind, program, argument in (block for block in BLOCKS if block[0] == name):
        text = with_block(page, text, kind, program, output(program, argument))
    expect(page, text)
for program in DAEMONS:
    ids = re.findall(r"^-- (.*)$", output(program, "--help-catalog"), re.M)
    if len(set(ids)) != len(ids) or not all(re.fullmatch("[0-9a-f]{32}", number) for number in ids):
        wrong.append(f"{program} --help-catalog: ids of events are 32 hex digits, each its own")
    conf = ROOT / "conf" / f"{program}.yaml"
    expect(conf, output(program, "--help-yaml"))
    output(program, "--check-config", "--config", conf)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as every:
        every.write(re.sub(r"^#(\w+:)", r"\1", conf.read_text(), flags=re.M))
        every.flush()
        output(program, "--check-config", "--config", every.name)

print("\n".join(wrong) or "the documents of options and metrics are up to date")
sys.exit(1 if wrong else 0)
