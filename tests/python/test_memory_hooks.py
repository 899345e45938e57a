"""Python's allocators under the memory tracer: the records of each allocator, and how blocks end."""

import ctypes
import json
import os
import subprocess
import sys
import threading
import tracemalloc

import pytest

import compiled
from histories import FREES, UNKNOWN, history_of, record, recording
from vestige import memory

SIZE = 4321  # a size by which the test recognises its blocks

api = ctypes.pythonapi
for _domain in ("PyMem_Raw", "PyMem_", "PyObject_"):
    for _name in ("Malloc", "Calloc", "Realloc"):
        getattr(api, _domain + _name).restype = ctypes.c_void_p
    getattr(api, f"{_domain}Malloc").argtypes = [ctypes.c_size_t]
    getattr(api, f"{_domain}Calloc").argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    getattr(api, f"{_domain}Realloc").argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    getattr(api, f"{_domain}Free").argtypes = [ctypes.c_void_p]
    getattr(api, f"{_domain}Free").restype = None

# Another allocator, which counts calls and passes them on.
WRAPPER = """
#include <Python.h>
#include <sys/mman.h>

static PyMemAllocatorEx before;
static int calls;
static char *edge;

static void *w_malloc(void *c, size_t n) { calls++; return before.malloc(before.ctx, n); }
static void *w_calloc(void *c, size_t m, size_t n) { calls++; return before.calloc(before.ctx, m, n); }
static void *w_realloc(void *c, void *p, size_t n) { calls++; return before.realloc(before.ctx, p, n); }
static void w_free(void *c, void *p) { calls++; if (!edge || p != edge) before.free(before.ctx, p); }

/* A block of 8 bytes, behind which there is nothing. */
void *block_at_edge(void)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 4096, PROT_NONE);
    return edge = pages + 4096 - 8;
}

void wrap(void)
{
    PyMemAllocatorEx ours = {NULL, w_malloc, w_calloc, w_realloc, w_free};
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &before);
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &ours);
}

void unwrap(void)
{
    PyMemAllocatorEx now;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &now);
    if (now.malloc == w_malloc)
        PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &before);
}

int wrapped_calls(void) { int n = calls; calls = 0; return n; }

void get_allocators(void **out)
{
    PyMemAllocatorDomain domains[] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
    for (int i = 0; i < 3; i++) {
        PyMemAllocatorEx a;
        PyMem_GetAllocator(domains[i], &a);
        *out++ = a.ctx; *out++ = (void *)a.malloc; *out++ = (void *)a.calloc;
        *out++ = (void *)a.realloc; *out++ = (void *)a.free;
    }
}
"""


@pytest.fixture(scope="module")
def wrapper():
    return ctypes.PyDLL(str(compiled.library(WRAPPER)))


@pytest.fixture
def other(wrapper):
    yield wrapper
    wrapper.unwrap()  # if a test failed: a second wrap() would call itself


def allocators(other):
    out = (ctypes.c_void_p * 15)()
    other.get_allocators(out)
    return list(out)


def life_of(history, address, size):
    """Checks the allocation and the free of the block. Other code may have used its address before or after."""
    [born] = [event for event in history.allocations if event.address == address and event.size == size]
    return [event for event in history.events if event.serial == born.serial]


# ---- what is recorded -------------------------------------------------------


@pytest.mark.parametrize("domain", ["PyMem_Raw", "PyMem_", "PyObject_"])
def test_each_function_of_each_domain_is_recorded(domain):
    malloc, calloc = getattr(api, f"{domain}Malloc"), getattr(api, f"{domain}Calloc")
    realloc, free = getattr(api, f"{domain}Realloc"), getattr(api, f"{domain}Free")
    with recording() as result:
        one = malloc(SIZE)
        two = calloc(3, SIZE)
        three = realloc(None, SIZE + 1)
        four = realloc(three, 100 * SIZE)
        for address in (one, two, four):
            free(address)
    [history] = result
    # Other code may have used the addresses before or after.
    ours = [event for event in history.allocations if event.address in (one, two, three, four)]
    ours = [event for event in ours if event.size in (SIZE, 3 * SIZE, SIZE + 1, 100 * SIZE)]
    kinds = [event.kind for event in ours]
    assert kinds == [f"{domain}Malloc", f"{domain}Calloc", f"{domain}Malloc", f"{domain}Realloc"]
    assert [event.size for event in ours] == [SIZE, 3 * SIZE, SIZE + 1, 100 * SIZE]
    ends = [event for event in history.frees if event.serial in {event.serial for event in ours}]
    assert [event.kind for event in ends] == [f"{domain}Realloc"] + 3 * [f"{domain}Free"]
    assert [event.size for event in ends] == [SIZE + 1, SIZE, 3 * SIZE, 100 * SIZE]


