"""Checks the entries of other_builds.txt for debug builds and for Pythons that check themselves."""

import subprocess
import sys

import pytest

import other_builds

ALONE = """
import sys, greenlet

def child():
    greenlet.getcurrent().parent.switch()

sys.monitoring.use_tool_id(3, "alone")
sys.monitoring.set_events(3, sys.monitoring.events.CALL)
one = greenlet.greenlet(child)
one.switch()
sys.monitoring.set_events(3, 0)
one.switch()
"""


def test_every_name_is_that_of_a_test():
    for line in other_builds.LIST.read_text().splitlines():
        if line and not line.startswith("# "):
            file, _, name = line.partition("::")
            assert f"def {name.partition('[')[0]}" in other_builds.LIST.with_name(file).read_text(), line


@pytest.mark.skipif(not other_builds.HERE["debug"], reason="this is no debug build")
def test_info_says_why_turbo_does_not_record_on_a_debug_build(workplace):
    why = "  not turbo: this is a debug build of Python; vestige records with the safe engine\n"
    assert why in workplace.vestige("info").stdout
    asked = workplace.trace("--engine", "turbo", "-c", "len('a')")
    assert "engine turbo is not usable here: this is a debug build of Python" in asked.stderr
    assert why in workplace.vestige("info", "t.vst").stdout


@pytest.mark.skipif(not other_builds.HERE["debug"], reason="this is no debug build")
def test_a_greenlet_that_waits_while_events_end_aborts_without_us_too():
    pytest.importorskip("greenlet")
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=60)
    assert done.returncode == -6
    assert "debug_check_sanity" in done.stderr
