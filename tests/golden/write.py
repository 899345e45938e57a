"""Writes anew what the commands say of the golden traces. The traces themselves are never written.

    python tests/golden/write.py            what people read (human/): after a layout was changed on purpose
    python tests/golden/write.py --machine  what programs read (machine/): only where a result was added, or a format
                                            was changed on purpose; old results must stay right. Needs DuckDB

Look at `git diff tests/golden` afterwards: every line of it is something that users will see.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import golden


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", action="store_true", help="the results that programs read, instead")
    options = parser.parse_args()
    kind = "human"
    if options.machine:
        import duckdb  # noqa: F401 # or half of the results would be missing

        kind = "machine"
    shutil.rmtree(golden.FOLDER / kind, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        work = golden.Workplace(folder)
        for name in golden.NAMES[::-1]:  # plain after packed, which shares its results
            for result, ask in golden.results(kind, name):
                golden.save(kind, name, result, ask(work))


if __name__ == "__main__":
    main()
