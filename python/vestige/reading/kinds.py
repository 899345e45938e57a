"""The kinds of things that a trace names. The list comes from the core (vst_definition_kind_name).

Tables, queries and the viewer use the core's names. JSON and CSV of `vestige report` write "c" instead of "native",
because files with either word already exist.
"""

from __future__ import annotations

from vestige._core import kind_names

PYTHON, NATIVE, ANNOTATION, GC, INSTANT, COUNTER, OPERATOR, MODULE = map(
    kind_names.index, ("python", "native", "annotation", "gc", "instant", "counter", "operator", "module")
)
NAMES = dict(enumerate(kind_names[1:], 1))
REPORT_NAMES = {**NAMES, NATIVE: "c"}
