"""Causes of findings on traces made by hand, where each has just enough evidence, and just too little."""

import pytest

from handmade import define, definitions, enter, leave, records, thread, trace
from vestige import Trace
from vestige.cli.report.data import FOR_FINDINGS, Data
from vestige.cli.report.findings import Evidence, find
from vestige.cli.report.growing import grows

pytestmark = pytest.mark.any_python

MS = 1_000_000
SECOND = 1000 * MS
LIBRARY = "/usr/lib/python3.12/"


def raised(id, delta=10):
    return leave(id, delta) + 1  # VST_RAISE


def found(tmp_path, *chunks, entries, passed=SECOND):
    """The findings of a trace with one thread for each chunk of words."""
    path = tmp_path / "made.vst"
    names = [thread(at + 1, 100 + at, f"worker {at}") for at in range(len(chunks))]
    words = [records(*chunk, thread=at + 1) for at, chunk in enumerate(chunks)]
    path.write_bytes(trace(definitions(*names, *entries), *words))
    opened = Trace(str(path))
    data = Data()
    data.add(opened, {}, FOR_FINDINGS, fold_imports=True, by_thread=True)
    facts = {**opened.info(), "start_ns": 0, "end_ns": passed}
    return find(Evidence(data, [facts], traces=lambda: [Trace(str(path))]))


def kinds(tmp_path, *chunks, entries, passed=SECOND):
    return [finding.kind for finding in found(tmp_path, *chunks, entries=entries, passed=passed)]


# ---- exceptions ------------------------------------------------------------------

MAIN, STEP = define(1, "main", "app.py"), define(2, "step", "app.py", 9)
SLEEP = define(3, "<built-in function sleep>", "time", 0, kind=2)


@pytest.mark.parametrize(("times", "told"), [(4_999, []), (5_000, ["exceptions"])])
def test_five_thousand_exceptions_in_a_tenth_of_the_time_are_a_finding(tmp_path, times, told):
    words = [word for _ in range(times) for word in (enter(2), raised(2, 20_000))]
    assert kinds(tmp_path, [enter(1), *words, leave(1)], entries=[MAIN, STEP]) == told


def test_exceptions_that_take_little_of_the_time_are_none(tmp_path):
    words = [word for _ in range(5_000) for word in (enter(2), raised(2, 1_000))]
    assert kinds(tmp_path, [enter(1), *words, leave(1)], entries=[MAIN, STEP], passed=SECOND) == []


def test_iterators_end_by_an_exception_without_a_finding(tmp_path):
    entries = [MAIN, define(2, "Rows.__next__", "app.py", 9)]
    words = [word for _ in range(6_000) for word in (enter(2), raised(2, 20_000))]
    assert kinds(tmp_path, [enter(1), *words, leave(1)], entries=entries) == []


def tries(count, pauses, pause):
    words = [enter(1)]
    for at in range(count):
        words += [enter(2), raised(2, MS)]
        words += [enter(3), leave(3, pause)] if at < pauses else []
    return [*words, leave(1)]


@pytest.mark.parametrize(
    ("count", "pauses", "pause", "told"),
    [
        (4, 4, 100 * MS, ["retry"]),
        (4, 4, 40 * MS, []),  # less than a fifth of the time
        (40, 4, 100 * MS, []),  # most failures are not followed by a pause
        (1, 1, 400 * MS, []),  # once is no habit
    ],
)
def test_a_pause_after_each_of_several_failures_is_a_retry(tmp_path, count, pauses, pause, told):
    words = tries(count, pauses, pause)
    assert [kind for kind in kinds(tmp_path, words, entries=[MAIN, STEP, SLEEP]) if kind != "waiting"] == told


def test_a_retry_names_what_failed_and_is_not_told_as_waiting_again(tmp_path):
    (told,) = found(tmp_path, tries(6, 6, 150 * MS), entries=[MAIN, STEP, SLEEP])
    assert told.kind == "retry" and "app.py:9: step" in told.text and told.numbers["failed"] == 6


def test_a_library_that_catches_its_own_exceptions_does_not_retry(tmp_path):
    entries = [define(1, "_worker", LIBRARY + "pool.py"), define(2, "take", LIBRARY + "pool.py", 9), SLEEP]
    entries.append(define(4, "app", "app.py"))
    words = [enter(4), *tries(6, 6, 150 * MS), leave(4)]
    assert "retry" not in kinds(tmp_path, words, entries=entries)


# ---- waits and short calls that are none -----------------------------------------


def paced(work, pauses):
    body = [enter(2), leave(2, work), enter(3), leave(3, 50 * MS)]
    return [enter(1), *(body * pauses), leave(1)]


@pytest.mark.parametrize(
    ("work", "pauses", "told"),
    [(5 * MS, 15, []), (5 * MS, 9, ["waiting"]), (100_000, 15, ["waiting"])],  # the last only looks again and again
)
def test_a_loop_that_sleeps_after_each_piece_of_work_has_a_pace(tmp_path, work, pauses, told):
    assert kinds(tmp_path, paced(work, pauses), entries=[MAIN, STEP, SLEEP], passed=pauses * (work + 50 * MS)) == told


