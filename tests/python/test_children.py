"""Child processes, however they start and end: each child has a file with every call that the child made."""

import signal
import textwrap

import pytest

from family import counted, family, traced, write_programs

START = """
    import concurrent.futures, multiprocessing, os, shlex, signal, subprocess, sys, threading, warnings
    from counted import step, work

    warnings.simplefilter("ignore")  # of forks beside threads
    PYTHON = shlex.quote(sys.executable)

    def wait(child):
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def twice(times):
        work(times)
        work(times)
        return times

    def with_child(times):
        child = os.fork()
        if child == 0:
            work(times)
            os._exit(0)
        wait(child)
        work(times)

    def kill():
        work(5)
        os.kill(os.getpid(), signal.SIGKILL)

    if __name__ == "__main__":
        work(2)
    """


@pytest.fixture
def run(workplace):
    """Runs code under `vestige run`, and checks that the traces agree with the counts of the processes. Returns the
    root and the others.
    """

    def run(code, *options, children=1, **kwargs):
        write_programs(workplace)
        workplace.write("main.py", START.rstrip() + "\n" + textwrap.indent(code, " " * 8))
        result = workplace.vestige("run", "-q", "-o", "t.vst", *options, "main.py", **kwargs)
        assert (result.stderr, result.returncode) == ("", 0)
        root, others = family(workplace.path)
        says = counted(workplace.path)
        assert traced(root, others) == says
        assert children is None or len(says) == 1 + children
        return root, others

    return run


# ---- forks ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "code", "clean"),
    [
        ("sys.exit(3)", 3, True),
        ("os._exit(4)", 4, True),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, False),
        ("os.abort()", -signal.SIGABRT, False),
    ],
)
def test_a_forked_child_has_all_its_calls_however_it_ends(run, end, code, clean):
    program = f"child = os.fork()\nif child == 0:\n    work(7)\n    {end}\nassert wait(child) == {code}\nwork(1)"
    root, [child] = run(program)
    assert (child.clean, root.clean) == (clean, True)
    assert (child.parent["pid"], child.parent["tid"], child.parent["how"]) == (root.pid, root.pid, "fork")
    assert child.path.name == f"t.{child.pid}.vst"
    assert child.name == root.name == "main"
    assert child.metadata["vestige.command"] == ["main.py"]
    assert [thread["tid"] for thread in child.threads] == [child.pid]
    assert [calls for name, calls in child.calls.items() if "main.py(" in name and "<module>" in name] == [1]


def test_children_of_children_name_the_nearest(run):
    code = "child = os.fork()\nif child == 0:\n    with_child(3)\n    sys.exit()\nwait(child)"
    root, others = run(code, children=2)
    [child] = [file for file in others if file.parent["pid"] == root.pid]
    [grandchild] = [file for file in others if file is not child]
    assert grandchild.parent["pid"] == child.pid
    assert root.id == child.metadata["vestige.root"] == grandchild.metadata["vestige.root"]


def test_a_child_forked_in_a_thread_names_it(run):
    code = "thread = threading.Thread(target=with_child, args=[4], name='maker')\nthread.start()\nthread.join()"
    root, [child] = run(code)
    [maker] = [thread["tid"] for thread in root.threads if thread["name"] == "maker"]
    assert (child.parent["pid"], child.parent["tid"]) == (root.pid, maker)


def test_fifty_forks_in_threads_end(run):
    code = """
def several():
    for _ in range(5):
        with_child(1)
threads = [threading.Thread(target=several) for _ in range(10)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    _, others = run(code, children=50)
    assert len(others) == 50


# ---- multiprocessing -----------------------------------------------------


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_process_of_multiprocessing_ends_well_and_has_its_name(run, method):
    code = f"""
process = multiprocessing.get_context('{method}').Process(target=twice, args=[6])
process.start()
process.join()
assert process.exitcode == 0
"""
    _, others = run(code)
    [child] = [file for file in others if file.steps]
    kind = {"fork": "Fork", "spawn": "Spawn", "forkserver": "ForkServer"}[method]
    assert child.name == f"{kind}Process-1"
    assert child.clean
    servers = ["multiprocessing.forkserver"] if method == "forkserver" else []
    assert [file.name for file in others if file is not child] == servers


def test_a_named_process_that_is_killed_has_its_name(run):
    code = """
