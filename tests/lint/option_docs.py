#!/usr/bin/env python3
"""option_docs.py BUILD [--update]: what the README and conf/ say of options and metrics is what the daemons' tables say.

Between `<!-- options:egret-proxy -->` and `<!-- /options -->` the README holds the output of `egret-proxy --help-markdown`;
between `<!-- metrics:egret-proxy -->` and `<!-- /metrics -->` that of `egret-proxy --help-metrics` (likewise egret-backend's);
between `<!-- stats:egret-proxy -->` and `<!-- /stats -->` that of `egret-proxy --help-stats`;
between `<!-- events:egret-proxy -->` and `<!-- /events -->` that of `egret-proxy --help-events`: what the log says.
between `<!-- flags:egret-memcached -->` and `<!-- /flags -->` tools/memcached/README.md holds that of `egret-memcached --help-markdown`.
conf/egret-proxy.yaml is that of `egret-proxy --help-yaml`, and passes `--check-config`, also with every line uncommented.
--update writes both anew.
"""
import pathlib, re, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
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


def with_block(readme, text, kind, program, block):
    """`text`, which is readme's, with what stands between the two marks replaced."""
    marked = f"<!-- {kind}:{program} -->\n{block}<!-- /{kind} -->"
    text, found = re.subn(rf"<!-- {kind}:{program} -->.*?<!-- /{kind} -->", lambda _: marked, text, flags=re.S)
    if found != 1:
        wrong.append(f"{readme.relative_to(ROOT)}: {found} places for the {kind} of {program}, expected one")
    return text


readme = ROOT / "README.md"
text = with_block(readme, readme.read_text(), "stats", "egret-proxy", output("egret-proxy", "--help-stats"))
for program in ("egret-proxy", "egret-backend"):
    text = with_block(readme, text, "options", program, output(program, "--help-markdown"))
    text = with_block(readme, text, "metrics", program, output(program, "--help-metrics"))
    text = with_block(readme, text, "events", program, output(program, "--help-events"))
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
expect(readme, text)
front = ROOT / "tools" / "memcached" / "README.md"
expect(front, with_block(front, front.read_text(), "flags", "egret-memcached", output("egret-memcached", "--help-markdown")))

print("\n".join(wrong) or "the documents of options and metrics are up to date")
sys.exit(1 if wrong else 0)
