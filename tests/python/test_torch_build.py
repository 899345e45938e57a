"""How the recorder of torch's operators is found, built and loaded, in new processes, several at the same time."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

from vestige import Trace
from vestige.torch import build as torch_build

if find_spec("torch") is None:
    pytest.skip("torch is not installed for this Python", allow_module_level=True)

OPERATORS = """
import json, sys
import vestige
{before}
with vestige.profile(with_stack=False) as prof:
    {inside}
    torch.sin(torch.ones(2))
prof.export_chrome_trace(sys.argv[1])
print(json.dumps([e["name"] for e in json.load(open(sys.argv[1]))["traceEvents"] if e.get("cat") == "cpu_op"]))
"""


def program(before="import torch", inside="pass"):
    return textwrap.dedent(OPERATORS).format(before=before, inside=inside)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The library, built by the installed compiler."""
    import torch

    name = torch_build.library_name(torch)
    for folder in (torch_build.HOME, *torch_build.cache_folders()):
        if os.path.isfile(os.path.join(folder, name)):
            return os.path.join(folder, name)
    path = str(tmp_path_factory.mktemp("built") / name)
    torch_build.build(torch, path)
    return path


@pytest.fixture
def place(tmp_path, built):
    """A copy of the package without a library, with an empty cache, and a compiler that takes time."""
    package = Path(torch_build.HOME).parent
    shutil.copytree(package, tmp_path / "site" / "vestige", ignore=shutil.ignore_patterns("operators-*.so"))
    compiler = tmp_path / "bin" / "copying"
    compiler.parent.mkdir()
    compiler.write_text(
        f"#!{sys.executable}\nimport shutil, sys, time\n"
        f"open({str(tmp_path / 'runs')!r}, 'a').write('run\\n')\n"
        f"time.sleep(0.5)\nshutil.copy({built!r}, sys.argv[sys.argv.index('-o') + 1])\n"
    )
    compiler.chmod(0o755)
    return tmp_path


@pytest.fixture
def new_place(place):
    """Changes the sources, so that no cache of this user has a library of them."""
    with open(place / "site" / "vestige" / "_torch" / "operators.cpp", "a") as file:
        file.write("// changed\n")
    return place


# Imports torch, which takes longer than all the rest, and forks for each program. Knows nothing of vestige.
FORKS = """
import json, os, sys, time
import torch
for line in sys.stdin:
    asked = json.loads(line)
    if "wait" in asked:
        end = time.monotonic() + 120
        while (done := os.waitpid(asked["wait"], os.WNOHANG)) == (0, 0) and time.monotonic() < end:
            time.sleep(0.01)
        print(os.waitstatus_to_exitcode(done[1]) if done[0] else "it hangs", flush=True)
    elif child := os.fork():
        print(child, flush=True)
    else:
        for number, name in enumerate(asked["streams"]):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
        os.environ.clear()
        os.environ.update(asked["environment"])
        os.chdir(asked["folder"])
        sys.path.insert(1, os.environ["PYTHONPATH"])
        sys.argv[1:] = asked["words"]
        exec(asked["text"])
        break
"""


class Forked:
    """A program in a process that had torch before it began, with what finish() needs of a Popen."""

    def __init__(self, server, streams, **asked):
        self._server, self._streams = server, streams
        self._pid = self._ask(streams=["/dev/null", *map(str, streams)], **asked)

    def _ask(self, **asked):
        print(json.dumps(asked), file=self._server.stdin, flush=True)
        return json.loads(self._server.stdout.readline())

    def communicate(self, timeout):
        self.returncode = self._ask(wait=self._pid)
        return [path.read_text() for path in self._streams]


@pytest.fixture(scope="module")
def server():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-W", "ignore", "-c", FORKS], **pipes) as process:
        yield process


@pytest.fixture
def start(server, tmp_path):
    """Starts a program that imports torch."""

    def started(place, text, **environment):
        out = tmp_path / f"t{len(list(place.glob('t*.json')))}-{id(environment)}.json"
        streams = [out.with_suffix(".out"), out.with_suffix(".err")]
        given = environment_of(place, **environment)
        return Forked(server, streams, text=text, words=[str(out)], environment=given, folder=str(place))

    return started