def test_a_first_thread_that_sleeps_while_others_wait_for_work_keeps_them_alive(tmp_path):
    get = define(6, "<built-in method get of _queue.SimpleQueue object>", "_queue", 0, kind=2)
    thread = define(5, "Thread._bootstrap", LIBRARY + "threading.py", 9)
    main, worker = (
        [enter(1), enter(3), leave(3, 900 * MS), leave(1)],
        [enter(5), enter(6), leave(6, 900 * MS), leave(5)],
    )
    assert kinds(tmp_path, main, worker, entries=[MAIN, SLEEP, thread, get]) == []
    assert kinds(tmp_path, main, entries=[MAIN, SLEEP]) == ["waiting"]


@pytest.mark.parametrize(("name", "told"), [("step", ["short calls"]), ("step.<locals>.<genexpr>", [])])
def test_a_generator_expression_is_no_short_call(tmp_path, name, told):
    words = [word for _ in range(120_000) for word in (enter(2), leave(2, 1_500))]
    assert (
        kinds(tmp_path, [enter(1), *words, leave(1)], entries=[MAIN, define(2, name, "app.py", 9)], passed=800 * MS)
        == told
    )


@pytest.mark.parametrize(("passed", "told"), [(300 * MS, ["short calls"]), (800 * MS, [])])
def test_short_calls_in_c_need_a_third_of_the_time(tmp_path, passed, told):
    append = define(2, "<built-in method append of list object>", "list", 0, kind=2)
    words = [word for _ in range(120_000) for word in (enter(2), leave(2, 1_500))]
    assert kinds(tmp_path, [enter(1), *words, leave(1)], entries=[MAIN, append], passed=passed) == told


def test_a_loop_over_a_function_that_only_sleeps_makes_requests(tmp_path):
    """The function stands for a driver. Where the loop sleeps by itself, it waits."""
    asks = [word for _ in range(60) for word in (enter(2), enter(3), leave(3, 10 * MS), leave(2))]
    assert kinds(tmp_path, [enter(1), *asks, leave(1)], entries=[MAIN, STEP, SLEEP], passed=610 * MS) == [
        "many requests"
    ]
    naps = [word for _ in range(60) for word in (enter(3), leave(3, 10 * MS))]
    assert kinds(tmp_path, [enter(1), *naps, leave(1)], entries=[MAIN, SLEEP], passed=610 * MS) == ["waiting"]


# ---- growing ---------------------------------------------------------------------

INSERT = define(4, "<built-in method insert of list object>", "builtins", 0, kind=2)


def rounds(id, times):
    return [enter(1), *(word for ns in times for word in (enter(id), leave(id, ns))), leave(1)]


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ([1_000 * at for at in range(1_000)], True),
        ([1_000 * at for at in range(499)], False),  # too few
        ([500_000] * 1_000, False),
        ([1_000] * 500 + [900_000] * 500, False),  # another kind of round, from the middle on
        ([100_000 + 300 * at for at in range(1_000)], False),  # less than five times as long
        ([1_000 * at for at in range(100)] * 10, False),  # begins again and again
    ],
)
def test_calls_that_take_longer_and_longer_are_growing(times, told):
    assert (grows(times) is not None) == told


def test_a_call_that_takes_longer_each_time_is_a_finding(tmp_path):
    words = rounds(4, [1_000 * at for at in range(1_000)])
    (told,) = [each for each in found(tmp_path, words, entries=[MAIN, INSERT]) if each.kind == "growing"]
    assert told.numbers["first_ns"] < told.numbers["last_ns"] and "insert" in told.text


def test_a_container_that_gets_smaller_is_a_finding_too(tmp_path):
    pop = define(4, "<built-in method pop of list object>", "builtins", 0, kind=2)
    words = rounds(4, [1_000 * (1_000 - at) for at in range(1_000)])
    (told,) = [each for each in found(tmp_path, words, entries=[MAIN, pop]) if each.kind == "growing"]
    assert told.numbers["first_ns"] > told.numbers["last_ns"]


def test_a_function_whose_source_is_not_here_is_not_said_to_copy(tmp_path):
    words = rounds(2, [1_000 * at for at in range(1_000)])
    assert "growing" not in kinds(tmp_path, words, entries=[MAIN, STEP])


# ---- caches, logs, workers -------------------------------------------------------

POPITEM = define(5, "<built-in method popitem of collections.OrderedDict object>", "", 0, kind=2)


def asked(count, made, taken):
    words = [enter(1)]
    for at in range(count):
        words.append(enter(2))
        words += [enter(6), leave(6, 2 * MS)] if at < made else []
        words += [enter(5), leave(5, 100)] if at < taken else []
        words.append(leave(2))
    return [*words, leave(1)]


