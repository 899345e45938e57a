"""The list of formats in Python (vestige.reading.exports) says what the core's exporters say of themselves."""

import re
from pathlib import Path

import pytest

from vestige.reading.exports import EXECUTION_TRACE, FORMATS

pytestmark = pytest.mark.any_python
SOURCES = Path(__file__).parents[2] / "src" / "export"
EXPORTER = re.compile(r'vst__exporter vst__exporter_\w+ = \{\s*(?:\.name = )?"([\w-]+)",\s*(?:"([^"]*)")?')


def test_the_core_has_the_same_formats_for_the_same_suffixes():
    found = {}
    for file in SOURCES.rglob("*.c"):
        found.update((name, suffixes.split()) for name, suffixes in EXPORTER.findall(file.read_text()))
    expected = {each.name: each.patterns for each in FORMATS.values() if each.writer == "core"}
    # The core writes it only by name; the command line chooses it by suffix, and from what the trace holds.
    expected[EXECUTION_TRACE.name] = []
    assert found == expected
