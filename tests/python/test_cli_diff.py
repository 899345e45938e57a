"""`vestige diff`: known changes are found, chance is not, and a CI job can tell."""

import csv
import io
import json
import sys

import pytest
from traces import patch, record

from vestige import cli
from vestige.cli import diff_noise
from vestige.cli.diff import SLOWER
from vestige.cli.diff_data import keys_of

pytestmark = pytest.mark.any_python


def work(n):
    return sum(range(n))


def steady(n):
    return sum(range(n))


def program(spins, calls=400, extra=0):
    """Work that takes about `spins`, and some that is always the same."""

    def run():
        for _ in range(calls):
            work(spins)
            steady(2000)
        for _ in range(extra):
            steady(2000)

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("diff")
    for number in range(3):
        record(path / f"a{number}.vst", program(4000))
        record(path / f"same{number}.vst", program(4000))
        record(path / f"slow{number}.vst", program(8000))
    record(path / "more.vst", program(4000, extra=1200))
    return path


@pytest.fixture
def diff(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)

    def run(*words, code=0):
        """What is printed, and what on stderr."""
        try:
            got = cli._dispatch(["diff", *words])
        except cli.Failure as failure:
            print(f"vestige: {failure}", file=sys.stderr)
            got = failure.code
        out, err = capsys.readouterr()
        assert got == code, out + err
        return out, err

    return run


def rows(text):
    return {row["function"].rpartition(": ")[2]: row for row in json.loads(text)["functions"]}


def test_what_got_slower_is_found_and_fails_a_job(diff):
    out, err = diff("a0.vst", "slow0.vst", "--fail-over", "10%", "--format", "json", code=SLOWER)
    found = rows(out)
    # sum() of work() got slower, work() itself did not; steady() is the same
    total = found["work"]["total_ns_per_call_change"]
    assert 0.4 < total < 3 and found["work"]["total_ns_per_call_significant"]
    assert not found["steady"]["total_ns_per_call_significant"] or found["steady"]["total_ns_per_call_change"] < 0.3
    assert any(row["function"].endswith(": work") for row in json.loads(out)["regressions"])
    assert err.startswith("vestige: slower by more than 10%: ") and "work" in err
    assert SLOWER == 3


def test_chance_fails_no_job(diff):
    for words in (["a0.vst", "same0.vst"], ["--before", "a0.vst", "a1.vst", "--after", "same0.vst", "same1.vst"]):
        assert diff(*words, "--fail-over", "50%")[1] == ""
    diff("slow0.vst", "a0.vst", "--fail-over", "10%")  # faster is not slower


def test_several_runs_are_compared_by_how_much_they_differ(diff):
    before, after = [f"a{i}.vst" for i in range(3)], [f"slow{i}.vst" for i in range(3)]
    out, _ = diff("--before", *before, "--after", *after, "--fail-over", "10%", "--format", "json", code=SLOWER)
    document = json.loads(out)
    assert len(document["before"]) == len(document["after"]) == 3
    assert rows(out)["work"]["total_ns_per_call_significant"]
    text, _ = diff("--before", *before, "--after", *after)
    assert text.startswith("A 3 runs, ")


def test_more_calls_are_told_apart_from_longer_ones(diff):
    row = rows(diff("a0.vst", "more.vst", "--format", "json")[0])["steady"]
    assert (row["calls_before"], row["calls_after"]) == (400, 1600)
    assert row["self_ns_change"] > 1
    (line,) = [line for line in diff("a0.vst", "more.vst")[0].splitlines() if line.endswith(": steady")]
    assert "+300%" in line


def test_the_table_is_80_columns_wide_and_marks_what_is_chance(diff):
    text, _ = diff("a0.vst", "same0.vst")
    lines = text.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("A 1 run, ") and lines[1].startswith("B 1 run, ")
    assert lines[2].startswith("time  ")
    head = next(line for line in lines if line.endswith("function"))
    assert head.split() == ["self", "time", "noise", "calls", "self/call", "total/call", "function"]
    assert "~" in text


