"""The metadata of a recording: where it comes from, what a program adds, and the costs of recording."""

from __future__ import annotations

import os
import sys

from vestige.render import quote

from .ranks import distributed_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

METADATA_STORAGE = "vestige.storage"  # where a recording that is copied was written first


def facts_of(profile: Any) -> dict[str, str]:
    """Returns the facts that every trace has about its origin."""
    script = sys.argv[0] if sys.argv else ""
    name = os.path.basename(script) if script not in ("", "-", "-c") else "python"
    facts = {
        "host_name": quote(os.uname().nodename),
        "vestige.command": "[" + ", ".join(map(quote, sys.orig_argv)) + "]",
        "vestige.engine": quote(profile._session.engine),
        "vestige.process_name": quote(name),
        "vestige.processors": str(len(os.sched_getaffinity(0))),
        "vestige.python": quote(sys.version.split()[0]),
        "vestige.stdlib": quote(os.path.dirname(getattr(os, "__file__", ""))),
    }
    if profile.with_stack:
        facts["with_stack"] = "1"
    if profile.profile_memory:
        facts["profile_memory"] = "1"
    note_costs(profile, facts)
    if profile._options["exceptions"]:
        facts["vestige.exceptions"] = "1"
    if profile._options["waits"] is not None:
        facts["vestige.waits"] = quote(";".join(profile._options["waits"]))
    if profile._options["max_depth"]:
        facts["vestige.max_depth"] = str(profile._options["max_depth"])
    if profile._options["only"] is not None:
        facts["vestige.only"] = "[" + ", ".join(map(quote, profile._options["only"])) + "]"
    distributed = distributed_info(profile._ranks)
    if distributed is not None:
        facts["distributedInfo"] = distributed
    return facts


def note_costs(profile: Any, facts: dict[str, str]) -> None:
    """Adds the measured costs to the facts of a profile that asks for them, and is about to record."""
    budget = profile._options["budget"]
    if budget is not None:
        from .costs import BUDGET, steering_costs

        profile._session.set_budget(budget, *steering_costs(profile._session_options))
        facts[BUDGET] = repr(float(budget))
    if profile._options["compensate"]:
        from .costs import METADATA, costs_of

        facts[METADATA] = costs_of(profile._session_options, budget is not None)


def note_storage(profile: Any) -> None:
    """Adds the costs that were measured in a recording, once it has ended."""
    if profile._options["compensate"]:
        from .costs import METADATA, add_storage, costs_of

        costs = costs_of(profile._session_options, profile._options["budget"] is not None)
        costs = add_storage(costs, profile._session.storage_ns())
        profile._session.set_metadata(METADATA, costs)


def check_key(key: str) -> None:
    if not isinstance(key, str):
        raise TypeError(f"a metadata key must be a str, not {type(key).__name__}")
    if not key or "\0" in key:
        raise ValueError(f"not a metadata key: {key!r}; it must not be empty or contain NUL")


def check_metadata(key: str, value: str) -> None:
    check_key(key)
    if not isinstance(value, str):
        raise TypeError(f"metadata must be a str of JSON, not {type(value).__name__}")
    check_json(value)


def check_json(text: str) -> str:
    import json

    try:
        json.loads(text, parse_constant=_refuse)
        text.encode()
    except (ValueError, RecursionError) as error:
        raise ValueError(f"add_metadata_json: the value is not JSON: {error}") from None
    return text


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
