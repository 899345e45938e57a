"""A program of four processes, merged by the command and read by Perfetto's trace_processor: each process and thread
has its name, and arrows begin and end at slices.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .perfetto import ClientMissing, TraceProcessor, find_engine, find_node, problems

PROGRAM = Path(__file__).with_name("processes.py")
FLOWS = """
    SELECT p_out.name AS from_process, s_out.name AS from_slice, p_in.name AS to_process, s_in.name AS to_slice
    FROM flow
    JOIN slice s_out ON s_out.id = slice_out JOIN thread_track t_out ON t_out.id = s_out.track_id
    JOIN thread h_out ON h_out.utid = t_out.utid JOIN process p_out ON p_out.upid = h_out.upid
    JOIN slice s_in ON s_in.id = slice_in JOIN thread_track t_in ON t_in.id = s_in.track_id
    JOIN thread h_in ON h_in.utid = t_in.utid JOIN process p_in ON p_in.upid = h_in.upid
"""


def run(*command, cwd):
    result = subprocess.run([sys.executable, *map(str, command)], cwd=cwd, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processes")
    run(PROGRAM, "t.vst", cwd=folder)
    return folder


@pytest.fixture(scope="module", params=["all.json.gz", "all.pftrace"])
def processor(request, recorded):
    try:
        find_node(), find_engine()
    except ClientMissing as missing:
        pytest.skip(str(missing))
    run("-m", "vestige", "export", "t.vst", "-o", request.param, cwd=recorded)
    with TraceProcessor.open(recorded / request.param) as tp:
        yield tp


def rows(tp, sql):
    return [tuple(row.values()) for row in tp.query(sql)]


def ranks(tp):
    """Returns {rank: process name}."""
    names = [name for (name,) in rows(tp, "SELECT name FROM process WHERE name GLOB 'rank *'")]
    return {int(name.partition(":")[0].removeprefix("rank ")): name for name in names}


def test_nothing_is_refused_or_dropped(processor):
    assert problems(processor) == []


def test_every_process_is_named_by_its_rank_and_command_line(processor):
    names = ranks(processor)
    assert sorted(names) == [0, 1, 2, 3]
    program = os.path.basename(sys.executable)
    assert all(name.startswith(f"rank {rank}: {program} ") for rank, name in names.items())
    assert names[0].endswith("processes.py t.vst")
    assert names[3].endswith(" 3")


def test_every_process_has_its_own_threads(processor):
    sql = """
        SELECT process.name, count(*) AS threads FROM thread JOIN process USING (upid)
        WHERE thread.name = 'MainThread' GROUP BY process.name
    """
    assert dict(rows(processor, sql)) == dict.fromkeys(ranks(processor).values(), 1)


def test_every_process_has_its_own_calls(processor):
    sql = """
        SELECT process.name, count(*) AS calls FROM slice JOIN thread_track t ON t.id = track_id
        JOIN thread USING (utid) JOIN process USING (upid)
        WHERE slice.name GLOB '*: in_child' GROUP BY process.name
    """
    names = ranks(processor)
    assert dict(rows(processor, sql)) == {names[rank]: 1 for rank in (1, 2, 3)}


def test_arrows_lead_from_the_calls_that_start_processes_to_those(processor):
    names = ranks(processor)
    arrows = {target: (source, call) for source, call, target, _ in rows(processor, FLOWS)}
    assert arrows == {
        names[1]: (names[0], "<built-in function fork>"),
        names[2]: (names[0], "<built-in function fork_exec>"),
        names[3]: (names[0], "<built-in function fork_exec>"),
    }
    assert rows(processor, "SELECT count(*) AS n FROM flow") == [(3,)]
    assert rows(processor, "SELECT name, value FROM stats WHERE name GLOB 'flow_*' AND value != 0") == []


def test_the_processes_that_one_call_each_started_have_different_ones(processor):
    assert rows(processor, "SELECT count(DISTINCT slice_out) AS n FROM flow") == [(3,)]


def test_ids_of_calls_are_unique_over_all_processes(processor):
    sql = "SELECT count(*) AS n, count(DISTINCT int_value) AS ids FROM args WHERE key = 'args.Ev Idx'"
    ((count, ids),) = rows(processor, sql)
    in_json = rows(processor, "SELECT 1 AS found FROM args WHERE key = 'args.Op count'")
    assert count == ids
    assert (count > 100) == bool(in_json)  # Perfetto's format contains the tree itself