def test_rows_are_sorted_by_what_they_make_for_the_whole(diff):
    found = json.loads(diff("a0.vst", "slow0.vst", "--format", "json")[0])["functions"]
    keys = [(not row["significant"], -abs(row["effect_ns"])) for row in found]
    assert keys == sorted(keys)
    table = list(csv.DictReader(io.StringIO(diff("a0.vst", "slow0.vst", "--format", "csv")[0])))
    assert [row["function"] for row in table] == [row["function"] for row in found]
    by_name = json.loads(diff("a0.vst", "slow0.vst", "--format", "json", "--sort", "name")[0])["functions"]
    assert [row["function"] for row in by_name] == sorted(row["function"] for row in found)


def test_what_is_left_out_is_not_compared(diff):
    found = rows(diff("a0.vst", "slow0.vst", "--format", "json", "--exclude", "<built-in*")[0])
    assert "<built-in function sum>" not in found
    assert found["work"]["self_ns_per_call_change"] > 0.4  # the time of sum() is its own now
    assert diff("a0.vst", "a1.vst", "--include", "no*such", code=2)[1].count("\n") == 1


def test_ranks_are_one_run_and_families_are_several(folder, diff):
    for name, rank in (("ranks", 0), ("ranks", 1), ("runs", None), ("runs", None)):
        (folder / name).mkdir(exist_ok=True)
        number = len(list((folder / name).iterdir()))
        facts = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": 2}}
        patch(record(folder / name / f"{number}.vst", program(100, 5), **facts), pid=100 + number)
    for name, runs in (("ranks", 1), ("runs", 2)):
        document = json.loads(diff(name, "a0.vst", "--format", "json")[0])
        assert len(document["before"]) == runs
        assert sum(len(run["files"]) for run in document["before"]) == 2


def test_wrong_usage_and_broken_files_have_other_codes_than_a_regression(diff, folder):
    (folder / "text.vst").write_text("once upon a time\n" * 1000)
    assert diff("a0.vst", code=2)[1].startswith("vestige: give two recordings")
    assert diff("a0.vst", "a1.vst", "--before", "a0.vst", code=2)[1].startswith("vestige: several runs are given by")
    assert diff("a0.vst", "a1.vst", "--fail-over", "ten", code=2)[1].startswith("vestige: --fail-over: not a share")
    assert diff("a0.vst", "text.vst", code=1)[1] == "vestige: text.vst: not a vestige trace\n"
    assert diff("a0.vst", "no.vst", code=1)[1] == "vestige: no.vst: No such file or directory\n"


def test_a_function_is_known_by_file_and_name_not_by_its_line():
    def python(name, line, file="/p/work.py"):
        return (1, name, file, "work.py", line)

    before = keys_of([None, python("f", 3), python("<lambda>", 9), python("<lambda>", 5)])
    after = keys_of([python("<lambda>", 15), python("<lambda>", 19), python("f", 13), None])
    assert before[1] == after[2]
    assert before[3] == after[0] and before[2] == after[1]
    assert before[0] is after[3] is None
    natives = keys_of([(2, "<bound method f of <x object at 0x7f01>>", "x", "x", 0)])
    assert natives == keys_of([(2, "<bound method f of <x object at 0x7e02>>", "x", "x", 0)])


def test_noise_is_what_the_numbers_say():
    change = diff_noise.compare_single(100, 130, (5, 5), 0.02)
    assert abs(change.noise - 3 * (2.3**2 + 50) ** 0.5) < 1e-9
    assert change.is_significant and abs(change.share - 0.3) < 1e-12
    assert not diff_noise.compare_single(100, 110, (5, 5), 0.02).is_significant
    # runs that agree, and a change beyond them; runs that do not
    close, far = [(100, 0), (101, 0), (99, 0)], [(100, 0), (160, 0), (60, 0)]
    later = [(120, 0), (121, 0), (119, 0)]
    assert diff_noise.compare_runs(close, later, 0.01).is_significant
    assert not diff_noise.compare_runs(far, later, 0.01).is_significant
    assert not diff_noise.compare_runs(close, [(120, 40)], 0.01).is_significant  # it knows that it is uncertain
    # most functions agree about a common change of 20 %: that is no noise
    assert diff_noise.floor_of([1.2] * 20) == diff_noise.FLOOR / 2
    assert diff_noise.floor_of([1.0, 1.3, 0.8, 1.2, 0.7, 1.4]) > 0.2
    assert diff_noise.floor_of([1.0]) == diff_noise.FLOOR