def start_without_torch(place, text, **environment):
    return launch(place, "-c", text, str(place / "t.json"), **environment)


def run(place, text, **environment):
    """Runs a program under `vestige run`, as the installed command starts."""
    (place / "bin" / "vestige").write_text("from vestige.cli import main\nmain()\n")
    (place / "train.py").write_text(text)
    command = (str(place / "bin" / "vestige"), "run", "--force", "-o", "t.vst", "train.py")
    return launch(place, *command, **environment)


def environment_of(place, **environment):
    return {
        **os.environ,
        "PYTHONPATH": str(place / "site"),
        "XDG_CACHE_HOME": str(place / "cache"),
        "HOME": str(place / "home"),
        "CXX": str(place / "bin" / "copying"),
        **environment,
    }


def launch(place, *words, **environment):
    env = environment_of(place, **environment)
    command = [sys.executable, "-W", "ignore", *words]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=place)


def finish(process):
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    lines = [line for line in stderr.splitlines() if line.startswith("vestige: ")]
    return json.loads(stdout.splitlines()[-1]), lines


def libraries(place):
    return sorted((place / "cache" / "vestige" / "torch").glob("*.so"))


def test_two_processes_at_once_build_it_once(start, place):
    results = [finish(p) for p in [start(place, program()) for _ in range(2)]]
    assert [sorted(names) for names, _ in results] == [["aten::empty", "aten::fill_", "aten::ones", "aten::sin"]] * 2
    told = [line for _, lines in results for line in lines]
    assert len(told) == 1
    assert "building the recorder of operators for torch" in told[0]
    assert (place / "runs").read_text() == "run\n"
    [library] = libraries(place)
    assert library.stat().st_mode & 0o777 == 0o700
    assert not list(library.parent.glob(".operators-*"))


def test_a_broken_file_in_the_cache_is_built_again_and_a_good_one_used(start, place, built):
    folder = place / "cache" / "vestige" / "torch"
    folder.mkdir(parents=True)
    library = folder / os.path.basename(built)
    library.write_bytes(Path(built).read_bytes()[:5000])
    names, lines = finish(start(place, program()))
    assert "aten::sin" in names
    assert len(lines) == 1
    assert library.stat().st_size > 5000
    names, lines = finish(start(place, program(), CXX="false"))
    assert "aten::sin" in names
    assert lines == []


def bring_along(place, built, name):
    """Puts the library where a wheel has prebuilt libraries."""
    folder = place / "site" / "vestige" / "_torch" / "prebuilt"
    folder.mkdir(exist_ok=True)
    return Path(shutil.copy(built, folder / name))


def test_what_the_wheel_brings_for_this_torch_needs_no_compiler(start, place, built):
    import torch

    bring_along(place, built, torch_build.prebuilt_name(torch))
    names, lines = finish(start(place, program(), CXX="false"))
    assert "aten::sin" in names
    assert lines == []
    assert libraries(place) == []


def test_what_the_wheel_brings_for_another_commit_of_torch_is_not_used(start, place, built):
    import torch

    commit = torch.version.git_version[:12]
    bring_along(place, built, torch_build.prebuilt_name(torch).replace(commit, "0" * 12))
    names, lines = finish(start(place, program()))
    assert "aten::sin" in names
    assert len(lines) == 1
    assert "building the recorder of operators" in lines[0]


def test_a_broken_file_of_the_wheel_is_left_and_another_one_built(start, place, built):
    import torch

    path = bring_along(place, built, torch_build.prebuilt_name(torch))
    path.write_bytes(path.read_bytes()[:5000])
    names, lines = finish(start(place, program()))
    assert "aten::sin" in names
    assert len(lines) == 1
    assert path.stat().st_size == 5000
    assert len(libraries(place)) == 1


def test_without_a_compiler_one_line_says_what_is_missing_and_the_rest_is_recorded(start, place):
    stub = program().replace("with_stack=False", "with_stack=True")
    names, lines = finish(start(place, stub, PATH="", CXX=""))
    assert names == []
    assert lines == [
        (
            "vestige: torch's operators are not recorded: no C++ compiler to build for torch with: "
            "install one of c++, g++, clang++, or set CXX"
        )
    ]
    names, lines = finish(start(place, stub, CXX="false"))
    assert names == []
    assert lines[-1].startswith("vestige: torch's operators are not recorded: false failed")
    assert libraries(place) == []


