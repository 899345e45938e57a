"""Settings of Sphinx. `make docs` runs build.py, which runs Sphinx."""

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))

from pygments.lexers.special import TextLexer  # noqa: E402
from site_pages import pages  # noqa: E402

import vestige  # noqa: E402

project = "vestige"
author = "the vestige authors"
copyright = "the vestige authors"
release = version = vestige.__version__

extensions = ["myst_parser"]
exclude_patterns = ["requirements.txt"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
nitpicky = True
smartquotes = False  # keep `--option` in plain text unchanged
highlight_language = "none"
pygments_style = "friendly"
pygments_dark_style = "monokai"

html_theme = "furo"
html_title = f"vestige {release}"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_permalinks_icon = "#"


def setup(app):
    app.add_lexer("ipython", TextLexer)  # Pygments marks a magic command as an error
    app.connect("source-read", lambda app, docname, source: pages.complete(Path(app.srcdir), docname, source))
