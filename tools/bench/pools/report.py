"""What was counted, as Markdown tables."""

import statistics


def _table(head, rows):
    line = lambda cells: "| " + " | ".join(str(cell) for cell in cells) + " |"
    return "\n".join([line(head), line(["---"] * 2 + ["---:"] * (len(head) - 2))] + [line(row) for row in rows])


def _unavailable(result, columns):
    return [result["name"], f"not available: {result['missing']}"] + [""] * (columns - 2)


def _changes(results, keys):
    head = ["pool", "members", "keys that missed", "% of all", "misses", "worst second, % of gets", "stale values read", "failed requests"]
    rows = []
    for result in results:
        for step in result["changes"]:
            if step["step"] == "before":
                continue
            rows.append([result["name"], step["step"].replace("to", "→"), step["keys_missed"], f"{100 * step['keys_missed'] / keys:.1f}", step["misses"],
                         f"{step['worst_second_percent']:.1f}", step["stale"], step["failed"]])
        if result["missing"] and "warm" in result["name"]:
            rows.append(_unavailable(result, len(head)))
    return _table(head, rows)


def _spread(values, form="{:.0f}"):
    """Median, and the most if it differs."""
    shown, most = form.format(statistics.median(values)), form.format(max(values))
    return shown if shown == most else f"{shown} ({most})"


def _last_failed(steps):
    if any(step["fails_all_the_while"] for step in steps):
        return "as long as it is away"
    failed = [step["last_failed_ms"] for step in steps if step["last_failed_ms"] is not None]
    return _spread(failed) + " ms" if failed else "none failed"


def _faults(results, names):
    head = ["pool", "situation", "last failed request after", "failed requests", "misses", "longest wait, ms", "stale values read", "keys"]
    rows = []
    for result in results:
        for name in names:
            steps = [step for step in result["faults"] if step["step"] == name]
            if not steps:
                continue
            of = lambda field: _spread([step[field] for step in steps])
            rows.append([result["name"], name, _last_failed(steps), of("failed"), of("misses"), of("longest_ms"), of("stale"), of("stale_keys")])
        if result["missing"] and "gutter" in result["name"]:
            rows.append(_unavailable(result, len(head)))
    return _table(head, rows)


def markdown(results, options):
    return "\n\n".join([
        "Members change:",
        _changes(results, options.keys),
        f"A member dies or hangs for some seconds; median of {options.times} times (and the most):",
        _faults(results, ("kill -9", "SIGSTOP")),
        "It returns:",
        _faults(results, ("return from kill -9", "return from SIGSTOP"))])


BEGIN, END = "<!-- make pools -->\n", "<!-- end -->"


def write(page, text):
    """Puts the tables between the marks of a page."""
    before, rest = page.read_text().split(BEGIN)
    page.write_text(before + BEGIN + "\n" + text + "\n\n" + END + rest.split(END, 1)[1])