LATE = program(before="assert 'torch' not in sys.modules", inside="import torch")
NONE_YET = (
    "vestige: torch's operators are not recorded: there is no recorder for torch {} yet, and none is built while a "
    "program is recorded; `python -m vestige.torch.build` builds it"
)


def test_torch_that_is_loaded_while_recording_is_recorded_and_nothing_is_built_meanwhile(start, new_place):
    import torch

    names, lines = finish(start_without_torch(new_place, LATE))
    assert (names, lines) == ([], [NONE_YET.format(torch.__version__)])
    assert not (new_place / "runs").exists()
    finish(start(new_place, program()))
    names, lines = finish(start_without_torch(new_place, LATE))
    assert (names[-1], lines) == ("aten::sin", [])
    names, lines = finish(start(new_place, program(), VESTIGE_TORCH="0"))
    assert (names, lines) == ([], [])


def test_the_command_that_builds_ahead_builds_into_the_package_once_and_for_all(new_place):
    import torch

    package = new_place / "site" / "vestige" / "_torch"
    for line in (f"building the recorder of operators for torch {torch.__version__}\n", ""):
        process = launch(new_place, "-W", "error::RuntimeWarning", "-m", "vestige.torch.build")
        assert (*process.communicate(timeout=120), process.returncode) == (line, "", 0)
        assert len(list(package.glob("operators-*.so"))) == 1
    assert (new_place / "runs").read_text() == "run\n"
    _, lines = finish(run(new_place, "print([])"))
    assert not [line for line in lines if "recorder" in line]
    assert libraries(new_place) == []


def test_vestige_run_builds_before_the_program_starts(new_place):
    import torch

    (new_place / "random.py").write_text("")  # the program's module, which a build must neither load nor replace
    (new_place / "hashlib.py").write_text("raise SystemExit('loaded too early')")
    modules = "import json, random, sys; print(json.dumps([random.__file__, 'hashlib' in sys.modules]))"
    seen, lines = finish(run(new_place, modules))
    assert seen == [str(new_place / "random.py"), False]
    assert (new_place / "runs").read_text() == "run\n" and len(libraries(new_place)) == 1
    assert lines[0].startswith(f"vestige: building the recorder of operators for torch {torch.__version__} once, in ")
    for name in ("random.py", "hashlib.py"):
        (new_place / name).unlink()
    _, lines = finish(run(new_place, "import torch\ntorch.sin(torch.ones(2))\nprint([])"))
    assert (new_place / "runs").read_text() == "run\n"
    assert not [line for line in lines if "recorder" in line]
    assert "aten::sin" in Trace(str(new_place / "t.vst")).names()


def test_vestige_run_without_a_compiler_says_so_only_where_the_program_loads_torch(new_place):
    _, lines = finish(run(new_place, "print([])", PATH="", CXX=""))
    assert not [line for line in lines if "torch" in line]
    _, lines = finish(run(new_place, "import torch\nprint([])", PATH="", CXX=""))
    assert [line for line in lines if "torch" in line] == [
        (
            "vestige: torch's operators are not recorded: no C++ compiler to build for torch with: "
            "install one of c++, g++, clang++, or set CXX"
        )
    ]
    assert libraries(new_place) == []


def test_who_attaches_is_told_what_is_missing_and_nothing_is_built_in_the_process(start, new_place):
    import torch

    text = program(before="import torch\nfrom vestige.recording import options\noptions.notes = []")
    names, lines = finish(start(new_place, text + "\nprint(json.dumps(options.notes))"))
    assert [f"vestige: {line}" for line in names] == [NONE_YET.format(torch.__version__)]
    assert lines == [] and not (new_place / "runs").exists()


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
NOBODY = 65534


