"""What backends of torch report of their own work (reportBackendEventToActiveKinetoProfiler), beside torch's profiler.

The report goes into the profiler of the thread, which torch takes for one of its own type: ours must look like it. What
reports runs in a process of its own, because a profiler that looks different is a crash.
"""

import json
import subprocess
import sys

import pytest

import vestige
from arrow_reader import rows_of
from viewing import Client, serving

pytest.importorskip("torch", reason="torch is not installed for this Python")

REPORTED = 2048  # of flags

COMMON = """
import ctypes, json, os, sys, tempfile, threading, time
import vestige, torch

class Text(ctypes.Structure):  # std::string
    _fields_ = [("at", ctypes.c_char_p), ("length", ctypes.c_size_t), ("rest", ctypes.c_char * 16)]

STRING = "RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
NAME = "_ZN5torch8autograd8profiler40reportBackendEventToActiveKinetoProfilerElllN2at11RecordScopeE" + STRING + "SB_"
report = getattr(ctypes.CDLL(os.path.join(torch.__path__[0], "lib", "libtorch_cpu.so")), NAME)
report.restype = None

def tell(start_us, end_us, name, backend=b"", scope=0):
    texts = [ctypes.byref(Text(text, len(text), b"")) for text in (name, backend)]
    report(*map(ctypes.c_int64, (start_us, end_us, -1)), ctypes.c_uint8(scope), *texts)

def microseconds():
    "A time that is later than all before and earlier than all after, by more than clocks differ."
    start = time.time_ns() // 1000
    while time.time_ns() // 1000 < start + 1000:
        pass
    return start + 500

"""

SCRIPT = (
    COMMON
    + """
def backends(prof):
    nodes = list(prof.profiler.kineto_results.experimental_event_tree())
    for node in nodes:
        nodes += node.children
    return [node for node in nodes if node.tag == torch._C._profiler._EventType.Backend]

one = torch.ones(3, 3)
path = os.path.join(tempfile.mkdtemp(), "t.json")

def beside_torch():
    def shape(node):
        return node.tag.name, node.name, [shape(child) for child in node.children]

    def work():
        with torch.profiler.profile() as prof:
            with torch.profiler.record_function("around"):
                start = microseconds()
                one @ one
                end = microseconds()
                tell(start, end, b"delegate::op", b"accelerator")
                microseconds()
            tell(end + 1, end + 8, b"later", scope=7)
        (found,) = [node for node in backends(prof) if node.name == "delegate::op"]
        prof.export_chrome_trace(path)
        written = [
            (e["name"], e["cat"], e["dur"], e["args"].get("Backend"))
            for e in json.load(open(path))["traceEvents"]
            if e.get("name") in ("delegate::op", "later")
        ]
        exact = found.start_time_ns - start * 1000, found.end_time_ns - end * 1000
        averages = {row.key: (row.count, round(row.cpu_time_total, 2)) for row in prof.key_averages()}
        return (
            [shape(node) for node in prof.profiler.kineto_results.experimental_event_tree()],
            exact,
            [isinstance(found.extra_fields, torch._C._profiler._ExtraFields_Backend), found.correlation_id],
            found.parent.name,
            sorted((name, cat, backend) for name, cat, _, backend in written),
            averages["delegate::op"] == (1, end - start),
            sorted((e.name, e.is_async, e.kwinputs) for e in prof.events() if e.name in ("delegate::op", "later")),
        )

    vestige.install()  # ours first: torch has not set up Kineto yet
    ours = work()
    vestige.uninstall()
    return [ours, work()]

def of_threads():
    vestige.install()
    with torch.profiler.profile(profile_memory=True) as prof:
        tids = []
        def run(name):
            one + one
            now = microseconds()
            for _ in range(600):  # more than a block of the queue
                tell(now, now + 1, name, b'a"b\\\\\\xff')
            tids.append(threading.get_native_id())
        threads = [threading.Thread(target=run, args=(name,)) for name in (b"first", b"second\\xff\\n")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    prof.export_chrome_trace(path)
    events = [e for e in json.load(open(path))["traceEvents"] if e.get("name", "").startswith(("first", "second"))]
    names = sorted({node.extra_fields.backend for node in backends(prof)})
    return [len(backends(prof)), len(events), sorted({e["tid"] for e in events}) == sorted(tids), names]

def after_the_stop():
    vestige.install()
    went_on, stopped, grew = threading.Event(), threading.Event(), []
    def memory():
        with open("/proc/self/statm") as pages:
            return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    def run():  # had our profiler before the stop
        one + one
        went_on.set()
        stopped.wait()
        tell(microseconds(), microseconds(), b"late")
        before = memory()
        for _ in range(200_000):
            tell(1, 2, b"late, too", b"accelerator")
        grew.append(memory() - before)
        vestige.uninstall()
        with torch.profiler.profile() as theirs:  # torch takes no thread that has a profiler
            one + one
        grew.append(len(theirs.events()) > 0)
        vestige.install()
    with torch.profiler.profile(profile_memory=True):
        thread = threading.Thread(target=run)
        thread.start()
        went_on.wait()
    stopped.set()
    thread.join()
    tell(microseconds(), microseconds(), b"too late")
    with torch.profiler.profile(profile_memory=True) as prof:
        tell(microseconds(), microseconds(), b"in time")
    return [node.name for node in backends(prof)], grew

def in_a_file():
    trace = os.path.join(os.path.dirname(path), "t.vst")
    with vestige.profile(output=trace):
        now = microseconds()
        tell(now, now + 300, b"delegate::op", b"accelerator")
        sorted([2, 1])
    return trace

print(json.dumps([beside_torch(), of_threads(), after_the_stop(), in_a_file()]))
"""
)


