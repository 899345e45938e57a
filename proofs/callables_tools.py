"""The calls in C that vestige and other tools record while a function runs, by the names that each tool gives them.

A tool is a function that runs another one and returns the names of the calls in C.
"""

import cProfile
import importlib.util
import json
import os
import pstats
import re
import tempfile
from pathlib import Path

from vestige import _core, profile


def events_of(write):
    """The events with a duration in a file of Chrome's format, which `write` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        write(str(path))
        return [e for e in json.loads(path.read_text())["traceEvents"] if e.get("ph") == "X"]


def recorded(function, engine):
    """The spans of vestige, which must have used this engine."""
    with profile(engine=engine, gc=False) as prof:
        function()
    if prof._session.engine not in (engine, _core.engines[0]):
        raise RuntimeError(f"recorded by {prof._session.engine}")
    return events_of(prof.export_chrome_trace)


def by_cprofile(function):
    prof = cProfile.Profile()
    prof.runcall(function)
    return {name for (file, _, name) in pstats.Stats(prof).stats if file == "~" and "Profiler" not in name}


def by_viztracer(function):
    from viztracer import VizTracer

    tracer = VizTracer(verbose=0)
    tracer.start()
    function()
    tracer.stop()
    names = {event["name"] for event in events_of(tracer.save)}
    return {name for name in names if not re.search(r" \(.*:\d+\)$", name)}  # as a function in Python is called


def by_torch(function):
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch would report every start
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as torch_profile

    with torch_profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
        function()
    names = {event["name"] for event in events_of(prof.export_chrome_trace) if event.get("cat") == "python_function"}
    return {name for name in names if name.startswith("<")}


def tools():
    """Returns {name: tool} of those that load quickly and are installed."""
    return {"cProfile": by_cprofile} | ({"VizTracer": by_viztracer} if importlib.util.find_spec("viztracer") else {})


def called(shown):
    """The name of a function or class in the way that a tool shows a call of it: `append` in `<method 'append' of 'list'
    objects>`, `<built-in method append of list object at 0x7f>` and `list.append`.
    """
    words = re.findall(r"[\w.]+", shown.replace("built-in", ""))
    kinds = ("method", "function", "type")
    return next((word for word in words if word not in kinds), "").rpartition(".")[2]


def called_by(tool, function):
    """The names of all calls in C that the tool records."""
    return sorted({called(shown) for shown in tool(function)})
