"""Builds the site into build/docs/html, and checks it: `make docs`.

Warnings of Sphinx, dead links, and pages that load anything from the network are errors.
"""

import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))

from site_pages import check  # noqa: E402


def main(out: Path) -> int:
    shutil.rmtree(out, ignore_errors=True)
    html = out / "html"
    strict = ["-W", "--keep-going", "-q", "-E"]
    code = sphinx([*strict, "-b", "html", "-d", str(out / "doctrees"), str(DOCS), str(html)])
    if code:
        return code
    defects = check.defects(html.resolve())
    for line in defects:
        print(line, file=sys.stderr)
    if not defects:
        print(f"the site is built: {html / 'index.html'}")
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS.parent / "build" / "docs"))
