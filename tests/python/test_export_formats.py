"""The list of formats in Python (vestige.reading.exports) agrees with the core's exporters. The command reports the
file that it wrote, and refuses a format that does not fit the file's suffix.
"""

import re
import shutil
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
    # The core writes this format only by name; the command chooses it by the suffix and by the trace's contents.
    expected[EXECUTION_TRACE.name] = []
    assert found == expected


@pytest.fixture
def plain(workplace):
    """A folder with a trace."""
    shutil.copy(Path(__file__).parents[1] / "golden" / "traces" / "plain.vst", workplace.path / "t.vst")
    return workplace


@pytest.mark.parametrize(
    ("words", "file", "opens"),
    [
        ([], "t.json.gz", "ui.perfetto.dev"),
        (["-o", "o.pftrace"], "o.pftrace", "ui.perfetto.dev"),
        (["-o", "o.speedscope.json"], "o.speedscope.json", "speedscope.app"),
        (["--to", "folded-ns"], "t.folded", "flamegraph.pl"),
        (["-o", "o.svg"], "o.svg", "any browser"),
        (["-o", "o.pb.gz"], "o.pb.gz", "pprof"),
        (["--to", "pstats", "-o", "odd name"], "odd name", "pstats"),
        (["--to", "speedscope", "-o", "o.json"], "o.json", "speedscope.app"),
    ],
)
def test_an_export_says_what_it_wrote_and_what_opens_it(plain, words, file, opens):
    done = plain.vestige("export", "t.vst", *words)
    found = re.fullmatch(r"vestige: wrote (.+) \(([\d.]+) (B|KiB|MiB)\); (.+) opens it\n", done.stderr)
    assert (done.returncode, done.stdout) == (0, "") and found is not None, done.stderr
    assert (found[1], found[4]) == (file, opens)
    written = (plain.path / file).stat().st_size / {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[found[3]]
    assert float(found[2]) == pytest.approx(written, rel=0.01)


def test_what_is_no_file_is_not_told_of(plain):
    done = plain.vestige("export", "t.vst", "--to", "folded", "-o", "/dev/stdout", "--force")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.count(" ") > 0


@pytest.mark.parametrize(
    ("format", "file", "line"),
    [
        ("perfetto", "x.json", "the suffix stands for chrome, but --to asks for perfetto, whose files end in .pftrace"),
        ("chrome", "x.svg", "the suffix stands for flamegraph, but --to asks for chrome, whose files end in .json.gz"),
        ("pprof", "x.speedscope.json", "the suffix stands for speedscope, but --to asks for pprof, whose files end in"),
        ("chrome", "x.parquet", "the suffix stands for parquet, but --to asks for chrome, whose files end in .json.gz"),
    ],
)
def test_a_format_that_the_suffix_does_not_stand_for_is_refused(plain, format, file, line):
    done = plain.vestige("export", "t.vst", "--to", format, "-o", file)
    assert done.returncode == 2 and done.stderr.startswith(f"vestige: {file}: {line}")
    assert done.stderr.count("\n") == 1 and not (plain.path / file).exists()
