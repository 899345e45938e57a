"""A recording that was stopped twice and went on: as the first argument, the trace to write."""

import sys

import vestige


def leaf(n):
    return abs(n)


def work(times):
    for n in range(times):
        leaf(n)


profile = vestige.profile(output=sys.argv[1])
for window in (1, 2, 3):
    profile.start()
    work(window)
    profile.stop()
    work(1000)
profile.add_metadata_json("golden", '{"nested": [1, 2, {"deep": null}]}')
profile.start()
profile.stop()
