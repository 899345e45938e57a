"""Streams of tables and the interpreter, where Pythons differ. test_tables.py tests the tables' contents."""

import sys
import threading

import vestige
from arrow_reader import rows_of
from traces import record, steps


def test_other_threads_run_while_a_batch_is_made(tmp_path):
    """With an infinite switch interval, the other thread runs only where reading a batch releases the GIL."""
    table = vestige.open(record(tmp_path / "t.vst", steps(2000))).span
    go, ran = threading.Lock(), []
    go.acquire()

    def run():
        go.acquire()
        ran.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e6)
    try:
        go.release()
        for _ in range(500):  # the other thread may take a moment to wake
            rows_of(table)
            if ran:
                break
        assert ran
    finally:
        sys.setswitchinterval(before)
        thread.join()


def test_threads_read_tables_at_the_same_time(tmp_path):
    traces = vestige.open(record(tmp_path / "t.vst", steps(200)))
    found = []
    threads = [threading.Thread(target=lambda: found.append(rows_of(traces.span))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(rows == found[0] for rows in found)
    assert sum(row["name"] == "step" for row in found[0]) == 200