def test_what_an_allocator_takes_from_another_is_counted_once():
    with recording() as result:
        large = bytearray(10_000_000)  # from malloc, which uses mmap
        small = [object() for _ in range(100_000)]  # from arenas, which Python maps
    [history] = result
    assert len(history.bytearrays(10_000_000)) == 1
    assert sum(event.size for event in history.live()) < 10_000_000 + 100_000 * (sys.getsizeof(object()) + 9) + 100_000
    del large, small


def test_a_free_of_what_was_there_before_is_told_as_such():
    address = api.PyMem_Malloc(SIZE)
    history = record(lambda: api.PyMem_Free(address))
    first, *_ = [event for event in history.frees if event.address == address]
    assert first.flags & UNKNOWN


def test_a_block_that_grows_in_place_is_freed_and_allocated():
    with recording() as result:
        first = api.PyMem_Malloc(100)
        second = api.PyMem_Realloc(first, 110)  # in the same size class
        api.PyMem_Free(second)
    assert first == second
    assert [event.kind for event in life_of(result[0], first, 100)] == ["PyMem_Malloc", "PyMem_Realloc"]
    assert [event.kind for event in life_of(result[0], second, 110)] == ["PyMem_Realloc", "PyMem_Free"]


def test_a_realloc_that_fails_leaves_the_block():
    with recording() as result:
        address = api.PyMem_Malloc(SIZE)
        assert not api.PyMem_Realloc(address, 1 << 62)
        api.PyMem_Free(address)
    life = life_of(result[0], address, SIZE)
    assert [(event.kind, event.size) for event in life] == [("PyMem_Malloc", SIZE), ("PyMem_Free", SIZE)]


def test_a_block_that_another_thread_frees_is_freed():
    with recording() as result:
        address = api.PyMem_Malloc(SIZE)
        thread = threading.Thread(target=lambda: api.PyMem_Free(address))
        thread.start()
        thread.join()
    first, last = life_of(result[0], address, SIZE)
    assert last.flags & FREES
    assert first.thread != last.thread


def test_only_pythons_allocators_are_recorded_if_asked():
    with recording(native_allocators=False) as result:
        data = bytearray(SIZE)
        ctypes.CDLL(None).malloc(SIZE)
    assert {event.kind.partition("_")[0] for event in result[0].events} <= {"PyMem", "PyObject"}
    assert result[0].bytearrays(SIZE)
    del data


# ---- what becomes of the allocators ------------------------------------------


def test_stopping_gives_back_the_allocators(other):
    before = allocators(other)
    memory.start()
    during = allocators(other)
    memory.stop()
    assert allocators(other) == before
    assert not set(before[1::5]) & set(during[1::5])
    assert during[0::5] == before[0::5]


def test_nothing_is_read_behind_a_small_block_that_is_freed(other):
    other.wrap()
    other.block_at_edge.restype = ctypes.c_void_p
    edge = other.block_at_edge()
    with recording() as result:
        api.PyObject_Free(edge)
    other.unwrap()
    assert [event.kind for event in result[0].events if event.address == edge] == ["PyObject_Free"]


def test_an_allocator_that_wrapped_ours_stays_and_ours_passes_on(other):
    before = allocators(other)
    with recording() as result:
        other.wrap()
        address = api.PyObject_Malloc(SIZE)
    assert other.wrapped_calls()
    assert [event.kind for event in result[0].events if event.address == address][-1:] == ["PyObject_Malloc"]
    wrapped = allocators(other)
    assert wrapped[:10] == before[:10]
    assert wrapped[10:] != before[10:]
    api.PyObject_Free(address)
    assert other.wrapped_calls()

    with recording() as result:  # our hooks are found again behind the wrapper's
        address = api.PyObject_Malloc(SIZE)
        api.PyObject_Free(address)
    kinds = [event.kind for event in life_of(result[0], address, SIZE)]
    assert kinds == ["PyObject_Malloc", "PyObject_Free"]
    assert len([event for event in result[0].sized(SIZE) if event.address == address]) == 1
    assert allocators(other) == wrapped

    other.unwrap()  # which leaves our hooks in place
    with recording() as result:
        address = api.PyObject_Malloc(SIZE)
        api.PyObject_Free(address)
    assert len([event for event in result[0].sized(SIZE) if event.address == address]) == 1
    assert allocators(other) == before