process = multiprocessing.get_context('fork').Process(target=kill, name='victim')
process.start()
process.join()
assert process.exitcode == -signal.SIGKILL
"""
    _, [child] = run(code)
    assert (child.name, child.clean) == ("victim", False)


def test_a_process_forked_by_one_that_was_forked_is_followed(run):
    code = """
process = multiprocessing.get_context('fork').Process(target=with_child, args=[2])
process.start()
process.join()
"""
    run(code, children=2)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_workers_of_an_executor(run, method):
    code = f"""
context = multiprocessing.get_context('{method}')
with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
    futures = [pool.submit(twice, 2) for _ in range(20)]
    assert [future.result() for future in futures] == [2] * 20
"""
    root, others = run(code, children=None)  # one process may have done all the work
    assert sum(file.steps for file in others) == 80
    assert all(file.clean for file in others)
    assert {file.parent["pid"] for file in others} == {root.pid}


def test_the_workers_of_a_pool_that_is_terminated(run):
    code = """
context = multiprocessing.get_context('fork')
started = context.Barrier(3)  # a worker that is terminated before it began has no name yet
with context.Pool(2, started.wait) as pool:
    started.wait()
    assert pool.map(twice, [3] * 10, chunksize=1) == [3] * 10
"""
    _, others = run(code, children=None)
    assert sum(file.steps for file in others) == 60
    assert {file.name for file in others} == {"ForkPoolWorker-1", "ForkPoolWorker-2"}


# ---- processes that are started ------------------------------------------

STARTED = {
    "a list": "subprocess.run([sys.executable, 'child.py', '9'], check=True)",
    "a shell": "subprocess.run(f'{PYTHON} child.py 9', shell=True, check=True)",
    "bash -c": "subprocess.run(['bash', '-c', f'true; {PYTHON} child.py 9; true'], check=True)",
    "env": "subprocess.run(['env', 'A=b', sys.executable, 'child.py', '9'], check=True)",
    "env python": """
os.environ['PATH'] = os.path.dirname(sys.executable) + ':' + os.environ['PATH']
subprocess.run('env python child.py 9', shell=True, check=True)""",
    "os.system": "assert os.system(f'{PYTHON} child.py 9') == 0",
    "os.popen": "assert os.popen(f'{PYTHON} child.py 9').close() is None",
    "posix_spawn": "wait(os.posix_spawn(sys.executable, [sys.executable, 'child.py', '9'], os.environ))",
    "another folder": "subprocess.run([sys.executable, os.path.abspath('child.py'), '9'], cwd='/', check=True)",
    "a module": "subprocess.run([sys.executable, '-m', 'child', '9'], check=True)",
    "code": "subprocess.run([sys.executable, '-c', 'import counted; counted.work(9)'], check=True)",
    "a preexec_fn": "subprocess.run([sys.executable, 'child.py', '9'], preexec_fn=lambda: None, check=True)",
    "options": "subprocess.run([sys.executable, '-O', '-X', 'dev', '-u', 'child.py', '9'], check=True)",
}


@pytest.mark.parametrize("how", STARTED)
def test_a_python_that_is_started_is_followed(run, how):
    root, [child] = run(STARTED[how])
    assert child.path.name == f"t.{child.pid}.vst"
    assert (child.parent["pid"], child.parent["tid"], child.parent["how"]) == (root.pid, None, "spawn")
    assert child.clean
    assert child.name == ("command" if how == "code" else "child")
    assert child.metadata["vestige.command"][0].startswith("/" if how != "env python" else "python")
    assert child.calls["counted.py(4): step"] == 9
    assert not [name for name in child.calls if "vestige" in name or "site.py" in name or "sitecustomize" in name]


def test_after_exec_the_process_is_the_same_and_the_file_another(run):
    root, [child] = run("work(1)\nos.execv(sys.executable, [sys.executable, 'child.py', '9'])", children=0)
    assert child.pid == root.pid == child.parent["pid"]
    assert (root.clean, child.clean) == (False, True)
    assert (root.steps, child.steps) == (3, 9)


def test_a_child_that_forks_and_then_executes_has_two_files(run):
    code = """
