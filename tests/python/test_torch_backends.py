"""Backends of torch may report their own events (reportBackendEventToActiveKinetoProfiler) to the profiler of the
thread, which torch takes for its own type. Our profiler has another type, so the report is dropped and the program
continues.

The reports are made in a new process, because a report that reached our profiler would crash the process.
"""

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed for this Python")

COMMON = """
import ctypes, json, os, sys, threading, time
import vestige, torch

class Text(ctypes.Structure):  # std::string
    _fields_ = [("at", ctypes.c_char_p), ("length", ctypes.c_size_t), ("rest", ctypes.c_char * 16)]

STRING = "RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
NAME = "_ZN5torch8autograd8profiler40reportBackendEventToActiveKinetoProfilerElllN2at11RecordScopeE" + STRING + "SB_"
report = getattr(ctypes.CDLL(os.path.join(torch.__path__[0], "lib", "libtorch_cpu.so")), NAME)
report.restype = None

def tell(name, backend=b"accelerator"):
    now = time.time_ns() // 1000
    texts = [ctypes.byref(Text(text, len(text), b"")) for text in (name, backend)]
    report(*map(ctypes.c_int64, (now, now + 5, -1)), ctypes.c_uint8(0), *texts)

def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

c10 = ctypes.CDLL(os.path.join(torch.__path__[0], "lib", "libc10.so"))
current = c10["_ZN3c1020ThreadLocalDebugInfo7currentEv"]
current.restype = None
become = c10["_ZN3c1020ThreadLocalDebugInfo22_forceCurrentDebugInfoESt10shared_ptrIS0_E"]
become.restype = None

def pool_thread():
    "A thread of a pool has the profiler of the thread that gave it work. This one has it as long as it lives."
    given = (ctypes.c_void_p * 2)()  # std::shared_ptr
    current(given)
    tasks, done = [], threading.Semaphore(0)
    ready = threading.Semaphore(0)
    def run():
        become(given)
        while True:
            ready.acquire()
            task = tasks.pop()
            if task is None:
                return
            task()
            done.release()
    thread = threading.Thread(target=run)
    thread.start()
    def do(task):
        tasks.append(task)
        ready.release()
        if task is None:
            thread.join()
        else:
            assert done.acquire(timeout=100)
    return do

def names(prof):
    return sorted({event.name for event in prof.events()} & {"aten::add", "told", "record"})

def theirs():
    with torch.profiler.profile() as prof:
        one + one
        tell(b"told")
    return names(prof)

def memory():
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

one = torch.ones(3, 3)
options = dict(with_stack=False, profile_memory=True, memory_native_allocators=False)
"""

WHILE_RECORDING = (
    COMMON
    + """
found = []
for _ in range(2):
    with vestige.profile(**options) as prof:
        one + one
        tell(b"told")
        in_thread(lambda: (one + one, tell(b"told")))
        do = pool_thread()
        do(lambda: tell(b"told"))  # before an operator of that thread
        do(None)
    found.append(names(prof))
    tell(b"told")
    found.append(theirs())
print(json.dumps(found))
"""
)

AFTER_THE_STOP = (
    COMMON
    + """
found = []
for _ in range(2):
    own, stop, stopped = [], threading.Event(), threading.Event()
    went_on = threading.Event()
    def run():  # has our profiler from its operator on
        one + one
        went_on.set()
        assert stopped.wait(100)
        tell(b"told")
        before = memory()
        for _ in range(200_000):
            tell(b"told")
        own.append(memory() - before < 4_000_000)
        own.append(theirs())
        own.append(theirs())
    with vestige.profile(**options):
        one + one
        thread = threading.Thread(target=run)
        thread.start()
        assert went_on.wait(100)
        do = pool_thread()
        do(lambda: one + one)
    stopped.set()
    thread.join()
    for _ in range(2):
        do(lambda: own.append(theirs()))
    do(lambda: tell(b"told"))
    with vestige.profile(**options) as prof:  # the thread of the pool still has ours
        do(lambda: (one + one, tell(b"told")))
    own.append(names(prof))
    do(lambda: own.append(theirs()))
    do(None)
    found.append(own)
print(json.dumps(found))
"""
)

SLOTS = (
    COMMON
    + """
def slots():
    "What stands in the pages of torch's library that hold where it calls to."
    found, library = [], os.path.join(torch.__path__[0], "lib", "libtorch_cpu.so")
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            words = line.split()
            if len(words) > 5 and os.path.samefile(words[5], library) if os.path.exists(words[-1]) else False:
                start, end = (int(word, 16) for word in words[0].split("-"))
                if "x" not in words[1] and end - start < 32 << 20:
                    memory.seek(start)
                    found.append((start, words[1], memory.read(end - start)))
    return found

own = [path for path in (line.split()[-1] for line in open("/proc/self/maps")) if "operators-" in path]
assert not own
with vestige.profile(**options):
    one + one
    tell(b"told")
theirs()
start = min(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if "/operators-" in line)
end = max(int(line.split()[0].split("-")[1], 16) for line in open("/proc/self/maps") if "/operators-" in line)

def points_to_us():
    count = 0
    for _, _, page in slots():
        words = memoryview(page).cast("Q")
        count += sum(start <= word < end for word in words)
    return count

found = [points_to_us()]
with vestige.profile(**options):
    one + one
    found.append(points_to_us())
found.append(points_to_us())
print(json.dumps(found))
"""
)


def run(script):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def test_a_backend_may_report_while_we_record_and_torchs_own_profiler_gets_reports_afterwards():
    assert run(WHILE_RECORDING) == [["aten::add"], ["aten::add", "told"]] * 2


def test_threads_that_still_have_our_profiler_may_report_and_use_torchs_own():
    theirs = ["aten::add", "told"]
    assert run(AFTER_THE_STOP) == [[True, theirs, theirs, theirs, theirs, ["aten::add"], theirs]] * 2


def test_torchs_library_calls_us_only_while_we_record():
    assert run(SLOTS) == [0, 1, 0]