def test_an_allocator_that_was_wrapped_by_us_is_called(other):
    before = allocators(other)
    other.wrap()
    other.wrapped_calls()
    with recording() as result:
        api.PyObject_Free(api.PyObject_Malloc(SIZE))
        assert other.wrapped_calls()
    assert result[0].sized(SIZE)
    other.unwrap()
    assert allocators(other) == before


@pytest.mark.parametrize("first", ["tracemalloc", "vestige"])
def test_tracemalloc_beside_us_sees_what_it_sees_without(first):
    def run():
        if first == "tracemalloc":
            tracemalloc.start()
        with recording() as result:
            if first == "vestige":
                tracemalloc.start()
            data = bytearray(10 * SIZE)
            seen = tracemalloc.get_object_traceback(data)
            size = sum(stat.size for stat in tracemalloc.take_snapshot().statistics("lineno") if stat.traceback == seen)
        tracemalloc.stop()
        return result[0], size

    history, size = run()
    assert size >= 10 * SIZE
    assert history.bytearrays(10 * SIZE)
    assert not tracemalloc.is_tracing()
    assert record(lambda: bytearray(20 * SIZE)).bytearrays(20 * SIZE)  # and afterwards


def python(*args, env=None, **options):
    options = {"capture_output": True, "text": True, "timeout": 60, **options}
    return subprocess.run([sys.executable, *args], env={**os.environ, **(env or {})}, **options)


@pytest.mark.parametrize("name", ["malloc", "debug", "pymalloc_debug", "malloc_debug", "pymalloc"])
def test_each_of_pythons_allocators_works_beneath_us(name, tmp_path):
    done = python(
        "-c",
        "from vestige import memory\n"
        f"with memory.track({str(tmp_path / 'o.vst')!r}):\n"
        "    kept = [bytearray(4321), [object() for _ in range(1000)], {i: str(i) for i in range(1000)}]\n"
        "    del kept[1:]\n",
        env={"PYTHONMALLOC": name},
    )
    assert (done.returncode, done.stderr) == (0, "")
    history = history_of(tmp_path / "o.vst")
    assert len(history.bytearrays(4321)) == 1
    assert len(history.allocations) > 2000


# ---- forks, exits, sub-interpreters ------------------------------------------


def test_a_forked_child_is_not_recorded_and_runs_on(tmp_path, other):
    before = allocators(other)
    with recording(tmp_path / "o.vst") as result:
        marked = bytearray(SIZE)
        pid = os.fork()
        if pid == 0:
            fine = not memory.is_tracing() and allocators(other) == before
            kept = [bytearray(2 * SIZE) for _ in range(100)]
            del kept
            os._exit(0 if fine else 1)
        _, status = os.waitpid(pid, 0)
        after = bytearray(3 * SIZE)
    assert status == 0
    assert result[0].bytearrays(SIZE)
    assert result[0].bytearrays(3 * SIZE)
    assert not result[0].bytearrays(2 * SIZE)
    del marked, after


def test_a_forked_child_can_record_by_itself(tmp_path):
    memory.start(tmp_path / "parent.vst")
    pid = os.fork()
    if pid == 0:
        try:
            memory.start(tmp_path / "child.vst")
            bytearray(2 * SIZE)
            memory.stop()
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    memory.stop()
    assert status == 0
    assert history_of(tmp_path / "child.vst").bytearrays(2 * SIZE)


EXITS = {
    "plainly": "",
    "by an exception": "raise SystemExit(3)",
    "with daemon threads": """
import threading, ctypes, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
libc.qsort.argtypes = None
def forever():
    while True:
        libc.free(libc.malloc(100))
        [bytearray(5000) for _ in range(10)]
for _ in range(4):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
""",
    "while objects end": """
class Late:
    def __del__(self):
        self.kept = [bytearray(100) for _ in range(100)]
late = Late()
late.me = late
import atexit
atexit.register(lambda: [bytearray(100) for _ in range(100)])
""",
}


