"""The hash by which a page's Content-Security-Policy allows a script or a style that is part of the page."""

from __future__ import annotations

import base64
import hashlib


def content_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
