#!/usr/bin/env python3
"""sizes.py [TREE...]: classes, constructors, functions, folders and headers of the product are none too large.

Without a TREE: holds the limits in this one, prints what is over them and a summary. With TREEs (checkouts of
commits): prints their figures side by side, and holds nothing.

It reads the C++ sources as clang-format writes them: comments and literals out, then brackets. What is counted:
  public methods    of a class or struct, as declared in it: static ones and overloads too; not constructors, destructors,
                    assignments, and what is deleted
  constructor       its parameters
  function          its lines, from its declarator to its closing brace; a lambda belongs to the function it is in
  system            a file of the paradigms laboratory's systems/: its lines, so that each is read at once beside its paper
  hub header        the header with the most includes of our own, of those that five or more other files include
"""
import bisect, collections, pathlib, re, statistics, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("protocol", "client", "proxy", "backend", "tools")
MOST_METHODS = 20
MOST_ARGUMENTS = 6
MOST_LINES = 70
MOST_FILES = 25
SYSTEMS = "tools/bench/paradigms/systems"
MOST_SYSTEM_LINES = 300
HUB_USERS = 5

NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
TEMPLATE = re.compile(r"template\s*<")
CLASS = re.compile(r"(?:class|struct|union)\s+(?:alignas\s*\([^)]*\)\s*|\[\[.*?\]\]\s*)*([\w:]*)\s*(?:final\b\s*)?(?::(?!:)|$)", re.S)
ACCESS = re.compile(r"\s*(public|private|protected)\s*:(?!:)")


def blank(text):
    """The text without comments, literals and preprocessor lines; every line stays where it is."""
    return NOISE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()) if m.group()[0] not in "\"'R" else '""' + re.sub(r"[^\n]", " ", m.group())[2:], text)


def closing(text, at):
    """Where the bracket that opens at `at` closes."""
    depth = 0
    for found in re.finditer(r"[(){}\[\]]", text[at:]):
        depth += 1 if found.group() in "({[" else -1
        if depth == 0:
            return at + found.start()
    raise ValueError("a bracket that does not close")


def without_template(head):
    """The declaration after its `template <...>`."""
    found = TEMPLATE.match(head)
    if not found:
        return head
    depth, at = 1, found.end()
    while depth > 0:
        depth += {"<": 1, ">": -1}.get(head[at], 0)
        at += 1
    return without_template(head[at:].lstrip())


class Tree:
    """What is in a tree's sources: methods and constructors by class, functions with their lines."""

    def __init__(self, root):
        self.root = root
        self.methods = collections.Counter()
        self.constructors = []  # (arguments, class)
        self.functions = []  # (lines, name)
        self.includes = collections.defaultdict(set)  # of each file, of our own headers: as they are written
        self.sources = sorted(path for place in PLACES for path in (root / place).rglob("*") if path.suffix in (".cc", ".h"))
        if not self.sources:
            sys.exit(f"sizes: no sources in {root}")
        self.folders = collections.Counter(str(path.parent.relative_to(root)) for path in self.sources)
        for path in self.sources:
            text = path.read_text()
            self.includes[str(path.relative_to(root))] = set(re.findall(r'^#include "([^"]+)"', text, re.M))
            text = blank(text)
            self.ends = [m.start() for m in re.finditer("\n", text)]
            self.text, self.path = text, path.relative_to(root)
            try:
                self.scope(0, len(text), None)
            except ValueError as error:
                sys.exit(f"sizes: {self.path}: {error}")

    def line(self, at):
        return bisect.bisect_left(self.ends, at)

    def scope(self, at, end, owner):
        """Reads the declarations of a namespace (no owner) or of a class (its name)."""
        access = "public" if owner and owner[1] == "struct" else "private"
        while at < end:
            if found := ACCESS.match(self.text, at, end):
                access, at = found.group(1), found.end()
                continue
            at = self.declaration(at, end, owner, access)

    def declaration(self, at, end, owner, access):
        """Reads one declaration; returns where the next begins."""
        text = self.text
        while at < end and (text[at].isspace() or text[at] in ";}"):
            at += 1
        start, in_initializers, called, value = at, False, -1, False
        while at < end:
            c = text[at]
            if c in "([":
                if c == "(" and called < 0 and not value and not re.search(r"\b(alignas|decltype|noexcept|__attribute__)\s*$", text[start:at]):
                    called = at
                at = closing(text, at)
            elif c == "=" and not re.search(r"operator[^\w\s(]*$", text[start:at]) and text[at - 1] not in "<>" and text[at + 1] != "=":
                value = True
            elif c == ":" and text[at + 1] != ":" and text[at - 1] != ":" and called >= 0:
                in_initializers = True
            elif c == ";":
                self.member(text[start:at], start, called, value, owner, access)
                return at + 1
            elif c == "{":
                head = without_template(text[start:at].strip())
                if called < 0 and not value and re.match(r'(inline\s+)?namespace\b|extern\s*""', head):
                    self.scope(at + 1, closing(text, at), None)
                    return closing(text, at) + 1
                if not value and (found := CLASS.match(head)) and (called < 0 or not in_initializers and text[called - 1] != "" and CLASS.match(head)):
                    self.scope(at + 1, closing(text, at), (found.group(1), head.split()[0]))
                    at = closing(text, at)
                elif called < 0 or value or (in_initializers and re.search(r"[\w>]\s*$", text[start:at])):
                    at = closing(text, at)  # an initializer, or an enum
                else:
                    stop = closing(text, at)
                    self.member(text[start:at], start, called, False, owner, access)
                    name = re.search(r"(operator\s*\S+|~?[\w:~]+)\s*$", text[start:called])
                    whole = f"{owner[0]}::{name.group(1)}" if owner and name else name.group(1) if name else "?"
                    self.functions.append((self.line(stop) - self.line(start) + 1, f"{whole} ({self.path})"))
                    return stop + 1
            at += 1
        return end

    def member(self, head, start, called, value, owner, access):
        """Notes a declaration of a class, if it is a function."""
        if called < 0 or not owner:
            return
        head = head.strip()
        if re.match(r"(using|typedef|friend|static_assert|enum)\b", without_template(head)):
            return
        before = self.text[start:called]
        arguments = self.text[called + 1:closing(self.text, called)]
        name = re.search(r"(operator\s*\S+|operator\s*\(\s*\)|~?\w+)\s*$", before)
        if not name or re.search(r"=\s*delete\s*$", head):
            return
        name = name.group(1)
        short = owner[0].split("::")[-1]
        if name == short:
            self.constructors.append((count(arguments), f"{owner[0]} ({self.path})"))
        elif access == "public" and not name.startswith("~") and name != "operator=":
            self.methods[f"{owner[0]} ({self.path})"] += 1


