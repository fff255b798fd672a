#!/usr/bin/env python3
"""documents.py PROGRAMS OUT MAINTAINER PREFIX: man pages, bash completion and the journal's message catalogs, from what the programs in PROGRAMS say of themselves, and Debian's
changelog, from CHANGELOG.md.

    --help, --help-markdown (the option tables), --help-events ─▶ OUT/egret-proxy.8 ..., OUT/egret-proxy.bash ..., OUT/egret-proxy.catalog ...

Nothing of it is written by hand a second time: an option is a row of its daemon's table.
"""
import calendar, gzip, os, pathlib, re, subprocess, sys, textwrap, time
from email.utils import formatdate

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS, OUT, MAINTAINER, PREFIX = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]
SUMMARIES = {
    "egret-memcached": "runs Egret as memcached is run",
    "egret-bench": "drives and measures servers that speak memcached's protocol",
    "egret-run": "runs a program whose memcached connections are served by slots",
    "egret-top": "shows what egret-proxy and egret-backend do",
}


def said(program, *arguments):
    return subprocess.run([PROGRAMS / program, *arguments], capture_output=True, text=True, check=True).stdout


# --- what the programs say


def table(program, what="--help-markdown"):
    """The rows of a table as Markdown: lists of cells, without their marks."""
    rows = []
    for line in said(program, what).splitlines()[2:]:
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        rows.append([cell.strip().strip("`").replace("\\|", "|") for cell in cells])
    return rows


def flags(help_text):
    """Every -x and --long that begins a line of a --help."""
    found = []
    for line in re.findall(r"^ *(-[-\w].*)$", help_text, re.M):
        head = re.split(r"  +", line)[0]
        found += re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", head)
    return sorted(set(found))


def daemon_parts(program):
    """Of a daemon's --help: the sentence about it, and the flags with what they do."""
    text = said(program, "--help")
    summary = text.split("\n")[0].split(": ", 1)[1]
    arguments = re.findall(r"^  (--\S+(?: [A-Z=]+)?)  +(.*)$", text.split("\nOptions, ")[0], re.M)
    return summary, arguments


# --- man pages


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def page(program, section, summary, synopsis, body, see_also):
    version = said(program, "--version").split()[-1] if section == 8 else ""
    return "\n".join([
        f".TH {program.upper()} {section} \"\" \"Egret {version}\" \"Egret\"", ".SH NAME", f"{roff(program)} \\- {roff(summary)}",
        ".SH SYNOPSIS", f".B {roff(program)}", roff(synopsis), *body, ".SH SEE ALSO", see_also, ""])


def tagged(tag, text):
    return [".TP", f".B {roff(tag)}", roff(text)]


def daemon_page(program):
    summary, arguments = daemon_parts(program)
    body = [".SH DESCRIPTION", roff(summary), ".SH ARGUMENTS"]
    for flag, text in arguments:
        body += tagged(flag, text)
    body += [".SH OPTIONS", roff(f"Keys of the file of --config, /etc/egret/{program}.yaml for the unit, or of --set:")]
    body += [".PP", "Most operators set only those marked (usual); the others are right as they are until a figure says otherwise."]
    shown = None
    for name, group, kind, default, applied_by, text in table(program):
        group, _, usual = group.partition(", ")
        if group != shown:
            body.append(f".SS {roff(group[0].upper() + group[1:])}")
            shown = group
        body += tagged(name, f"{'(usual) ' if usual else ''}{text} ({kind}; default {default or 'empty'}; applied by a {applied_by})")
    body += [".SH SIGNALS", "SIGTERM and SIGINT end it, with status 0."]
    body.append("SIGHUP has it read its options and their files again, and apply those that a reload applies; if anything is wrong, "
                "it says so and nothing changes.")
    body += [".SH LOG", "Each line ends with the name of its event (in the journal: the field EGRET_EVENT; journalctl \\-x explains it, too):"]
    for name, level, meaning, advice in table(program, "--help-events"):
        body += tagged(f"{name} ({level})", meaning if advice == "–" else f"{meaning} {advice}")
    body += [".SH FILES", f".I /etc/egret/{roff(program)}.yaml", ".br", ".I /run/egret", ".br",
             f".I {roff(f'{PREFIX}/share/doc/{program}/docs/operate/README.md')}", ".RS", "How to run it: recipes, limits, troubleshooting.", ".RE",
             f".I {roff(f'{PREFIX}/share/doc/{program}/docs/reference/README.md')}", ".RS", "Options, metrics, statistics and log events.", ".RE"]
    others = {"egret-proxy": "egret\\-backend", "egret-backend": "egret\\-proxy"}[program]
    return page(program, 8, summary.rstrip("."), "[--config FILE] [--set KEY=VALUE]...", body,
                f".BR {others} (8), egret\\-memcached (1)")


