"""`vestige diff`: finds known changes, ignores chance, and gives CI jobs an exit code."""

import csv
import io
import json
import types

import pytest

from conftest import COMMAND
from diffs import diff_in
from on_terminal import on_terminal
from traces import patch, record
from vestige._core import Function
from vestige.cli.diff import noise as diff_noise
from vestige.cli.diff.command import EXCEEDED
from vestige.cli.diff.data import Comparison, Run, Sums, keys_of
from vestige.cli.diff.limits import Limit, judge_times

pytestmark = pytest.mark.any_python


def work(n):
    return sum(range(n))


def steady(n):
    return sum(range(n))


def program(spins, calls=60, extra=0):
    """Returns a program with work of about `spins`, and some constant work."""

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
    for number in range(2):
        record(path / f"a{number}.vst", program(2000))
    record(path / "slow.vst", program(80_000))  # slower by more than any machine's noise
    record(path / "more.vst", program(2000, extra=180))
    return path


@pytest.fixture
def diff(folder, monkeypatch, capsys):
    return diff_in(folder, monkeypatch, capsys)


def rows(text):
    return {row["function"].rpartition(": ")[2]: row for row in json.loads(text)["functions"]}


def test_what_got_slower_is_found_and_fails_a_job(diff, monkeypatch):
    monkeypatch.setattr(diff_noise, "SIGMAS", 0)  # ignores the noise of a busy machine
    out, err = diff("a0.vst", "slow.vst", "--fail-on", "time>100%", "--format", "json", code=EXCEEDED)
    found = rows(out)
    assert found["work"]["total_ns_per_call_change"] > 1 and found["work"]["total_ns_per_call_significant"]
    assert any(row["function"].endswith(": work") for row in json.loads(out)["regressions"])
    assert err.startswith("vestige: slower by more than 100%: ") and err.count("\n") == 1
    assert EXCEEDED == 3


def test_what_is_the_same_or_faster_fails_no_job(diff):
    assert diff("a0.vst", "a0.vst", "--fail-on", "time>0%")[1] == ""
    out, _ = diff("slow.vst", "a0.vst", "--format", "json", "--fail-on", "time>1000000%")
    assert rows(out)["work"]["total_ns_per_call_change"] < 0


def test_several_runs_stand_on_a_side(diff, folder):
    for side in ("main", "branch"):
        (folder / side).mkdir()
        for name in ("a0.vst", "a1.vst"):
            (folder / side / name).write_bytes((folder / name).read_bytes())
    out, _ = diff("main", "branch", "--fail-on", "time>0%", "--format", "json")
    document = json.loads(out)
    assert len(document["before"]) == len(document["after"]) == 2
    assert not any(row["significant"] for row in document["functions"])
    assert diff("main", "slow.vst")[0].startswith("A 2 runs, ")


# ---- figures that are made up: no machine disturbs them ---------------------------


def run_of(*functions, ns=1_000_000_000):
    """Returns a run from (name, calls, ns per call, standard error of this time)."""
    facts = {"start_ns": 0, "end_ns": ns, "lost": 0, "dropped": 0}
    run = Run([types.SimpleNamespace(facts=facts, path="t.vst")])
    for name, calls, each, error in functions:
        key = (1, "work.py", name, 0)
        run.names[key] = f"work.py:1: {name}"
        known = error if calls > 1 else None
        row = {"calls": calls, "outer_calls": calls}
        for part in ("self", "total"):
            row |= {f"{part}_ns": int(each * calls), f"{part}_median_ns": float(each)}
            row |= {f"{part}_mean_error_ns": known, f"{part}_median_error_ns": known}
        run.functions[key] = sums = Sums()
        sums.add(types.SimpleNamespace(**row))
    return run


def compared(before, after):
    return {row.name.rpartition(": ")[2]: row for row in Comparison(before, after).rows}


def test_a_change_beyond_the_error_of_calls_is_no_chance():
    before = run_of(("f", 1000, 100_000, 500), ("g", 1000, 100_000, 20_000), ("main", 1, 500_000_000, 0))
    after = run_of(("f", 1000, 115_000, 500), ("g", 1000, 115_000, 20_000), ("main", 1, 530_000_000, 0))
    found = compared([before], [after])
    assert found["f"].self_call.is_significant and found["f"].self_time.is_significant
    assert abs(found["f"].self_call.share - 0.15) < 1e-9 and found["f"].effect == 15_000_000
    assert not found["g"].is_significant
    assert not found["main"].is_significant  # a single run cannot show a change


def test_more_calls_make_a_difference_and_few_nanoseconds_none():
    before = run_of(("f", 1000, 100_000, 100), ("g", 1000, 100, 0.1))
    after = run_of(("f", 3000, 100_000, 100), ("g", 1000, 200, 0.1))
    found = compared([before], [after])
    assert found["f"].self_time.is_significant and not found["f"].self_call.is_significant
    assert found["f"].effect == 200_000_000
    assert found["g"].self_call.is_significant and found["g"].is_negligible and not found["g"].is_significant


def test_runs_that_differ_among_themselves_tell_less():
    def runs(*each):
        return [run_of(("f", 1000, ns, 10), ("g", 1000, 100_000, 10)) for ns in each]

    assert compared(runs(100_000, 101_000, 99_000), runs(120_000, 121_000, 119_000))["f"].is_significant
    assert not compared(runs(100_000, 150_000, 60_000), runs(120_000, 121_000, 119_000))["f"].is_significant


