"""_ExperimentalConfig: torch.profiler's unstable options, and which of them have an effect here."""

from __future__ import annotations

import warnings

from vestige import torch as torch_api

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FIELDS: dict[str, object] = {  # in the order in which torch pickles them
    "profiler_metrics": (),
    "profiler_measure_per_kernel": False,
    "verbose": False,
    "performance_events": (),
    "enable_cuda_sync_events": False,
    "adjust_profiler_step": False,
    "disable_external_correlation": False,
    "profile_all_threads": False,
    "capture_overload_names": False,
    "record_python_gc_info": False,
    "expose_kineto_event_metadata": False,
    "custom_profiler_config": "",
    "adjust_timestamps": False,
    "trace_only": False,
}
MEANT = (  # options with an effect; the others concern devices
    "verbose",
    "adjust_profiler_step",
    "profile_all_threads",
    "capture_overload_names",
    "record_python_gc_info",
    "expose_kineto_event_metadata",
    "adjust_timestamps",
    "trace_only",
)

_warned = False


class _ExperimentalConfig:
    """torch.profiler's experimental options.

    verbose                 tables show Python functions as well as operators
    adjust_profiler_step    a step that began before the call in which it ends is drawn from the start of that call
    profile_all_threads     accepted: all threads are recorded anyway
    capture_overload_names  operators have their overload's name
    record_python_gc_info   garbage collections are recorded, also where install() has set torch's defaults
    expose_kineto_event_metadata  after install(), events have metadata_json
    adjust_timestamps       accepted: a call always lies inside its caller anyway
    trace_only              for export_chrome_trace() only; events() and key_averages() are refused
    """

    def __init__(
        self,
        profiler_metrics: Sequence[str] = (),
        profiler_measure_per_kernel: bool = False,
        verbose: bool = False,
        performance_events: Sequence[str] = (),
        enable_cuda_sync_events: bool = False,
        adjust_profiler_step: bool = False,
        disable_external_correlation: bool = False,
        profile_all_threads: bool = False,
        capture_overload_names: bool = False,
        record_python_gc_info: bool = False,
        expose_kineto_event_metadata: bool = False,
        custom_profiler_config: str = "",
        adjust_timestamps: bool = False,
        trace_only: bool = False,
    ) -> None:
        given = locals()
        for name in FIELDS:
            setattr(self, name, given[name])


def _names(kind: type[Any], count: int) -> list[str]:
    """Returns the names of the fields of torch's config, in the order in which torch pickles them. The class has few
    attributes, but its constructor's docstring names the fields; versions of torch differ.
    """
    import re

    named = re.findall(r"(\w+): [^=,]+ = ", str(kind.__init__.__doc__).partition("->")[0])
    return named if len(named) == count else list(FIELDS)


def check_config(config: Any, with_stack: bool) -> dict[str, Any]:
    """Returns the fields of a config, ours or torch's. One warning names the fields without effect here, unless vestige
    stands in torch's place, because torch does not warn.
    """
    global _warned
    if config is None:
        return {**FIELDS}
    if isinstance(config, _ExperimentalConfig):
        fields = {name: getattr(config, name) for name in FIELDS}
    elif type(config).__name__ == "_ExperimentalConfig" and isinstance(state := config.__getstate__(), tuple):
        fields = {**FIELDS, **dict(zip(_names(type(config), len(state)), state, strict=False))}
    else:
        raise TypeError(f"experimental_config must be an _ExperimentalConfig, not {type(config).__name__}")
    idle = [name for name, value in fields.items() if value and name not in MEANT]
    if idle and not _warned and not torch_api.installed:
        _warned = True
        warnings.warn(f"experimental_config: {', '.join(idle)} have no effect in vestige", stacklevel=4)
    if fields["trace_only"] and with_stack:
        warnings.warn(
            "trace_only=True is incompatible with with_stack=True "
            "(stack traces require event post-processing). Disabling trace_only.",
            stacklevel=4,
        )
        fields["trace_only"] = False
    return fields