def plain_page(program, see_also):
    body = [".SH DESCRIPTION", ".nf", roff(said(program, "--help").strip()), ".fi"]
    return page(program, 1, SUMMARIES[program], "[FLAGS]", body, see_also)


# --- the man page of libegret, from its header


def library_page():
    header = (ROOT / "client/egret.h").read_text()
    plain = lambda comment: " ".join(re.sub(r"^\s*(/\*+|\*/|\*)?", "", line).replace("*/", "").replace("---", "").strip() for line in comment.splitlines()).strip()
    version = re.search(r"project\(egret VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    about = header[:header.index("#ifndef")]
    body = [".SH DESCRIPTION", ".nf", *(roff(re.sub(r"^(/\*| \*/?)? ?", "", line).replace("*/", "")) for line in about.strip().splitlines()), ".fi"]
    constants = re.findall(r"(/\*[^/]*?\*/\s*)?enum \{(.*?)\};", header, re.S)
    functions = re.findall(r"((?:/\*(?:(?!\*/).)*\*/\s*)*)EGRET_API ([^;]+);(?:[ \t]*(/\*.*?\*/))?", header, re.S)
    body += [".SH FUNCTIONS"]
    for comment, declaration, behind in functions:
        if "#" in declaration:
            continue  # what EGRET_API is
        if section := re.search(r"/\* --- ([^.:*]+)", comment):
            heading = " ".join(section[1].split())
            body.append(f".SS {roff(heading[0].upper() + heading[1:])}")
            comment = comment.replace(section[0], "/* ").replace("/* . ", "/* ", 1)
        body += [".TP", f".B {roff(' '.join(declaration.split()))};", roff(plain(comment + behind).lstrip(".: "))]
    body += [".SH STRUCTS"]
    for struct in re.findall(r"typedef struct \w+ \{.*?\} \w+;", header, re.S):
        body += [".nf", roff(struct), ".fi", ".PP"]
    body += [".SH CONSTANTS"]
    for comment, values in constants:
        body += [roff(plain(comment)) or "Codes:", ".PP", ".nf", roff(values.strip("\n")), ".fi", ".PP"]
    body += [".SH OPTIONS", "Names and values of egret_options_set(), and of the file:"]
    for name, _, kind, default, _, text in table("egret-client-options"):
        body += tagged(name, f"{text} ({kind}; default {default or 'empty'})")
    body += [".SH FILES", ".I /etc/egret/client.yaml", ".br", f".I {roff(f'{PREFIX}/share/doc/libegret-dev/README.md')}", ".RS",
             "What a code says, threads, forks, what holds on which path; beside it, examples.", ".RE"]
    return "\n".join([f".TH EGRET 3 \"\" \"Egret {version}\" \"Egret\"", ".SH NAME", "egret \\- client library of Egret", ".SH SYNOPSIS",
                      ".B #include <egret.h>", ".br", ".B #include <egret.hpp>", ".br", "cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs egret)", *body,
                      ".SH SEE ALSO", ".BR egret\\-backend (8), egret\\-proxy (8)", ""])


# --- bash completion

COMPLETION = """# bash completion of {program}, made from its --help.
_{name}() {{
  local cur prev words cword
  _init_completion -n = || return
  case $prev in
    --config) _filedir; return ;;
{sets}  esac
  COMPREPLY=($(compgen -W '{flags}' -- "$cur"))
}}
complete -o default -F _{name} {program}
"""
SETS = """    --set)
      case $cur in
{values}        *) COMPREPLY=($(compgen -W '{keys}' -- "$cur")); compopt -o nospace ;;
      esac
      return ;;
"""


def choices(kind):
    """The words that a value of this type is one of."""
    if kind == "true or false":
        return ["true", "false"]
    return kind.split(", ") if re.fullmatch(r"[\w.]+(, [\w.]+)+", kind) else []


def completion(program, is_daemon):
    sets, own = "", flags(said(program, "--help"))
    if is_daemon:
        rows = table(program)
        own = sorted({flag.split()[0] for flag, _ in daemon_parts(program)[1]})
        values = "".join(f"        {name}=*) COMPREPLY=($(compgen -P '{name}=' -W '{' '.join(choices(kind))}' -- \"${{cur#*=}}\")) ;;\n"
                         for name, _, kind, *_ in rows if choices(kind))
        sets = SETS.format(values=values, keys=" ".join(f"{row[0]}=" for row in rows))
    return COMPLETION.format(program=program, name=program.replace("-", "_"), sets=sets, flags=" ".join(own))


# --- the changelog


def debian_changelog():
    entries = re.findall(r"^## (\S+) – (\S+)\n\n(.*?)(?=^## |\Z)", (ROOT / "CHANGELOG.md").read_text(), re.M | re.S)
    assert entries, "CHANGELOG.md has no entry"
    text = ""
    for version, day, body in entries:
        # A version that is not released yet has the date of the build.
        seconds = int(os.environ.get("SOURCE_DATE_EPOCH", time.time())) if day == "unreleased" else calendar.timegm(time.strptime(day, "%Y-%m-%d"))
        date = formatdate(seconds)
        points = re.findall(r"^- (.*?)(?=^- |\Z)", body, re.M | re.S)
        lines = "\n".join(textwrap.fill(" ".join(point.split()), 78, initial_indent="  * ", subsequent_indent="    ") for point in points)
        text += f"egret ({version}) stable; urgency=medium\n\n{lines}\n\n -- {MAINTAINER}  {date}\n\n"
    return text


def write_compressed(name, text):
    (OUT / f"{name}.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


OUT.mkdir(parents=True, exist_ok=True)
for daemon in ("egret-proxy", "egret-backend"):
    write_compressed(f"{daemon}.8", daemon_page(daemon))
    (OUT / f"{daemon}.bash").write_text(completion(daemon, True))
    (OUT / f"{daemon}.catalog").write_text(said(daemon, "--help-catalog"))
for tool, others in (("egret-memcached", ".BR egret\\-proxy (8), egret\\-backend (8)"), ("egret-bench", ".BR egret\\-proxy (8)"),
                     ("egret-top", ".BR egret\\-proxy (8), egret\\-backend (8)"), ("egret-run", ".BR egret\\-proxy (8), egret (3)")):
    write_compressed(f"{tool}.1", plain_page(tool, others))
    (OUT / f"{tool}.bash").write_text(completion(tool, False))
write_compressed("egret.3", library_page())
(OUT / "man3").mkdir(exist_ok=True)
for function in re.findall(r"^EGRET_API [^;#]*?\b(egret_\w+)\(", (ROOT / "client/egret.h").read_text(), re.M):
    write_compressed(f"man3/{function}.3", ".so man3/egret.3\n")
write_compressed("changelog", debian_changelog())