def test_a_function_that_is_new_or_gone_is_no_regression():
    comparison = Comparison([run_of(("old", 1000, 300_000, 10))], [run_of(("new", 1000, 300_000, 10))])
    found = {row.name.rpartition(": ")[2]: row for row in comparison.rows}
    assert found["new"].is_new and found["old"].is_gone
    assert judge_times(comparison, Limit("time>10%")) == []


def test_the_whole_is_judged_too():
    before, after = run_of(("f", 1000, 900_000, 10)), run_of(("f", 1000, 900_000, 10), ns=2_000_000_000)
    ((name, what, change),) = judge_times(Comparison([before], [after]), Limit("time>10%"))
    assert (name, what, change.share) == ("the whole", "time", 1.0)


# ---- the command -------------------------------------------------------------------


def test_calls_are_counted(diff):
    row = rows(diff("a0.vst", "more.vst", "--format", "json")[0])["steady"]
    assert (row["calls_before"], row["calls_after"]) == (60, 240)
    (line,) = [line for line in diff("a0.vst", "more.vst")[0].splitlines() if line.endswith(": steady")]
    assert "+300%" in line


def test_the_table_is_80_columns_wide_and_marks_what_is_chance(diff):
    # the same run twice, because two runs may really differ
    text = on_terminal([COMMAND, "diff", "a0.vst", "a0.vst"], columns=80, NO_COLOR="1")
    lines = text.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("A 1 run, ") and lines[1].startswith("B 1 run, ")
    assert lines[2].startswith("time  ")
    head = next(line for line in lines if line.endswith("function"))
    assert head.split() == ["self", "time", "noise", "calls", "self/call", "total/call", "function"]
    assert "~" in text


def test_what_it_found_is_folded_at_80_columns(diff):
    lines = on_terminal([COMMAND, "diff", "a0.vst", "slow.vst"], columns=80, NO_COLOR="1").splitlines()
    assert any(line.startswith("• ") for line in lines)
    assert all(len(line) <= 80 or len(line.split()) == 1 for line in lines)  # only a path may be longer


def test_rows_are_sorted_by_what_they_make_for_the_whole(diff):
    found = json.loads(diff("a0.vst", "slow.vst", "--format", "json")[0])["functions"]
    keys = [(not row["significant"], -abs(row["effect_ns"])) for row in found]
    assert keys == sorted(keys)
    table = list(csv.DictReader(io.StringIO(diff("a0.vst", "slow.vst", "--format", "csv")[0])))
    assert [row["function"] for row in table] == [row["function"] for row in found]
    by_name = json.loads(diff("a0.vst", "slow.vst", "--format", "json", "--sort", "name")[0])["functions"]
    assert [row["function"] for row in by_name] == sorted(row["function"] for row in found)


def test_what_is_left_out_is_not_compared(diff):
    found = rows(diff("a0.vst", "slow.vst", "--format", "json", "--exclude", "<built-in*")[0])
    assert "<built-in function sum>" not in found
    assert found["work"]["self_ns_per_call_change"] > 1  # the time of sum() counts as work's own time now
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
    assert diff("a0.vst", code=2)[1].startswith("vestige: the following arguments are required: B")
    assert diff("a0.vst", "a1.vst", "--fail-on", "ten", code=2)[1].startswith("vestige: --fail-on: not a limit: 'ten'")
    assert diff("a0.vst", "text.vst", code=1)[1] == "vestige: text.vst: not a vestige trace\n"
    assert diff("a0.vst", "no.vst", code=1)[1] == "vestige: no.vst: No such file or directory\n"


def test_a_function_is_known_by_file_and_name_not_by_its_line():
    def python(name, line, file="/p/work.py"):
        return Function((1, name, file, "work.py", line))

    before = keys_of([None, python("f", 3), python("<lambda>", 9), python("<lambda>", 5)])
    after = keys_of([python("<lambda>", 15), python("<lambda>", 19), python("f", 13), None])
    assert before[1] == after[2]
    assert before[3] == after[0] and before[2] == after[1]
    assert before[0] is after[3] is None
    natives = keys_of([Function((2, "<bound method f of <x object at 0x7f01>>", "x", "x", 0))])
    assert natives == keys_of([Function((2, "<bound method f of <x object at 0x7e02>>", "x", "x", 0))])


def test_noise_is_what_the_numbers_say():
    change = diff_noise.compare_single(100, 130, (5, 5), 0.02)
    assert abs(change.noise - 3 * (2.3**2 + 50) ** 0.5) < 1e-9
    assert change.is_significant and abs(change.share - 0.3) < 1e-12
    assert not diff_noise.compare_single(100, 110, (5, 5), 0.02).is_significant
    # runs that agree, and runs that do not
    close, far = [(100, 0), (101, 0), (99, 0)], [(100, 0), (160, 0), (60, 0)]
    later = [(120, 0), (121, 0), (119, 0)]
    assert diff_noise.compare_runs(close, later, 0.01).is_significant
    assert not diff_noise.compare_runs(far, later, 0.01).is_significant
    # the later run has a large error of its own
    assert not diff_noise.compare_runs(close, [(120, 40)], 0.01).is_significant
    # Most functions share a common change of 20 %: this is not noise.
    assert diff_noise.floor_of([1.2] * 20) == diff_noise.FLOOR / 2
    assert diff_noise.floor_of([1.0, 1.3, 0.8, 1.2, 0.7, 1.4]) > 0.2
    assert diff_noise.floor_of([1.0]) == diff_noise.FLOOR