child = os.fork()
if child == 0:
    work(3)
    os.execlp(sys.executable, sys.executable, 'child.py', '9')
assert wait(child) == 0
"""
    _, others = run(code)
    [first, second] = sorted(others, key=lambda file: file.steps)
    assert first.pid == second.pid == second.parent["pid"]
    assert (first.path.name, second.path.name) == (f"t.{first.pid}.vst", f"t.{first.pid}.1.vst")
    assert (first.parent["how"], second.parent["how"]) == ("fork", "spawn")


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)", "raise SystemExit(1)", "1 / 0"])
def test_a_started_python_has_all_its_calls_however_it_ends(run, end):
    child = f"import counted, os; counted.work(9); {end}"
    _, [child] = run(f"subprocess.run([sys.executable, '-c', {child!r}], stderr=subprocess.DEVNULL)")
    assert child.clean is ("os.kill" not in end)


def test_what_a_started_python_starts_is_followed_too(run):
    code = "subprocess.run([sys.executable, '-c', 'import main; main.with_child(2)'])"
    root, others = run(code, children=2)
    [child] = [file for file in others if file.parent["pid"] == root.pid]
    [grandchild] = [file for file in others if file is not child]
    assert (grandchild.parent["pid"], grandchild.parent["how"]) == (child.pid, "fork")


def test_options_are_handed_on(run):
    code = "child = os.fork()\nif child == 0:\n    work(3)\n    sys.exit()\nwait(child)\n" + STARTED["a list"]
    _, others = run(code, "--no-c", "--no-gc", "--include", "counted.py", "--record-args", "work", children=2)
    for child in others:
        names = {name for name in child.calls if "<module>" not in name}
        assert names == {"counted.py(4): step", "counted.py(7): work"}


def test_no_children_means_none(workplace):
    write_programs(workplace)
    workplace.write("fork.py", "import os\nif os.fork() == 0: os._exit(0)\nos.wait()")
    workplace.write("main.py", "import fork, subprocess, sys\nsubprocess.run([sys.executable, 'child.py', '1'])")
    assert workplace.vestige("run", "-q", "-o", "t.vst", "--no-children", "main.py").returncode == 0
    assert family(workplace.path)[1] == []


# ---- what the command says and keeps --------------------------------------


def test_the_report_names_the_files_of_children(workplace):
    workplace.write("main.py", "import os\nfor _ in range(9):\n    if os.fork() == 0: os._exit(0)\n    os.wait()")
    result = workplace.vestige("run", "-o", "t.vst", "main.py")
    [line] = [line for line in result.stderr.splitlines() if line.startswith("and ")]
    assert line.startswith("and 9 child processes: t.")
    assert line.endswith(" …")
    assert len(line) <= 80


def test_force_removes_the_children_of_what_it_overwrites_and_no_others(workplace):
    workplace.write("fork.py", "import os\nif os.fork() == 0: os._exit(0)\nos.wait()")
    workplace.write("alone.py", "")
    for name, options in [("t.vst", []), ("u.vst", [])]:
        workplace.vestige("run", "-q", "-o", name, *options, "fork.py")
    [[child], [other]] = [list(workplace.path.glob(f"{stem}.*.vst")) for stem in "tu"]
    stranger = workplace.path / "t.123.vst"
    other.rename(stranger)
    for options in [[], ["--no-children"]]:
        workplace.vestige("run", "-q", "-o", "t.vst", "--force", *options, "fork.py")
        assert not child.exists()
        assert stranger.exists()
        children = set(workplace.path.glob("t.*.vst")) - {stranger}
        assert len(children) == (0 if options else 1)
        child = children.pop() if children else child


def test_torch_s_data_loader_workers_are_followed(run):
    pytest.importorskip("torch")
    code = """
import torch.utils.data
class Numbers(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, index):
        work(1)
        return index
loader = torch.utils.data.DataLoader(Numbers(), num_workers=2, batch_size=2, multiprocessing_context='fork')
assert sorted(x.item() for batch in loader for x in batch) == list(range(8))
"""
    root, others = run(code, children=2, timeout=300)
    assert {file.parent["pid"] for file in others} == {root.pid}
