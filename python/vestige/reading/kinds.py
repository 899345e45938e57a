"""What kinds of things a trace names. The list is the core's (vst_definition_kind_name); Python has no other.

Tables, queries and the viewer have the core's names. JSON and CSV of `vestige report` say "c" where those say "native":
both were written into files that others read before there was one list, so both stay.
"""

from __future__ import annotations

from vestige._core import kind_names

PYTHON, NATIVE, ANNOTATION, GC, INSTANT, COUNTER, OPERATOR, MODULE = map(
    kind_names.index, ("python", "native", "annotation", "gc", "instant", "counter", "operator", "module")
)
NAMES = dict(enumerate(kind_names[1:], 1))
REPORT_NAMES = {**NAMES, NATIVE: "c"}
