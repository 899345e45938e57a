"""`vestige mcp` through the client of the package mcp, over stdio: an agent finds each planted cause in three calls."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

anyio = pytest.importorskip("anyio")
pytest.importorskip("mcp")

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from vestige.cli.mcp.bounded import tokens

MOST = 4000  # tokens of an answer
READING = ["list_traces", "findings", "tree", "functions", "ask", "sql", "compare", "source"]


def talk(folder, questions, *flags):
    """Returns the server's answers to (tool, arguments), and its tools; an error is an answer that begins with
    `error:`.
    """

    async def main():
        server = StdioServerParameters(command=sys.executable, args=["-m", "vestige", "mcp", str(folder), *flags])
        async with Client(stdio_client(server)) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            answers = []
            for tool, arguments in questions:
                result = await client.call_tool(tool, arguments)
                [content] = result.content
                assert result.structured_content is None  # would repeat the text
                answers.append(f"error: {content.text}" if result.is_error else content.text)
            return names, answers

    return anyio.run(main)


# For each program: the kind of its finding, a function to examine, and words that its tree or source must show.
PROGRAMS = Path(__file__).parents[1] / "python" / "planted"
PLANTED = {
    "import_that_sleeps": ("imports", "start", "import slow_to_import"),
    "import_deep_inside": ("imports", "import outer_package", "outer_package.heavy"),
    "poll": ("waiting", "poll", "time.sleep(0.05)"),
    "child_process": ("waiting", "build", "subprocess.run"),
    "collects": ("garbage collection", "churn", "gc.collect()"),
    "one_request_each": ("many requests", "fetch", "time.sleep(0.0002)"),
    "one_query_each": ("many requests", "load_orders", "database.execute(QUERY)"),
    "tiny_function": ("short calls", "loop", "tiny(i)"),
    "tiny_method": ("short calls", "collect", "text.split()"),
    "blocks_the_loop": ("blocked loop", "handler", "time.sleep(0.2)"),
    "asks_again": ("same arguments", "answer", 'lookup("the same")'),
}


@pytest.fixture(scope="module")
def conversation(tmp_path_factory):
    """Returns the answers about each planted program, in three calls; one server answers all."""
    folder = tmp_path_factory.mktemp("planted")
    shutil.copytree(PROGRAMS, folder, dirs_exist_ok=True)
    questions = []
    for name, (_, function, _) in PLANTED.items():
        more = {"record_args": ["lookup"]} if name == "asks_again" else {}
        questions += [
            (
                "record_command",
                {"command": [f"{name}.py"], "name": name, "max_tokens": MOST, "timeout_seconds": 600, **more},
            ),
            ("tree", {"trace": f"{name}.vst", "function": function, "max_tokens": MOST}),
            ("source", {"trace": f"{name}.vst", "place": function, "max_tokens": MOST}),
        ]
    names, answers = talk(folder, questions, "--allow-record")
    assert names == [*READING, "record_command"]
    return {name: answers[3 * number : 3 * number + 3] for number, name in enumerate(PLANTED)}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_cause_is_reached_in_three_calls(conversation, planted):
    kind, function, cause = PLANTED[planted]
    recorded, below, shown = conversation[planted]
    assert max(map(tokens, (recorded, below, shown))) <= MOST
    assert "ended with exit code 0" in recorded
    assert any(f". [{kind}] " in line for line in recorded.splitlines())
    assert function.removeprefix("import ") in recorded
    assert "called from: " in below
    assert cause in shown or cause in below


def test_without_the_flag_nothing_is_run(tmp_path):
    (tmp_path / "program.py").write_text("open('it-ran', 'w')")
    names, answers = talk(tmp_path, [("record_command", {"command": ["program.py"]}), ("list_traces", {})])
    assert names == READING
    assert answers[0].startswith("error: ") and answers[1] == "there is no trace in the folder yet"
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


def test_the_server_ends_with_its_input(tmp_path):
    command = [sys.executable, "-m", "vestige", "mcp", str(tmp_path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_arguments_that_a_tool_does_not_take_are_refused_in_a_line(tmp_path):
    (tmp_path / "program.py").write_text("pass")
    recorded = ("record_command", {"command": ["program.py"], "name": "t", "timeout_seconds": 600})
    wrong = [
        ("sql", {"query": "select 1", "traces": ["t.vst"]}, "'traces' was unexpected"),
        ("findings", {"which": "t.vst"}, "'which' was unexpected"),
        ("functions", {"sort": "speed"}, "sort: 'speed' is not one of"),
        ("ask", {"question": "slowest"}, "question: 'slowest' is not one of"),
        ("compare", {"trace": ["t.vst"]}, "trace: ['t.vst'] is too short"),
        ("tree", {"max_tokens": 7}, "max_tokens: 7 is less than the minimum of 100"),
        ("source", {}, "'place' is a required property"),
        (
            "record_command",
            {"command": ["program.py"], "timeout_seconds": "nan"},
            "timeout_seconds: 'nan' is not of type",
        ),
        (
            "record_command",
            {"command": ["program.py"], "timeout_seconds": 1e9},
            "timeout_seconds: 1000000000.0 is greater",
        ),
        ("record_command", {"command": ["-o", "/tmp/x.vst", "program.py"]}, "-o is no program"),
        ("record_command", {"command": ["program.py"], "options": ["--force"]}, "'options' was unexpected"),
    ]
    answers = talk(tmp_path, [recorded, *(each[:2] for each in wrong)], "--allow-record")[1]
    assert answers[0].startswith("t.vst is the trace; ")
    for (tool, _, said), answer in zip(wrong, answers[1:], strict=True):
        assert answer.startswith("error: ") and said in answer and "\n" not in answer, (tool, answer)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py", "t.vst"]


def test_a_query_is_about_the_trace_that_it_names(tmp_path):
    (tmp_path / "program.py").write_text("def once(): pass\nonce()")
    commands = [("record_command", {"command": ["program.py"], "name": name, "timeout_seconds": 600}) for name in "ab"]
    query = {"query": "select count(*) as calls from span where name like '%once'", "trace": "a.vst"}
    both = {**query, "trace": ["a.vst", "b.vst"]}
    answers = talk(tmp_path, [*commands, ("sql", query), ("sql", both)], "--allow-record")[1]
    assert answers[2:] == ["a.vst\ncalls\n1", "a.vst, b.vst\ncalls\n2"]


def test_failures_are_one_line_and_the_server_goes_on(tmp_path):
    (tmp_path / "torn.vst").write_bytes(b"no trace at all")
    _, answers = talk(
        tmp_path,
        [
            ("tree", {}),
            ("tree", {"trace": "torn.vst"}),
            ("source", {"place": "/etc/passwd:1"}),
            ("functions", {"trace": "../../x.vst"}),
            ("tree", {"max_tokens": "many"}),
            ("list_traces", {}),
        ],
    )
    assert all(answer.startswith("error: ") for answer in answers[:-1])
    assert "there is no trace in the folder yet" in answers[0]
    assert "not a vestige trace" in answers[1]
    assert "outside of the folder" in answers[2] and "outside of the folder" in answers[3]
    assert answers[-1] == "there is no trace in the folder yet"
