"""Runs `vestige diff` in the process of the tests."""

import sys

from vestige import cli


def diff_in(folder, monkeypatch, capsys):
    """Returns a function that compares traces of a folder, expects an exit code, and returns both outputs."""
    monkeypatch.chdir(folder)

    def run(*words, code=0):
        """Returns the outputs on stdout and on stderr."""
        try:
            got = cli._dispatch(["diff", *words])
        except cli.Failure as failure:
            print(f"vestige: {failure}", file=sys.stderr)
            got = failure.code
        out, err = capsys.readouterr()
        assert got == code, out + err
        return out, err

    return run
