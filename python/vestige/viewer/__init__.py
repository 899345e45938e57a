"""The viewer: a page in the browser that shows traces of any size, and the server that answers it.

`server.py` is the transport and checks who may ask, `api.py` what can be asked, `traces.py` the traces that are open
and their indexes, `exports.py` files for other viewers, `sources.py` lines of source, `pages.py` the page's own files,
`embed.py` a trace as data inside one page. What is computed from records is computed in C (`vestige._core.View`).
"""