# A thread of a pool has the profiler of the thread that gave it work, before it runs an operator. Kineto, which torch tells
# of each thread that reports, is made by torch's first profiler, or never.
INHERITED = (
    COMMON
    + """
c10 = ctypes.CDLL(os.path.join(torch.__path__[0], "lib", "libc10.so"))
current = c10["_ZN3c1020ThreadLocalDebugInfo7currentEv"]
current.restype = None
become = c10["_ZN3c1020ThreadLocalDebugInfo22_forceCurrentDebugInfoESt10shared_ptrIS0_E"]
become.restype = None

def in_pool(work):
    given = (ctypes.c_void_p * 2)()  # std::shared_ptr
    current(given)
    def run():
        become(given)
        work()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

def names(prof):
    return [event.name for event in prof.events()]

def tell_in_pool(name):
    in_pool(lambda: tell(microseconds(), microseconds(), name))

def theirs():
    with torch.profiler.profile() as prof:
        torch.ones(3)
        tell_in_pool(b"to torch")
    return names(prof)

vestige.install()
found = []
with torch.profiler.profile() as prof:
    tell_in_pool(b"inherited")
found.append(names(prof))
if sys.argv[1] == "daemon":  # then a step makes Kineto ready where something is registered
    os.environ["KINETO_USE_DAEMON"] = "1"
with torch.profiler.profile() as prof:
    torch.autograd._kineto_step()
    tell_in_pool(b"again")
found.append(names(prof))
vestige.uninstall()
found += [theirs(), theirs()]
vestige.install()
with torch.profiler.profile() as prof:
    tell_in_pool(b"after torch")
found.append(names(prof))
print(json.dumps(found))
"""
)


def run(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def told():
    return run(SCRIPT)


def test_what_a_backend_reports_is_a_node_as_torch_has_it(told):
    ours, theirs = told[0]
    assert ours == theirs
    assert ours[1] == [0, 0]
    assert ours[4] == [["delegate::op", "cpu_op", "accelerator"], ["later", "user_annotation", None]]
    assert ours[5] is True


def test_reports_of_any_thread_and_any_bytes_are_kept(told):
    nodes, events, on_their_threads, names = told[1]
    assert (nodes, events, on_their_threads) == (1200, 1200, True)
    assert len(names) == 1
    assert names[0].startswith('a"b\\')


def test_reports_and_tables_show_it_beside_the_calls(told, tmp_path):
    def shown(*arguments):
        command = [sys.executable, "-m", "vestige", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    for how in ([], ["--tree"]):
        (line,) = [line for line in shown("report", told[3], *how).splitlines() if "delegate::op" in line]
        assert "300" in line
    with vestige.open(told[3]) as traces:
        rows = [row for row in rows_of(traces.tables["span"]) if row["flags"] & REPORTED]
        rows += [row for row in rows_of(traces.tables["op"]) if row["flags"] & REPORTED]
    assert [(row["span"], row["name"], row["duration_ns"], row["self_ns"]) for row in rows] == [
        (0, "delegate::op", 300_000, 0)
    ] * 2
    assert json.loads(rows[0]["args"]) == {"Backend": "accelerator"}
    shown("export", told[3], "-o", str(tmp_path / "t.pftrace"))
    assert b"delegate::op" in (tmp_path / "t.pftrace").read_bytes()


def test_a_report_after_the_stop_is_in_no_recording(told):
    names, (grew, has_torchs_events) = told[2]
    assert names == ["in time"]
    assert grew < 4_000_000  # a recording keeps them in 12 million bytes
    assert has_torchs_events


@pytest.mark.parametrize("how", ["plain", "daemon"])
def test_a_thread_that_inherits_our_profiler_may_report_first(how):
    first, again, theirs, theirs_again, after = run(INHERITED, how)
    assert (first, again, after) == (["inherited"], ["again"], ["after torch"])
    assert theirs == theirs_again
    assert {"aten::ones", "to torch"} <= set(theirs)


def test_the_viewer_draws_it_below_the_calls_of_its_thread(told):
    with serving(told[3]) as server:
        client = Client(server)
        info = client.get("info")
        (number,) = [at for at, name in enumerate(client.get("names")["names"]) if name and name[1] == "delegate::op"]
        (rect,) = [rect for rect in client.window(0, info["duration_ns"] + 1) if rect.id == number]
        (thread,) = [thread for thread in info["traces"][0]["threads"] if thread["number"] == rect.thread]
        span = client.get("span", thread=rect.thread, depth=rect.depth, time=int((rect.start + rect.end) / 2))
    assert rect.depth == thread["levels"]
    assert (span["name"], span["end_ns"] - span["start_ns"]) == ("delegate::op", 300_000)
    assert span["args"] == {"Backend": "accelerator"}
    assert "reported by a backend" in span["flags"]
