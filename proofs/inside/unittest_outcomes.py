"""Runs one module of CPython's own tests and writes the outcome of each test: unittest_outcomes.py FILE MODULE

It prepares what test.regrtest prepares, then runs the module with a result of our own; each test is a line of JSON in
FILE as soon as it is over, so that a crash leaves those before it. The same program runs bare and traced.
"""

from __future__ import annotations

import ctypes  # noqa: F401 - hooks.py needs it, so it is loaded in all ways
import faulthandler
import importlib
import json
import os
import sys
import unittest
from collections import Counter


class Outcomes(unittest.TestResult):
    """Keeps all outcomes of a test with subtests, with how many of each there were."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._process = os.getpid()
        self._seen: Counter[str] = Counter()  # some tests share a name
        self._events: Counter[str] = Counter()
        self._why = ""
        self.all_good = True

    def startTest(self, test):
        super().startTest(test)
        self._events.clear()
        self._why = ""

    def stopTest(self, test):
        super().stopTest(test)
        self._write(test.id(), self._events or Counter(["ok"]), self._why)

    def _write(self, name: str, events: Counter[str], why: str) -> None:
        if os.getpid() != self._process:
            return  # a forked child in which a test continues
        self._seen[name] += 1
        if self._seen[name] > 1:
            name += f" #{self._seen[name]}"
        outcome = ", ".join(kind + (f" x{n}" if n > 1 else "") for kind, n in sorted(events.items()))
        line = json.dumps([name, outcome, why]) + "\n"
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, line.encode())
        os.close(file)

    def _add(self, test, kind: str, why: str = "") -> None:
        self._why = self._why or why
        self.all_good = self.all_good and kind not in ("fail", "error", "unexpected success")
        if isinstance(test, unittest.TestCase) or hasattr(test, "test_case"):
            self._events[kind] += 1
        else:  # a fixture of a module or class
            self._write(test.id(), Counter([kind]), why)

    def addSuccess(self, test):
        pass

    def addFailure(self, test, error):
        self._add(test, "fail", self._told(error))

    def addError(self, test, error):
        self._add(test, "error", self._told(error))

    def addSkip(self, test, reason):
        self._add(test, "skip", reason)

    def addExpectedFailure(self, test, error):
        self._add(test, "expected failure")

    def addUnexpectedSuccess(self, test):
        self._add(test, "unexpected success")

    def addSubTest(self, test, subtest, error):
        if error is not None:
            kind = "fail" if issubclass(error[0], test.failureException) else "error"
            self._add(test, kind, f"{subtest._subDescription()}: {self._told(error)}")

    def _told(self, error) -> str:
        import traceback

        try:
            return "".join(traceback.format_exception(*error))[-4000:]
        except Exception as trouble:
            return f"{error[0].__name__}, which cannot be told: {trouble!r}"


def prepare() -> None:
    """The defaults of test.regrtest: no network, no large files, no long tests."""
    from test import support

    support.use_resources = ()
    support.verbose = 0
    sys.unraisablehook = lambda trouble: None  # these are warnings in test.regrtest, too
    faulthandler.enable(all_threads=True)
    if os.environ.get("PROOF_SETPROFILE"):
        import threading

        threading.setprofile(ignore)
        sys.setprofile(ignore)


def ignore(frame, event, argument):
    """A profile function that does nothing, to show the effects of any profiler."""


def run(name: str, result: Outcomes) -> None:
    try:
        module = importlib.import_module(f"test.{name}")
    except unittest.SkipTest as error:
        result._write(f"test.{name}", Counter(["skip"]), str(error))
        return
    loader = unittest.TestLoader()
    if hasattr(module, "test_main") and not hasattr(module, "load_tests"):
        from test import support

        place = support if hasattr(support, "_run_suite") else importlib.import_module("test.libregrtest.single")
        place._run_suite = lambda suite: suite.run(result)
        module.test_main()
    else:
        suite = loader.loadTestsFromModule(module)
        for error in loader.errors:
            raise ImportError(error)
        suite.run(result)


def main() -> int:
    path, name = sys.argv[1:]
    sys.argv[1:] = []
    prepare()
    result = Outcomes(path)
    run(name, result)
    return 0 if result.all_good else 1


if __name__ == "__main__":
    sys.exit(main())