@pytest.mark.parametrize(
    ("count", "made", "taken", "told"),
    [
        (200, 200, 150, ["cache"]),
        (200, 200, 200, []),  # takes jobs from a dictionary: the first, too
        (200, 100, 90, []),  # half of the values were there
        (200, 200, 20, []),  # it is nearly large enough
        (99, 99, 80, []),
    ],
)
def test_a_dictionary_that_forgets_what_it_is_asked_for_is_a_cache_without_room(tmp_path, count, made, taken, told):
    entries = [MAIN, STEP, POPITEM, define(6, "load", "app.py", 20)]
    assert kinds(tmp_path, asked(count, made, taken), entries=entries) == told


def test_patterns_that_re_cannot_remember_are_a_finding(tmp_path):
    entries = [MAIN, define(2, "compile", LIBRARY + "re/_compiler.py", 7)]
    for count, told in ((512, []), (513, ["cache"])):
        words = [word for _ in range(count) for word in (enter(2), leave(2, MS))]
        assert kinds(tmp_path, [enter(1), *words, leave(1)], entries=entries) == told


@pytest.mark.parametrize(
    ("lines", "ns", "told"), [(999, 300_000, []), (1_000, 300_000, ["logging"]), (1_000, 100_000, [])]
)
def test_a_thousand_lines_that_take_a_fifth_of_the_time_are_logged_too_often(tmp_path, lines, ns, told):
    entries = [MAIN, STEP, define(6, "Logger.info", LIBRARY + "logging/__init__.py", 9)]
    words = [word for _ in range(lines) for word in (enter(2), enter(6), leave(6, ns), leave(2))]
    assert kinds(tmp_path, [enter(1), *words, leave(1)], entries=entries) == told


def pool(*times):
    return [[enter(2), leave(2, ns)] for ns in times]


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ((100 * MS, 100 * MS, 100 * MS, 900 * MS), ["slow worker"]),
        ((100 * MS, 100 * MS, 100 * MS, 300 * MS), []),
        ((100 * MS, 900 * MS), []),  # of two, none is usual
        ((900 * MS, 900 * MS, 900 * MS, 900 * MS), []),
    ],
)
def test_one_call_of_several_threads_that_takes_much_longer_is_a_slow_worker(tmp_path, times, told):
    assert [kind for kind in kinds(tmp_path, *pool(*times), entries=[STEP]) if kind != "GIL"] == told


def test_a_thread_that_calls_one_function_again_and_again_has_no_slow_worker(tmp_path):
    words = [word for ns in (MS, MS, MS, 900 * MS) for word in (enter(2), leave(2, ns))]
    assert kinds(tmp_path, words, entries=[STEP]) == []


@pytest.mark.parametrize(
    ("times", "told"), [((300 * MS, 300 * MS), ["GIL"]), ((30 * MS, 30 * MS), []), ((300 * MS, 20 * MS), [])]
)
def test_threads_that_compute_at_the_same_time_take_turns_on_the_gil(tmp_path, times, told):
    assert kinds(tmp_path, *pool(*times), entries=[STEP]) == told


def test_the_function_of_all_threads_is_named_rather_than_that_of_the_busiest(tmp_path):
    entries = [STEP, define(4, "<lambda>", LIBRARY + "pool.py", 3)]
    chunks = [[enter(4), enter(2), leave(2, 300 * MS), leave(4, 350 * MS)] for _ in range(3)]
    (told,) = found(tmp_path, *chunks, entries=entries)
    assert told.kind == "GIL" and told.where["function"] == "app.py:9: step"


def test_modules_of_several_processes_are_no_workers(tmp_path):
    entries = [define(2, "<module>", "app.py", 9)]
    chunks = pool(100 * MS, 100 * MS, 100 * MS, 900 * MS)
    assert [kind for kind in kinds(tmp_path, *chunks, entries=entries) if kind != "GIL"] == []


def test_a_long_call_in_c_may_give_the_gil_to_others(tmp_path):
    entries = [STEP, define(3, "<built-in function sha256>", "_hashlib", 0, kind=2)]
    chunks = [[enter(2), enter(3), leave(3, 300 * MS), leave(2)] for _ in range(3)]
    assert kinds(tmp_path, *chunks, entries=entries) == []


LOCK = define(7, "<built-in method acquire of _thread.lock object>", "_thread", 0, kind=2)
TAKE, GIVE = define(8, "Queue.get", LIBRARY + "queue.py", 1), define(9, "Queue.put", LIBRARY + "queue.py", 2)


@pytest.mark.parametrize(("gives_back", "told"), [(True, ["oversubscribed"]), (False, [])])
def test_threads_that_wait_for_what_they_give_back_are_too_many(tmp_path, gives_back, told):
    query = [enter(2), enter(8), enter(7), leave(7, 60 * MS), leave(8)]
    query += [enter(9), leave(9)] * gives_back + [leave(2, MS)]
    chunks = [query * 10 for _ in range(4)]
    assert [kind for kind in kinds(tmp_path, *chunks, entries=[STEP, LOCK, TAKE, GIVE]) if kind != "waiting"] == told
