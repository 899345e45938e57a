"""Streams of tables and the interpreter: what differs between Pythons. What the tables hold is in test_tables.py."""

import os
import signal
import threading

import pytest
import vestige
from arrow_reader import StreamError, rows_of
from traces import record, steps
from vestige import _core


def test_other_threads_run_while_a_batch_is_made(tmp_path):
    """The file is one that can be opened only once somebody else opened it too. If nobody can, an alarm ends it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    opened = []

    def open_it():
        os.close(os.open(pipe, os.O_WRONLY))
        opened.append(True)

    before = signal.signal(signal.SIGALRM, lambda *_: None)
    thread = threading.Thread(target=open_it, daemon=True)
    table = _core.Table("span", [(str(pipe), 0, 0, 0, 0, -1, -1, -1, None, None, None, None)])
    try:
        signal.alarm(20)
        thread.start()
        with pytest.raises(StreamError, match="pipe"):
            rows_of(table)
        signal.alarm(0)
    finally:
        signal.signal(signal.SIGALRM, before)
    thread.join(20)
    assert opened


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