@needs_root
def test_a_library_in_another_users_cache_is_not_loaded(start, place, built):
    folder = place / "cache" / "vestige" / "torch"
    folder.mkdir(parents=True)
    shutil.copy(built, folder / os.path.basename(built))
    for path in (place / "cache", folder.parent, folder, folder / os.path.basename(built)):
        os.chown(path, NOBODY, NOBODY)
    names, lines = finish(start(place, program(), HOME=str(place / "home")))
    assert "aten::sin" in names
    own = place / "home" / ".cache" / "vestige" / "torch"
    assert lines[-1] == (
        f"vestige: a cache of native code is not safe, so it is not used: {place}/cache belongs to another user; "
        f"{own} is used instead"
    )
    assert (place / "runs").read_text() == "run\n"
    assert own.stat().st_mode & 0o777 == 0o700


@needs_root
def test_without_any_safe_cache_it_is_built_for_the_process_alone(start, place, built):
    for name in ("cache", "home"):
        (place / name).mkdir()
        os.chmod(place / name, 0o777)
    text = program(before="import torch, pwd\npwd.getpwuid = {}.__getitem__")
    names, lines = finish(start(place, text, HOME=str(place / "home"), TMPDIR=str(place / "bin")))
    assert "aten::sin" in names
    assert lines[0] == (
        f"vestige: a cache of native code is not safe, so it is not used: other users can write to {place}/cache; "
        f"other users can write to {place}/home; the recorder of operators is built for this process alone"
    )
    assert os.listdir(place / "cache") == os.listdir(place / "home") == []
    assert os.listdir(place / "bin") == ["copying"]


def test_the_cache_is_private_under_any_umask_and_never_relative(start, place, built):
    text = program(before="import os\nos.umask(0)\nimport torch")
    names, lines = finish(start(place, text, XDG_CACHE_HOME="relative", HOME=str(place / "home")))
    assert "aten::sin" in names and len(lines) == 1
    made = [place / "home" / ".cache" / "vestige" / "torch"]
    made += [made[0].parent, made[0].parent.parent, *made[0].iterdir()]
    assert {path.stat().st_mode & 0o077 for path in made} == {0}
    assert not (place / "relative").exists() and not (place / "~").exists()


def test_a_home_that_is_not_given_is_the_users_own(monkeypatch):
    import pwd

    own = pwd.getpwuid(os.geteuid()).pw_dir
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert torch_build.cache_folders() == [f"{own}/.cache/vestige/torch"]
    for relative in ("~", ".", "cache", ""):
        monkeypatch.setenv("HOME", relative)
        monkeypatch.setenv("XDG_CACHE_HOME", relative)
        assert torch_build.cache_folders() == [f"{own}/.cache/vestige/torch"]
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    assert torch_build.cache_folders() == []


@needs_root
def test_another_users_lock_does_not_hold_up_a_build(tmp_path):
    import fcntl

    lock = tmp_path / "library.so.lock"
    lock.touch()
    os.chown(lock, NOBODY, NOBODY)
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with torch_build._Lock(str(tmp_path / "library.so")):
            pass


RANKS = """
import os, sys, json, time
import torch, torch.distributed as dist
from vestige import profile
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("meeting"), rank=rank, world_size=2)
with profile(output=sys.argv[1], with_stack=False) as prof:
    dist.all_reduce(torch.ones(4))
prof.export_chrome_trace(f"{os.environ['RANK']}.json")
while not all(os.path.exists(f"{other}.json") for other in range(2)):
    time.sleep(0.01)  # who ends breaks the connection of one that has not yet woken up
dist.destroy_process_group()
print("[]")
"""


def test_two_ranks_have_files_of_their_own_and_say_which_they_are(tmp_path):
    env = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-W", "ignore", "-c", RANKS, str(tmp_path / "t.rank{rank}.vst")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(command, env={**env, "RANK": str(rank)}, cwd=tmp_path, **pipes) for rank in range(2)]
    for process in running:
        finish(process)
    assert sorted(path.name for path in tmp_path.glob("*.vst")) == ["t.rank0.vst", "t.rank1.vst"]
    for rank in range(2):
        text = (tmp_path / f"{rank}.json").read_text()
        document = json.loads(text)
        info = document["distributedInfo"]
        assert (info["rank"], info["world_size"], info["backend"]) == (rank, 2, "gloo")
        names = {e["name"] for e in document["traceEvents"] if e.get("cat") in ("cpu_op", "user_annotation")}
        assert any("allreduce" in name or "all_reduce" in name for name in names), names
