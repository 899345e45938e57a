"""The objects of the event tree: subclasses of torch's classes, with values that we have read. Only C++ code can make
objects of torch's classes. Ours inherit from them, so that isinstance() and torch's modules recognize them, and hold
their values themselves. Loaded only if torch is.
"""

from __future__ import annotations

import torch
from torch._C import _profiler as theirs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DTYPES = (  # in the order of torch's numbers
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 qint32 "
    "bfloat16 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz "
    "float8_e4m3fnuz uint16 uint32 uint64 uint1 uint2 uint3 uint4 uint5 uint6 uint7 int1 int2 int3 int4 int5 int6 int7 "
    "float8_e8m0fnu float4_e2m1fn_x2"
).split()
LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "_mkldnn", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")
DEVICES = {0: "cpu", 1: "cuda", 3: "opengl", 4: "opencl", 5: "ideep", 6: "hip", 7: "fpga", 8: "maia", 9: "xla"}
DEVICES |= {10: "vulkan", 11: "metal", 12: "xpu", 13: "mps", 14: "meta", 15: "hpu", 16: "ve", 17: "lazy", 18: "ipu"}
DEVICES |= {19: "mtia", 20: "privateuseone"}
REQUIRES_GRAD = 1

_devices: dict[tuple[int, int], Any] = {}


class Made:
    """Makes objects without torch's constructors, because there are none."""

    __slots__ = ()

    @classmethod
    def make(cls, **values: Any) -> Any:
        made = cls.__new__(cls)
        for name, value in values.items():
            setattr(made, name, value)
        return made

    def __repr__(self) -> str:
        names: list[str] = [name for name in getattr(self, "__slots__", ()) if name[0] != "_"]
        values = ", ".join(f"{name}={getattr(self, name, None)!r}" for name in names)
        return f"{type(self).__name__}({values})"


def dtype_of(number: int) -> Any:
    """Returns None for a type that this torch does not have."""
    return getattr(torch, DTYPES[number], None) if number < len(DTYPES) else None


def device_of(kind: int, index: int) -> Any:
    if (kind, index) not in _devices:
        name = DEVICES.get(kind, "cpu")
        _devices[kind, index] = torch.device(name) if index < 0 else torch.device(name, index)
    return _devices[kind, index]


class TensorMetadata(Made, theirs._TensorMetadata):  # type: ignore[misc]
    """A tensor at the moment when an operator or a call received it."""

    __slots__ = (
        *("_allocation_id", "_id", "_numbers", "device", "dtype", "impl_ptr", "layout", "requires_grad", "sizes"),
        *("storage_data_ptr", "strides"),
    )
    _id: int | None
    _allocation_id: int | None
    _numbers: Any

    @classmethod
    def of(cls, numbers: Any, place: list[int], sizes: list[int], strides: list[int]) -> Any:
        impl, storage, layout, kind, flags, elements, index = place
        name = LAYOUTS[layout] if layout < len(LAYOUTS) else "strided"
        return cls.make(
            impl_ptr=impl,
            storage_data_ptr=storage,
            layout=getattr(torch, name),
            device=device_of(kind, index),
            requires_grad=bool(flags & REQUIRES_GRAD),
            dtype=dtype_of(elements),
            sizes=sizes,
            strides=strides,
            _numbers=numbers,
            _id=None,
            _allocation_id=None,
        )

    @property
    def dim(self) -> int:
        return len(self.sizes)

    @property
    def id(self) -> int | None:
        """An id that all tensors have which share memory, or once shared it."""
        self._numbers()
        return self._id

    @id.setter
    def id(self, number: int) -> None:
        self._id = number

    @property
    def allocation_id(self) -> int | None:
        """The number of the tensor's memory."""
        if self._allocation_id is None:
            self._numbers()
        return self._allocation_id

    @allocation_id.setter
    def allocation_id(self, number: int) -> None:
        self._allocation_id = number


class TorchOp(Made, theirs._ExtraFields_TorchOp):  # type: ignore[misc]
    __slots__ = ("_inputs", "allow_tf32_cublas", "name", "scope", "sequence_number")
    _inputs: Any

    @property
    def inputs(self) -> list[Any]:
        """Tensors, lists of tensors, and numbers; None for anything else. Read on first use."""
        if callable(self._inputs):
            self._inputs = self._inputs()
        return list(self._inputs)


class Allocation(Made, theirs._ExtraFields_Allocation):  # type: ignore[misc]
    __slots__ = ("_allocation_id", "_id", "_numbers", "alloc_size", "device", "ptr", "total_allocated")
    total_reserved = 0
    id, allocation_id = TensorMetadata.id, TensorMetadata.allocation_id


class PyFrameState(Made, theirs._PyFrameState):  # type: ignore[misc]
    __slots__ = ("file_name", "function_name", "line_number")


class NNModuleInfo(Made, theirs._NNModuleInfo):  # type: ignore[misc]
    __slots__ = ("cls_name", "cls_ptr", "parameters", "self_ptr")


class OptimizerInfo(Made, theirs._OptimizerInfo):  # type: ignore[misc]
    __slots__ = ("parameters", "self_ptr")


class PyCall(Made, theirs._ExtraFields_PyCall):  # type: ignore[misc]
    __slots__ = ("caller", "callsite", "module", "optimizer")


class PyCCall(Made, theirs._ExtraFields_PyCCall):  # type: ignore[misc]
    __slots__ = ("caller",)


class Kineto(Made, theirs._ExtraFields_Kineto):  # type: ignore[misc]
    __slots__ = ()


class Node(Made, theirs._ProfilerEvent):  # type: ignore[misc]
    """One event of the tree."""

    __slots__ = (
        *("children", "correlation_id", "end_time_ns", "extra_fields", "name", "overload_name", "parent", "start_tid"),
        *("start_time_ns", "tag"),
    )

    @property
    def typed(self) -> tuple[Any, Any]:
        return self.tag, self.extra_fields

    @property
    def id(self) -> int:
        return id(self)

    @property
    def duration_time_ns(self) -> int:
        return self.end_time_ns - self.start_time_ns  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<{self.tag.name} {self.name}>"