@pytest.mark.parametrize("how", EXITS)
def test_a_program_that_ends_while_it_records_ends_as_without(how, tmp_path):
    path = tmp_path / "o.vst"
    start = f"from vestige import memory\nmemory.start({str(path)!r})\nkept = bytearray({SIZE})\n"
    done = python("-c", start + EXITS[how])
    assert done.stderr == ""
    assert done.returncode == (3 if "exception" in how else 0)
    history = history_of(path)
    assert history.trace.info()["clean"]
    assert history.bytearrays(SIZE)


SUB = """
import json, sys
from vestige import memory
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
memory.start(sys.argv[1])
sub = interpreters.create()
run = getattr(interpreters, "run_string", None) or interpreters.exec
run(sub, "kept = [bytearray(4321) for _ in range(10)]; del kept")
interpreters.destroy(sub)
after = bytearray(2 * 4321)
memory.stop()
"""


def test_a_sub_interpreter_runs_on_and_shows_no_stack_of_another(tmp_path):
    done = python("-W", "ignore", "-c", SUB, tmp_path / "o.vst")
    assert (done.returncode, done.stderr) == (0, "")
    history = history_of(tmp_path / "o.vst")
    assert len(history.bytearrays(2 * SIZE)) == 1
    for event in history.bytearrays(SIZE):
        assert len(history.frames(event)) <= 1  # the caller's frame, if any


# ---- truth ---------------------------------------------------------------------

# The interpreter keeps small objects (tuples, lists …) for reuse. For such a block, tracemalloc names the last user,
# and we name the allocating function, so small blocks are not compared.
AGAINST_TRACEMALLOC = """
import gc, json, sys, tracemalloc
tracemalloc.start()
from vestige import memory

class Thing:
    __slots__ = ("text", "data", "number")
    def __init__(self, n):
        self.text = "x" * n
        self.data = bytes(3 * n)
        self.number = 10 ** (10 * n)

def build():
    things = [Thing(n) for n in range(200)]
    table = {f"key{i:99}": i * 1000 for i in range(2000)}
    names = {f"name{i:99}" for i in range(3000)}
    growing = bytearray()
    for i in range(60):
        things.pop()
        growing += b"x" * 100 * i
    for i in range(500):
        del table[f"key{i:99}"]
        names.discard(f"name{i:99}")
    names.add("added" * i)
    again = list(map(Thing, range(30)))
    texts = "word ".join(sorted(names)).encode()
    return things, table, names, growing, again, texts

gc.disable()
memory.start(sys.argv[1], native_allocators=False)
gc.collect()  # what is kept for the next object of a kind is freed
# Keeps the names of files: from 3.13.2 on the next line waits for itself for ever if it drops the last reference to one.
before = tracemalloc.take_snapshot()
tracemalloc.clear_traces()
kept = build()
snapshot = tracemalloc.take_snapshot()
memory.stop()
found = {}
for trace in snapshot.traces:
    frame = trace.traceback[0]
    if frame.filename == __file__ and trace.size >= 100:
        size, count = found.get(frame.lineno, (0, 0))
        found[frame.lineno] = [size + trace.size, count + 1]
with open(sys.argv[2], "w") as file:
    json.dump(found, file)
"""


def test_live_bytes_by_line_are_those_of_tracemalloc(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(AGAINST_TRACEMALLOC)
    done = python(script, tmp_path / "o.vst", tmp_path / "found.json")
    assert (done.returncode, done.stderr) == (0, "")
    expected = {int(line): tuple(sums) for line, sums in json.loads((tmp_path / "found.json").read_text()).items()}
    history = history_of(tmp_path / "o.vst")
    found = {}
    for event in history.live():
        frames = history.frames(event)
        if frames and frames[0].file == str(script) and event.size >= 100:
            size, count = found.get(frames[0].line, (0, 0))
            found[frames[0].line] = (size + event.size, count + 1)
    lines = AGAINST_TRACEMALLOC.splitlines()
    measuring = {number for number, line in enumerate(lines, 1) if "snapshot" in line or "memory." in line}
    found = {line: sums for line, sums in found.items() if line not in measuring}
    expected = {line: sums for line, sums in expected.items() if line not in measuring}
    assert found == expected
    assert len(found) > 8
    assert sum(count for _, count in found.values()) > 4000
