"""The report after a program that ended by os._exit. Another process makes it, because no more code may run in the
program's. The report goes to the program's standard error, which is ours too, so its width and colours are known here.
"""

from __future__ import annotations

import json
import os
import sys

from vestige.recording.standard_error import Draft


def main() -> None:
    _, _, module, name, encoding, facts = sys.argv
    recording = getattr(__import__(module, fromlist=[name]), name).over(json.loads(facts))
    draft = Draft()
    recording.write_report(draft)
    left = draft.text.encode(encoding, "backslashreplace")
    while left:
        left = left[os.write(1, left) :]
