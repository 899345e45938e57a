"""Default values of an event's fields."""

from __future__ import annotations

from .devices import device_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLAIN: dict[str, Any] = {  # default values; functions make a new value for each event
    "node_id": -1,
    "overload_name": None,
    "trace_name": None,
    "fwd_thread": None,
    "kernels": list,
    "count": 1,
    "cpu_children": list,
    "cpu_parent": None,
    "input_shapes": None,
    "concrete_inputs": None,
    "kwinputs": None,
    "stack": None,
    "scope": 0,
    "use_device": None,
    "cpu_memory_usage": 0,
    "device_memory_usage": 0,
    "is_async": False,
    "is_remote": False,
    "sequence_nr": -1,
    "device_type": device_type,
    "device_index": 0,
    "is_legacy": False,
    "flops": None,
    "is_user_annotation": False,
    "is_python_function": False,
    "activity_type": None,
    "self_cpu_percent": -1,
    "total_cpu_percent": -1,
    "total_device_percent": -1,
    "flow_id": None,
    "flow_type": None,
    "flow_start": None,
    "external_id": 0,
    "linked_correlation_id": 0,
    "event_metadata": None,
    "_event_metadata": None,  # torch 2.15 and later have the other name as a property
    "metadata": None,
    "structured_input_shapes": None,
    "structured_input_strides": None,
    "input_dtypes": None,
    "python_id": -1,
    "python_parent_id": -1,
    "python_module_id": -1,
}
