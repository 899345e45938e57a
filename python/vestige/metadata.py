"""What may be a key or a value of a trace's metadata."""

from __future__ import annotations


def check_key(key: str) -> None:
    if not isinstance(key, str):
        raise TypeError(f"a metadata key must be a str, not {type(key).__name__}")
    if not key or "\0" in key:
        raise ValueError(f"not a metadata key: {key!r}")


def check_metadata(key: str, value: str) -> None:
    check_key(key)
    if not isinstance(value, str):
        raise TypeError(f"metadata must be a str of JSON, not {type(value).__name__}")
    check_json(value)


def check_json(text: str) -> str:
    import json

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        json.loads(text, parse_constant=refuse)
        text.encode()
    except (ValueError, RecursionError) as error:
        raise ValueError(f"add_metadata_json: the value is not JSON: {error}") from None
    return text
