"""torch's memory visualiser reads the files that `vestige memory-report` writes for it."""

import os

import pytest


def test_torchs_memory_visualiser_reads_the_pickle(workplace):
    pytest.importorskip("torch", reason="the visualiser is part of torch")
    workplace.write("app.py", "keep = [bytes(5000) for _ in range(30)]\nfor _ in range(20):\n    bytes(4000)\n")
    workplace.vestige("memory", "-q", "-o", "m.vst", "app.py")
    assert workplace.vestige("memory-report", "m.vst", "-o", "m.pickle").returncode == 0
    script = workplace.write(".cache/flamegraph.pl", "#!/bin/sh\ncat\n")
    script.chmod(0o755)
    commands = [
        ["stats"],
        ["trace"],
        ["segments", "-o", "segments.svg"],
        ["memory", "-o", "memory.svg"],
        ["trace_plot", "-o", "trace.html"],
        ["segment_plot", "-o", "state.html"],
    ]
    program = (
        "import runpy, sys\n"
        f"for command in {commands!r}:\n"
        "    sys.argv = ['_memory_viz', command[0], 'm.pickle', *command[1:]]\n"
        "    runpy.run_module('torch.cuda._memory_viz', run_name='__main__')\n"
    )
    environment = {**os.environ, "HOME": str(workplace.path)}
    result = workplace.python("-W", "ignore", "-c", program, env=environment, timeout=300)
    assert result.returncode == 0, result.stderr
    assert "total_allocated" in result.stdout
    assert "active_allocated;app.py:1:" in (workplace.path / "memory.svg").read_text()
    assert (workplace.path / "trace.html").stat().st_size > 1000