def count(arguments):
    """How many parameters there are."""
    if not arguments.strip() or arguments.strip() == "void":
        return 0
    depth, commas = 0, 0
    for c in arguments:
        depth += {"(": 1, "<": 1, "{": 1, "[": 1, ")": -1, ">": -1, "}": -1, "]": -1}.get(c, 0)
        commas += c == "," and depth == 0
    return commas + 1


def hub(tree):
    """(includes of our own, header) of the hub header."""
    headers = [path for path in tree.includes if path.endswith(".h")]
    users = collections.Counter(name for names in tree.includes.values() for name in names)
    own = {header: max((count for name, count in users.items() if header.endswith("/" + name)), default=0) for header in headers}
    return max((len(tree.includes[header]), header) for header in headers if own[header] >= HUB_USERS)


def table(trees):
    """The figures of each tree, a line each."""
    def rows(tree):
        lines = [count for count, _ in tree.functions]
        yield "public methods of the five largest classes", ", ".join(f"{name.split(' ')[0]} {n}" for name, n in tree.methods.most_common(5))
        yield "constructor arguments, most", "{} ({})".format(max(tree.constructors)[0], max(tree.constructors)[1].split(" ")[0])
        yield "files in a folder, most", "{1} ({0})".format(*tree.folders.most_common(1)[0])
        yield "functions", str(len(lines))
        yield "lines of a function, median", f"{statistics.median(lines):g}"
        yield "lines of a function, most", "{} ({})".format(max(lines), max(tree.functions)[1].split(" ")[0])
        yield "includes of the largest hub header", "{} ({})".format(*hub(tree))
        yield "lines of README.md", str(len((tree.root / "README.md").read_text().splitlines()))
    for figures in zip(*(rows(tree) for tree in trees)):
        print("| " + " | ".join([figures[0][0], *(value for _, value in figures)]) + " |")


def over(tree):
    """What is larger than it may be."""
    for name, count in tree.methods.items():
        if count > MOST_METHODS:
            yield f"{name} has {count} public methods, at most {MOST_METHODS}"
    for count, name in tree.constructors:
        if count > MOST_ARGUMENTS:
            yield f"a constructor of {name} takes {count} arguments, at most {MOST_ARGUMENTS}"
    for count, name in tree.functions:
        if count > MOST_LINES:
            yield f"{name} has {count} lines, at most {MOST_LINES}"
    for folder, count in sorted(tree.folders.items()):
        if count > MOST_FILES:
            yield f"{folder} holds {count} sources, at most {MOST_FILES}"
    for path in sorted((tree.root / SYSTEMS).glob("*.cc")):
        count = len(path.read_text().splitlines())
        if count > MOST_SYSTEM_LINES:
            yield f"{path.relative_to(tree.root)} has {count} lines, at most {MOST_SYSTEM_LINES}"


def main():
    if len(sys.argv) > 1:
        return table([Tree(pathlib.Path(name).resolve()) for name in sys.argv[1:]])
    tree = Tree(ROOT)
    wrong = list(over(tree))
    print("\n".join(wrong), end="\n" if wrong else "")
    table([tree])
    return 1 if wrong else 0


sys.exit(main())
