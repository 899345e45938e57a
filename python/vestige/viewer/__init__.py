"""The viewer: a page in the browser that shows traces of any size, and the server for the page. `server.py` has the
transport and checks who may ask, `api.py` has the requests, `traces.py` the open traces and their indexes, `exports.py`
files for other viewers, `sources.py` lines of source code, `pages.py` the page's own files, `embed.py` a trace as data
inside a page. Everything computed from records is computed in C (`vestige._core.View`).
"""
