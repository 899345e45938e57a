"""The C stack: a recursion that fits on it without vestige fits while recording, too, and the program reads the stack
sizes that it set.
"""

import json
import resource
import subprocess
import sys

import pytest

import vestige

every_engine = pytest.mark.parametrize("engine", vestige._core.engines)

# ---- how deep it goes -----------------------------------------------------------

DEEP = """
import sys, threading
engine, size, depth = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.setrecursionlimit(1_000_000)

def through_c(n):
    return 0 if n == 0 else sorted([n - 1], key=through_c)[0] + 1

go = threading.Event()

def work():
    go.wait()
    through_c(depth)

def thread():
    threading.stack_size(size)
    made = threading.Thread(target=work, daemon=True)
    made.start()
    return made

if engine != "none":
    from vestige import profile

    prof = profile(engine=engine, output="t.vst")
    prof.start()
made = thread()
go.set()
made.join()
"""


def survives(folder, engine, *args):
    shell = ["bash", "-c", 'ulimit -S -s 1024 -c 0; exec "$@"', "bash"]
    command = [*shell, sys.executable, "-c", DEEP, engine, *map(str, args)]
    (folder / "t.vst").unlink(missing_ok=True)
    result = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, timeout=60)
    assert result.returncode in (0, -11), result.stderr
    assert result.returncode or engine == "none" or vestige.Trace(str(folder / "t.vst")).info()["records"] > 0
    return result.returncode == 0


def deepest(folder, *args):
    """Returns the depth that the bare interpreter survives, minus randomness: a stack begins at a random place in its
    page.
    """
    fits, breaks = 1, 8192
    while breaks - fits > 1 + fits // 100:
        middle = (fits + breaks) // 2
        survived = survives(folder, "none", *args, middle)
        fits, breaks = (middle, breaks) if survived else (fits, middle)
    return fits - fits // 50 - 1


@pytest.mark.parametrize("size", [0, 256 * 1024], ids=["default size", "256 KiB"])
def test_as_deep_a_recursion_fits_on_the_stack_of_a_new_thread_as_without_us(size, tmp_path):
    depth = deepest(tmp_path, size)
    assert depth > 10
    for engine in vestige._core.engines:
        assert survives(tmp_path, engine, size, depth), engine


# ---- where the main thread's stack grows to -------------------------------------

BELOW = """
import ctypes, sys
from vestige import profile

engine, is_taken = sys.argv[1], sys.argv[2] == "taken"
MIB = 1 << 20
FILLED_WITH = b"v"

def stack():
    with open("/proc/self/maps") as maps:
        for line in maps:
            if line.endswith("[stack]\\n"):
                return [int(address, 16) for address in line.split()[0].split("-")]

def map_below(top):
    PROT_READ_WRITE, PRIVATE_ANONYMOUS_NOREPLACE = 3, 0x100022
    ctypes.pythonapi.mmap.restype = ctypes.c_void_p
    start, length = top - 24 * MIB, 15 * MIB
    found = ctypes.pythonapi.mmap(
        ctypes.c_void_p(start), ctypes.c_size_t(length), PROT_READ_WRITE, PRIVATE_ANONYMOUS_NOREPLACE, -1,
        ctypes.c_long(0))
    assert found == start, "something is mapped there"
    ctypes.memset(start, ord(FILLED_WITH), length)
    return start, length

low, top = stack()
if is_taken:
    start, length = map_below(top)
with profile(engine=engine, output="t.vst"):
    pass
if is_taken:
    assert ctypes.string_at(start, length) == FILLED_WITH * length, "somebody wrote into it"
    assert top - stack()[0] < 9 * MIB, "the stack grew into it"
else:
    assert top - stack()[0] > 12 * MIB, "the stack has not grown"
"""


@every_engine
@pytest.mark.parametrize("below", ["taken", "free"])
@pytest.mark.skipif(0 <= resource.getrlimit(resource.RLIMIT_STACK)[1] < 16 << 20, reason="the hard limit is too low")
def test_the_main_stack_grows_where_memory_is_free_and_never_touches_what_is_mapped_there(engine, below, tmp_path):
    shell = ["bash", "-c", 'ulimit -S -s 8192; exec "$@"', "bash"]
    command = [*shell, sys.executable, "-c", BELOW, engine, below]
    result = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")


# ---- what the program reads -----------------------------------------------------

SIZES = """
import ctypes, json, os, resource, sys, threading
from vestige import profile

engine, limited = sys.argv[1:]
used = ctypes.pythonapi.PyThread_get_stacksize
used.restype = ctypes.c_size_t
read = {}
made_with = []

def size():
    found = threading.stack_size()  # sets it to 0
    threading.stack_size(found)
    return found

def hear(event, args):
    if event == "_thread.start_new_thread":
        read.setdefault("when a thread starts", []).append(size())

def thread():
    made_with.append(used())
    made = threading.Thread(target=lambda: None)
    made.start()
    made.join()

if limited:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 40, -1))
sys.addaudithook(hear)
if engine != "none":
    prof = profile(engine=engine, output="t.vst")
    prof.start()
thread()
read["set"] = threading.stack_size(300 * 1024), size()
try:
    threading.stack_size(1)
except ValueError as error:
    read["refused"] = str(error), size()
thread()
if os.fork() == 0:
    os._exit(used() == size() == 300 * 1024)
read["in a child"] = os.wait()[1] >> 8
if engine != "none":
    prof.stop()
read["after"] = size()
thread()
print(json.dumps([read, made_with]))
"""


def sizes(folder, engine, limited=""):
    command = [sys.executable, "-W", "ignore", "-c", SIZES, engine, limited]
    result = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(result.stdout)


@every_engine
def test_the_program_reads_the_stack_size_that_it_set(engine, tmp_path):
    read, made_with = sizes(tmp_path, engine)
    bare, bare_made_with = sizes(tmp_path, "none")
    assert read == bare
    assert (bare["set"], bare["in a child"], bare["after"]) == ([0, 300 * 1024], 1, 300 * 1024)
    assert bare_made_with == [0, 300 * 1024, 300 * 1024]
    assert made_with[0] > made_with[1] > made_with[2] == 300 * 1024


@every_engine
def test_stacks_stay_as_they_are_where_address_space_is_limited(engine, tmp_path):
    assert sizes(tmp_path, engine, "limited") == sizes(tmp_path, "none", "limited")
