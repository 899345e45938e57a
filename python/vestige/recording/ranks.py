"""Which process of a distributed program this is, as torch's traces say it ("distributedInfo")."""

from __future__ import annotations

import os
import sys

from vestige.render import quote

LEAST = {"rank": 0, "local_rank": 0, "world_size": 1}


def check_ranks(rank: int | None, local_rank: int | None, world_size: int | None) -> dict[str, int]:
    """Returns the given ranks. Raises if one of them is wrong."""
    given: dict[str, int] = {}
    for name, value in {"rank": rank, "local_rank": local_rank, "world_size": world_size}.items():
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} must be an int, not {type(value).__name__}")
        if value < LEAST[name]:
            raise ValueError(f"{name} must be at least {LEAST[name]}, not {value}")
        given[name] = value
    if "world_size" in given and given.get("rank", 0) >= given["world_size"]:
        raise ValueError(f"rank {given['rank']} is not below world_size, which is {given['world_size']}")
    return given


def distributed_info(given: dict[str, int]) -> str | None:
    """Returns the JSON object; None if no rank is known. Values that were not given come from the environment, if they
    make sense there.
    """
    values = {name: given.get(name, _from_environment(name)) for name in LEAST}
    rank, world_size = values["rank"], values["world_size"]
    if rank is not None and world_size is not None and rank >= world_size:
        if "rank" not in given:
            return None
        world_size = None
    if rank is None:
        return None
    members = {"backend": _backend(), "rank": rank, "world_size": world_size, "local_rank": values["local_rank"]}
    return "{" + ", ".join(f"{quote(name)}: {value}" for name, value in members.items() if value is not None) + "}"


def own_path(path: str, rank: int | None = None) -> str:
    """Returns the file of this process: {rank} in the name becomes the rank, 0 if none is known."""
    rank = _from_environment("rank") if rank is None else rank
    return path.replace("{rank}", str(rank or 0))


def _from_environment(name: str) -> int | None:
    text = os.environ.get(name.upper(), "")
    if not (text.isascii() and text.isdecimal() and len(text) < 10) or int(text) < LEAST[name]:
        return None
    return int(text)


def _backend() -> str | None:
    """Returns JSON if torch.distributed is in use already."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return quote(str(distributed.get_backend()))
    except Exception:
        pass
    return None
