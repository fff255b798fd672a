"""smoke_test.py EGRET_BENCH: `egret-bench paradigms --memory` runs every paradigm, counts its verbs and finds no answer wrong."""
import json, os, pathlib, re, resource, subprocess, sys, tempfile

BENCH = os.path.abspath(sys.argv[1])
PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/benchmarks/paradigms.md"


def run(*arguments, folder=None):
    done = subprocess.run([BENCH, "paradigms", *arguments], capture_output=True, text=True, timeout=300, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def report(*arguments):
    status, out, err = run("--memory", "--json", *arguments)
    assert status == 0, (status, err)
    return json.loads(out)


def rows_of(found):
    return {row["id"]: row for row in found["cases"][0]["rows"]}


def every_paradigm_answers():
    found = report("--ops", "2000", "--keys", "2000")
    rows = rows_of(found)
    assert "raw-read" in rows and found["broken_promises"] == 0
    for name, row in rows.items():
        assert "not_available" not in row, (name, row)
        answers = row["answers"]
        assert answers["ops"] == 2000 and answers["wrong"] == 0 and answers["unanswered"] == 0, (name, answers)
        assert answers["hits"] + answers["misses"] + answers["done"] + answers["full"] + answers["lost"] == 2000, (name, answers)
        assert "times" not in row and "mops" not in json.dumps(row), name
    assert found["cases"][0]["verdict"]["why"] == "no verdict: counted only"
    assert rows["raw-read"]["client"]["verbs"] == {"RC": {"READ": 1.0}}
    assert rows["raw-read"]["server"]["doorbells"] == 0


def the_same_seed_counts_the_same():
    first, again = (report("--ops", "1000", "--keys", "500", "--seed", "7") for _ in range(2))
    assert first == again


def lists_are_tables_each():
    found = report("--only", "raw-read", "--ops", "100", "-V", "16,64", "--gets", "95,100")
    assert [(case["value_bytes"], case["gets"]) for case in found["cases"]] == [(16, 0.95), (16, 1), (64, 0.95), (64, 1)]
    assert rows_of({"cases": found["cases"][2:]})["raw-read"]["client"]["payload_bytes"] == 64


def row_of(name, *arguments):
    return rows_of(report("--only", name, "--ops", "600", "--keys", "1000", *arguments))[name]


def of_clients(row, verb, pair="RC"):
    return row["client"]["verbs"].get(pair, {}).get(verb, 0)


# Options that change what is counted: of which paradigm, with what else, and how the row differs from the one without.
EFFECTS = (
    ("--as-paper", "farm-em", (), lambda now, old: now["client"]["payload_bytes"] < old["client"]["payload_bytes"]),
    ("--posting sync", "reply", (), lambda now, old: now["client"]["signalled"] == 1 > old["client"]["signalled"]),
    ("--doorbell 16", "herd", ("--clients", "8"), lambda now, old: now["server"]["doorbells"] < 0.7 < old["server"]["doorbells"]),
    ("--signal-every 1", "reply", (), lambda now, old: now["server"]["signalled"] == 1 > old["server"]["signalled"]),
    ("--no-inline", "reply", (), lambda now, old: now["client"]["inlined"] == 0 < old["client"]["inlined"]),
    ("--header-only", "herd", ("--gets", "0"), lambda now, old: now["server"]["payload_bytes"] == 0 < old["server"]["payload_bytes"]),
    ("--pad 64", "reply", (), lambda now, old: round(now["server"]["payload_bytes"] - old["server"]["payload_bytes"]) == 64),
    ("--fetch-bytes 20", "rfp", (), lambda now, old: of_clients(now, "READ") > of_clients(old, "READ") + 0.9),
    ("--ways 4", "nessie", ("--gets", "0"), lambda now, old: of_clients(now, "READ") > of_clients(old, "READ") + 1),
    ("--hops 8", "farm-em", ("--gets", "100"), lambda now, old: abs(now["client"]["payload_bytes"] * 6 - old["client"]["payload_bytes"] * 8) < 1),
    ("--no-checks", "farm-em", ("--gets", "100"), lambda now, old: round(old["client"]["payload_bytes"] - now["client"]["payload_bytes"]) == 6 * 8),
    ("--load 0.2", "pilaf", ("--gets", "100"), lambda now, old: of_clients(now, "READ") < of_clients(old, "READ") - 0.3),
    ("--index-load 0.45", "nessie", ("--gets", "100"), lambda now, old: of_clients(now, "READ") > of_clients(old, "READ")),
    ("--filter-bits 0", "nessie", ("--gets", "100"), lambda now, old: of_clients(now, "READ") > of_clients(old, "READ")),
    ("--cache 1000", "nessie", ("--gets", "100"), lambda now, old: of_clients(now, "READ") < of_clients(old, "READ")),
    ("--locality 80", "nessie", ("--gets", "100"), lambda now, old: of_clients(now, "READ") < of_clients(old, "READ") - 0.4),
    ("--place server", "nessie", ("--gets", "0"), lambda now, old: of_clients(now, "WRITE") > of_clients(old, "WRITE") + 1.9),
    ("--own-node", "nessie-sd", ("--server-cores", "2"), lambda now, old: of_clients(now, "WRITE") < 0.7 and of_clients(old, "WRITE") == 1),
    ("--no-cached-places", "drtm", ("--gets", "100"), lambda now, old: of_clients(now, "READ") >= of_clients(old, "READ") + 1),
    ("--raw-reads 2", "raw-read", (), lambda now, old: of_clients(now, "READ") == 2),
    ("--zipf 0.99", "nessie", ("--gets", "100", "--cache", "50"), lambda now, old: of_clients(now, "READ") < of_clients(old, "READ") - 0.1),
    ("--erases 50", "reply", ("--gets", "50"), lambda now, old: now["answers"]["misses"] > 0 == old["answers"]["misses"]),
    ("-K 100", "reply", (), lambda now, old: round(now["client"]["payload_bytes"] - old["client"]["payload_bytes"]) == 84),
    ("--server-cores 4", "nessie-sd", ("--own-node",), lambda now, old: of_clients(now, "WRITE") > 0.6 and of_clients(old, "WRITE") == 0),
    ("--clients 8", "nessie", ("--gets", "100"), lambda now, old: of_clients(now, "READ") > of_clients(old, "READ")),
)


def options_do_something():
    for option, name, besides, holds in EFFECTS:
        now, old = row_of(name, *besides, *option.split()), row_of(name, *besides)
        assert holds(now, old), (option, now["client"], old["client"], now["server"], old["server"], now["answers"])


def reads_of_gets_are_told_where_puts_read_nothing():
    for name, besides, is_told in (("nessie", "--gets 90", False), ("nessie", "--gets 100", True), ("drtm", "--gets 90", True),
                                   ("drtm", "--gets 90 --no-cached-places", False), ("pilaf", "--gets 90", True)):
        steps = row_of(name, *besides.split()).get("steps_of_a_get")
        assert (steps is not None) == is_told, (name, besides, steps)
        assert not is_told or abs(steps["counted"] - steps["expected"]) <= 0.005 * steps["expected"], (name, besides, steps)


def gets_of_one_and_puts_of_another_are_a_row():
    found = rows_of(report("--get", "nessie", "--put", "nessie-sd", "--ops", "600", "--keys", "1000", "--gets", "50"))
    assert list(found) == ["nessie", "nessie-sd", "nessie+nessie-sd"], list(found)
    pair = found["nessie+nessie-sd"]
    puts = 1 - pair["answers"]["gets"] / 600
    assert abs(of_clients(pair, "WRITE") - puts) < 0.001 and abs(pair["server"]["doorbells"] - puts) < 0.001, pair
    assert of_clients(pair, "CAS") == 0 and pair["answers"]["wrong"] == 0, pair
    assert set(pair["relies_on"]) == {"W", "time", "HCA"}, pair


def connections_of_a_thread_cost_no_verb():
    one, four = row_of("reply"), row_of("reply", "--queue-pairs", "4")
    assert four["answers"]["wrong"] == 0 and four["client"]["verbs"] == one["client"]["verbs"]


def huge_pages_are_told_of():
    arguments = ("--memory", "--only", "pilaf", "--ops", "100", "--keys", "20000", "-V", "256")
    assert "huge pages" not in run(*arguments)[2]
    status, _, err = run(*arguments, "--huge")
    assert status == 0 and re.search(r"huge pages: [0-9.]+ of [1-9][0-9.]* MiB", err), err


def the_report_tells_what_was_changed():
    few = ("--only", "pilaf", "--ops", "100", "--keys", "200")
    _, plain, _ = run("--memory", *few)
    assert "75 % of an exposed table's entries" in plain and "as by default" in plain and "changed" not in plain, plain
    _, out, _ = run("--memory", *few, "--load", "0.5", "--no-inline", "--ways", "4")
    assert "50 % of an exposed table's entries" in out and "changed: no inline, load 0.5, ways 4\n" in out, out
    variants = report(*few, "--load", "0.5", "--own-node")["setting"]["variants"]
    assert variants["load"] == 0.5 and variants["own-node"] is True and variants["inline"] is True and variants["ways"] == 2, variants
    options = {name.split()[0] for name in variants}
    table = PAGE.read_text().split("What the papers try one by one:")[1].split("\n## ")[0] + "`--queue-pairs`"
    assert set(re.findall(r"--(?!no-)([a-z][a-z-]*)", table)) == options, options ^ set(re.findall(r"--(?!no-)([a-z][a-z-]*)", table))


def large_values_take_no_unbounded_memory():
    large = ("--only", "nessie", "--ops", "20", "--keys", "20", "-V", "1048576")
    refused = rows_of(report(*large))["nessie"]
    assert "1 GiB" in refused["not_available"] and "--spare-entries" in refused["not_available"], refused
    answers = rows_of(report(*large, "--spare-entries", "32"))["nessie"]["answers"]
    assert answers["ops"] == 20 and answers["wrong"] == 0 and answers["full"] == 0, answers


def every_option_is_documented():
    help_text = run("--help")[1]
    options = set(re.findall(r"^  (?:-[A-Z],)?(--[a-z-]+)", help_text, re.MULTILINE))
    assert len(options) > 45, options
    page = PAGE.read_text()
    assert not [each for each in options if not re.search(re.escape(each) + r"(?![a-z-])", page)], \
        [each for each in sorted(options) if not re.search(re.escape(each) + r"(?![a-z-])", page)]


def people_get_a_table():
    status, out, err = run("--memory", "--ops", "100", "--only", "raw-read")
    assert status == 0, err
    assert "| `raw-read` | 1 RC READ | 0 |" in out and "counted only" in out and "Mops/s" not in out, out


def what_cannot_be_is_refused():
    for arguments, word in (
        ([], "--memory"),
        (["--memory", "--only", "nothing"], "nothing"),
        (["--memory", "--preset", "nothing"], "nothing"),
        (["--memory", "--breaks", "Z"], "Z"),
        (["--memory", "--nic", "cx9"], "cx3-40"),
        (["--memory", "--keys", "2", "--clients", "3"], "--keys"),
        (["--memory", "--keys", "100000", "-K", "4"], "--key-bytes"),
        (["--memory", "--loop", "127.0.0.1:1"], "excludes"),
        (["--memory", "--get", "herd"], "--put"),
        (["--memory", "--get", "herd", "--put", "raw-read"], "--put raw-read"),
        (["--memory", "--queue-pairs", "1024", "--clients", "5"], "--queue-pairs"),
        (["--memory", "--place", "elsewhere"], "--place"),
        (["--memory", "--busy", "2"], "--busy"),
    ):
        status, _, err = run(*arguments)
        assert status == 1 and word in err, (arguments, status, err)


def counted_verbs_are_modelled_on_a_card():
    few = ("--memory", "--ops", "300", "--keys", "300", "--only", "rfp,herd,raw-read,drtm-em", "--gets", "100")
    status, out, err = run(*few, "--nic", "cx3-56")
    assert status == 0, err
    assert "Modelled on `cx3-56`" in out and "**Best store by the model: `herd`**" in out and "Modelled, not measured" in out, out
    found = report(*few[1:], "--nic", "cib")["cases"][0]["model"]
    rates = {row["id"]: row["mops"] for row in found["rows"]}
    assert found["nic"] == "cib" and rates["raw-read"] == 121.6 and rates["herd"] == 80, found


def a_card_is_read_from_a_file():
    card = {"name": "mine", "source": "a test", "read_in": [[64, 50], [4096, 2]], "link_gbps": 100, "round_trip_us": 2}
    few = ("--memory", "--ops", "200", "--keys", "200", "--only", "raw-read", "-V", "64", "--json")
    with tempfile.TemporaryDirectory() as folder:
        status, _, err = run(*few, "--nic", "measured", folder=folder)
        assert status == 1 and "egret-nic.json" in err and "--nic-file" in err, err
        for name, argument in (("card.json", "card.json"), ("egret-nic.json", "measured")):
            with open(os.path.join(folder, name), "w") as file:
                json.dump(card, file)
            status, out, err = run(*few, "--nic", argument, folder=folder)
            assert status == 0, err
            model = json.loads(out)["cases"][0]["model"]
            assert model["nic"] == "mine" and model["rows"][0]["mops"] == 16, model  # 4 clients x 8 ops, each 2 us under way
            assert model["rows"][0]["limits"][0]["what"] == "ops under way", model
        for wrong, word in (("{", "no JSON object"), ('{"read_out": 3}', "read_out is not known"), ('{"atomic": "x"}', "atomic")):
            with open(os.path.join(folder, "card.json"), "w") as file:
                file.write(wrong)
            status, _, err = run(*few, "--nic", "card.json", folder=folder)
            assert status == 1 and word in err and "card.json" in err, err


def what_memory_does_not_suffice_for_is_a_row_that_says_so():
    """Not with a sanitizer, whose shadow memory is larger than any limit."""
    def limited(*arguments):
        return subprocess.run([BENCH, "paradigms", *arguments], capture_output=True, text=True, timeout=300,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
    if limited("--help").returncode != 0:
        return
    done = limited("--memory", "--json", "--only", "pilaf,pilaf-em", "-V", "16000", "--keys", "50000", "--ops", "100")
    assert done.returncode == 0, done.stderr
    for row in json.loads(done.stdout)["cases"][0]["rows"]:
        assert "memory" in row["not_available"], row


def help_lists_what_there_is():
    status, out, _ = run("--help")
    assert status == 0
    for word in ("Hosts:", "Workload:", "Variants:", "--as-paper", "raw-read", "pilaf-fig7"):
        assert word in out, word
    papers = set(re.findall(r"paper (\d{3})", out))
    assert papers and papers == set(re.findall(r"^  (\d{3}): ", out, re.MULTILINE)), papers


for test in (every_paradigm_answers, the_same_seed_counts_the_same, lists_are_tables_each, options_do_something,
             reads_of_gets_are_told_where_puts_read_nothing, gets_of_one_and_puts_of_another_are_a_row,
             connections_of_a_thread_cost_no_verb, huge_pages_are_told_of, the_report_tells_what_was_changed,
             large_values_take_no_unbounded_memory,
             every_option_is_documented, people_get_a_table, what_cannot_be_is_refused, counted_verbs_are_modelled_on_a_card,
             a_card_is_read_from_a_file, what_memory_does_not_suffice_for_is_a_row_that_says_so, help_lists_what_there_is):
    test()
    print("ok", test.__name__)
