"""smoke_test.py EGRET_BENCH: `egret-bench paradigms --memory` runs every paradigm, counts its verbs and finds no answer wrong."""
import json, subprocess, sys

BENCH = sys.argv[1]


def run(*arguments):
    done = subprocess.run([BENCH, "paradigms", *arguments], capture_output=True, text=True, timeout=300)
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
        (["--memory", "--keys", "2", "--clients", "3"], "--keys"),
        (["--memory", "--keys", "100000", "-K", "4"], "--key-bytes"),
        (["--memory", "--loop", "127.0.0.1:1"], "excludes"),
    ):
        status, _, err = run(*arguments)
        assert status == 1 and word in err, (arguments, status, err)


def help_lists_what_there_is():
    status, out, _ = run("--help")
    assert status == 0
    for word in ("Hosts:", "Workload:", "Variants:", "--as-paper", "raw-read", "pilaf-fig7"):
        assert word in out, word


for test in (every_paradigm_answers, the_same_seed_counts_the_same, lists_are_tables_each, people_get_a_table, what_cannot_be_is_refused, help_lists_what_there_is):
    test()
    print("ok", test.__name__)
