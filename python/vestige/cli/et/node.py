"""Checks a single node of an execution trace: its fields, its ten attributes, and whether values, shapes, types and
strides agree. graph.py checks the connections between nodes.
"""

from __future__ import annotations

from vestige.reading.metadata import load_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Say = Callable[[str], None]

PROCESS = "[pytorch|profiler|execution_trace|process]"
THREAD = "[pytorch|profiler|execution_trace|thread]"
UNSIGNED = 1 << 64
SIGNED = 1 << 63
EXTENT_MAX = 1 << 47  # bytes that a process can address
ATTRIBUTES = (
    ("rf_id", "uint64"),
    ("fw_parent", "uint64"),
    ("seq_id", "int64"),
    ("scope", "uint64"),
    ("tid", "uint64"),
    ("fw_tid", "uint64"),
    ("op_schema", "string"),
    ("kernel_backend", "string"),
    ("kernel_file", "string"),
    ("tensor_range", "string"),
)
ORDER = [name for name, _ in ATTRIBUTES]
TYPES = [kind for _, kind in ATTRIBUTES]
SCOPES = 10  # at::RecordScope
USER = 7
SIDES = ("inputs", "outputs")
PARTS = ("values", "shapes", "types", "strides")
ITEMSIZES = {
    "float": 4, "double": 8, "long int": 8, "long": 8, "int": 4, "short int": 2, "short": 2, "signed char": 1,
    "unsigned char": 1, "bool": 1, "c10::Half": 2, "c10::BFloat16": 2, "c10::complex<float>": 8,
    "c10::complex<double>": 16, "c10::complex<c10::Half>": 4, "c10::quint8": 1, "c10::qint8": 1, "c10::qint32": 4,
    "unsigned short": 2, "unsigned int": 4, "unsigned long": 8,
}  # fmt: skip
# Operators whose output lies inside their input. (The output of as_strided may reach beyond its input.)
VIEWS = frozenset(
    f"aten::{name}"
    for name in (
        "alias detach diagonal expand expand_as movedim narrow permute select slice split split_with_sizes squeeze t "
        "transpose unbind unfold unsqueeze view view_as view_as_complex view_as_real"
    ).split()
)
NO_STORAGE = [0, 0, 0, 0, ""]
DOUBLES = ("inf", "-inf", "nan")


class Facts:
    """The facts about a node that graph.py needs."""

    __slots__ = ("fw_parent", "id", "name", "parent", "rf_id", "scope", "tid")

    def __init__(self, number: int, name: str, parent: int, values: list[Any]) -> None:
        self.id = number
        self.name = name
        self.parent = parent
        self.rf_id, self.fw_parent, _, self.scope, self.tid = values[:5]


def check_node(node: Any, say: Say, identities: set[int]) -> Facts | None:
    """Calls `say` for each defect of a node, and adds the ids of its tensors and storages to `identities`. Returns None
    if the node has no usable number, name, parent or attributes.
    """
    if type(node) is not dict:
        say(f"is {_kind(node)}, not an object")
        return None
    number: Any = node.get("id")
    name: Any = node.get("name")
    parent: Any = node.get("ctrl_deps")
    sound = _is_field(node, "id", _unsigned(number), "an unsigned integer", say)
    sound &= _is_field(node, "name", type(name) is str, "a string", say)
    sound &= _is_field(node, "ctrl_deps", _unsigned(parent), "an unsigned integer", say)
    if type(name) is str and "\uffff" in name:
        say("name contains U+FFFF: text was damaged when it was written")
    attributes = _check_attributes(node, say)
    tensors = [_check_side(node, side, say) for side in SIDES]
    for side in tensors:
        for tensor in side:
            identities.add(tensor[0])
            identities.add(tensor[1])
    if tensors[0] and tensors[1] and type(name) is str and name in VIEWS:
        _check_view(tensors[0][0], tensors[1], say)
    if attributes is None or not sound:
        return None
    if attributes[9]:
        _check_range(attributes[9], node.get("inputs"), say)
    return Facts(number, name, parent, attributes)


def _unsigned(value: Any) -> bool:
    return type(value) is int and 0 <= value < UNSIGNED


def _is_field(node: dict[str, Any], name: str, good: bool, wanted: str, say: Say) -> bool:
    if not good:
        say(f"{name} is {_kind(node[name])}, not {wanted}" if name in node else f"has no {name}")
    return good


def _kind(value: Any) -> str:
    if type(value) is int:
        return str(value) if abs(value) < UNSIGNED * UNSIGNED else "a large number"
    names = {str: "a string", float: "a fraction", bool: "a boolean", list: "an array", dict: "an object"}
    return names.get(type(value), "null")


# ---- attributes ----------------------------------------------------------


def _check_attributes(node: dict[str, Any], say: Say) -> list[Any] | None:
    """Returns the attributes' values, in order; None if they are missing. More attributes may follow the ten."""
    attributes: Any = node.get("attrs")
    if not _is_field(node, "attrs", type(attributes) is list, "an array", say):
        return None
    try:
        names = [attribute["name"] for attribute in attributes]
        kinds = [attribute["type"] for attribute in attributes]
        values = [attribute["value"] for attribute in attributes]
    except (KeyError, TypeError):
        say("an attribute is not an object of name, type and value")
        return None
    if names != ORDER and names[:10] != ORDER:
        missing = [name for name in ORDER if name not in names]
        found = ", ".join(map(str, names[:10]))
        say(f"has no attribute {missing[0]}" if missing else f"attributes are not in their order: {found}")
        return None
    if kinds != TYPES and kinds[:10] != TYPES:
        for name, kind, wanted in zip(names, kinds, TYPES):
            if kind != wanted:
                say(f"{name} has type {kind}, not {wanted}")
    sound = True
    for name, value, wanted in zip(ORDER, values, TYPES):
        good = type(value) is str if wanted == "string" else type(value) is int
        if good and wanted != "string":
            good = 0 <= value < UNSIGNED if wanted == "uint64" else -1 <= value < SIGNED
        if not good:
            wanted = {"uint64": "an unsigned integer", "int64": "an integer of at least -1"}.get(wanted, "a string")
            say(f"{name} is {_kind(value)}, not {wanted}")
            sound = False
    if sound and values[3] >= SCOPES:
        say(f"scope {values[3]} does not exist")
    return values if sound else None


def _check_range(text: str, inputs: Any, say: Say) -> None:
    """Checks tensor_range, such as `{"0":[1,4]}`: the least and the largest value of integral inputs."""
    try:
        ranges = load_json(text)
        good = all(
            int(index) < len(inputs["values"]) and len(pair) == 2 and pair[0] <= pair[1]
            for index, pair in ranges.items()
        )
    except (KeyError, ValueError, TypeError, AttributeError):
        good = False
    if not good:
        say(f"tensor_range {text[:60]!r} does not have the ranges of its inputs")


# ---- values --------------------------------------------------------------


def _check_side(node: dict[str, Any], side: str, say: Say) -> list[Any]:
    """Returns the tensors among the inputs or outputs, each with the first and last byte in its storage."""
    found: list[Any] = []
    fields: Any = node.get(side)
    if not _is_field(node, side, type(fields) is dict, "an object", say):
        return found
    try:
        values, shapes, types, strides = fields["values"], fields["shapes"], fields["types"], fields["strides"]
    except KeyError as missing:
        say(f"{side} have no {missing.args[0]}")
        return found
    for part in PARTS:
        if type(fields[part]) is not list:
            say(f"{part} of {side} are {_kind(fields[part])}, not an array")
            return found
    if not len(values) == len(shapes) == len(types) == len(strides):
        say(f"{side} have " + ", ".join(f"{len(fields[part])} {part}" for part in PARTS))
        return found
    for index, kind in enumerate(types):
        what = _check_value(values[index], shapes[index], strides[index], kind, found)
        if what is not None:
            say(f"{side[:-1]} {index}{what}")
    if len(found) > 1:
        _check_same(found, side, say)
    return found


def _check_value(value: Any, shape: Any, strides: Any, kind: Any, found: list[Any]) -> str | None:
    """Returns the defect of a value, to be appended to the value's place: `: …` or `[2]: …`."""
    parsed = _parsed.get(kind) if type(kind) is str else None
    if parsed is None:
        if type(kind) is not str:
            return f": type is {_kind(kind)}, not a string"
        parsed = _parsed[kind] = _parse(kind)
    what = parsed[0]
    if what == "tensor":
        return _check_tensor(value, shape, strides, parsed[1], kind, found)
    if what == "list":
        return _check_list(value, shape, strides, parsed[1], kind, found)
    if what == "broken":
        return f": type {kind[:60]!r} cannot be read"
    if shape or strides:
        return f": has a shape or strides, but is no tensor: {kind}"
    if (
        (what == "int" and type(value) is int)
        or (what == "bool" and type(value) is bool)
        or (what == "double" and (type(value) in (float, int) or value in DOUBLES))
        or (what == "none" and value == "<None>")
        or (what == "other" and type(value) in (str, int, float, bool))
    ):
        return None
    if what == "string" and type(value) is str:
        return ": contains U+FFFF: text was damaged when it was written" if "\uffff" in value else None
    return f": is {_kind(value)}, which is not a {kind}"


def _check_list(value: Any, shape: Any, strides: Any, kinds: list[str], kind: str, found: list[Any]) -> str | None:
    for name, part in (("value", value), ("shape", shape), ("strides", strides)):
        if type(part) is not list:
            return f": {name} is {_kind(part)}, but the type is {_short(kind)}"
        if len(part) != len(kinds):
            return f": {name} has {len(part)} elements, but the type {_short(kind)} has {len(kinds)}"
    for index, one in enumerate(kinds):
        what = _check_value(value[index], shape[index], strides[index], one, found)
        if what is not None:
            return f"[{index}]{what}"
    return None


def _check_tensor(value: Any, shape: Any, strides: Any, itemsize: int, kind: str, found: list[Any]) -> str | None:
    """Checks a tensor: [its id, its storage's id, offset, elements, bytes of an element, device]."""
    if type(value) is not list or len(value) != 6:
        return _wrong_fields(value)
    number, storage, offset, elements, size, device = value
    integers = type(number) is type(storage) is type(offset) is type(elements) is type(size) is int
    # The bitwise or of these numbers is negative if one of them is, and exceeds 64 bits if one of them does.
    if not (integers and type(device) is str and 0 <= number | storage | offset | elements | size < UNSIGNED):
        return _wrong_fields(value)
    if type(shape) is not list or type(strides) is not list:
        return ": shape or strides are not an array"
    if value[1:] == NO_STORAGE or (storage == elements == 0 and not shape):
        # No more checks are possible for sparse tensors, wrappers, undefined tensors, and sizes that are symbols.
        found.append((number, 0, value, 0, 0))
        return None
    if itemsize < 0:
        return f": is {kind}, but has a storage"
    if not device:
        return ": has no device"
    if itemsize and size != itemsize:
        return f": itemsize is {size}, but the type is {kind}"
    if not storage and not strides:  # a sparse tensor has no storage
        strides = [0] * len(shape)
    return _check_extent(value, shape, strides, found)


def _wrong_fields(value: Any) -> str:
    """Returns why a value does not have the fields of a tensor."""
    if type(value) is not list or len(value) != 6:
        what = f"an array of {len(value)}" if type(value) is list else _kind(value)
        return f": is {what}, not a tensor's six fields"
    *numbers, device = value
    for number in numbers:
        if type(number) is not int or not 0 <= number < UNSIGNED:
            return f": a tensor's field is {_kind(number)}, not an unsigned integer"
    return f": a tensor's device is {_kind(device)}, not a string"


def _check_extent(value: Any, shape: Any, strides: Any, found: list[Any]) -> str | None:
    """Adds the tensor, with the first and last byte in its storage, if its shape has as many elements as the tensor."""
    nested = bool(shape) and type(shape[0]) is list
    if nested and len(shape) != len(strides):
        return f": {len(shape)} shapes and {len(strides)} strides"
    elements = last = 0
    for one, steps in zip(shape, strides) if nested else ((shape, strides),):
        measured = _measure(one, steps)
        if isinstance(measured, str):
            return measured
        count, reach = measured
        elements += count
        last = max(last, reach)
    if elements != value[3]:
        return f": numel is {value[3]}, but the shape {shape} has {elements}"
    begin = value[2] * value[4]
    end = begin + (elements if nested else last) * value[4]
    if end > EXTENT_MAX:
        return f": reaches byte {end} of its storage"
    found.append((value[0], value[1], value, begin, end))
    return None


def _measure(shape: Any, strides: Any) -> tuple[int, int] | str:
    """Returns how many elements a shape has, and how many lie between the first and the last; or the defect."""
    if type(shape) is not list or type(strides) is not list or len(shape) != len(strides):
        return f": shape {shape} and strides {strides} do not fit together"
    count, reach = 1, 0
    for size, step in zip(shape, strides):
        if type(size) is not int or type(step) is not int or size < 0 or step < 0:
            return f": shape {shape} or strides {strides} are not sizes"
        count *= size
        reach += (size - 1) * step
    return count, reach + 1 if count else 0


def _check_same(found: list[Any], side: str, say: Say) -> None:
    """Checks that a tensor which is given twice to an operator has one storage, size of elements and device."""
    seen: dict[int, Any] = {}
    for tensor in found:
        value = tensor[2]
        other = seen.setdefault(value[0], value)
        if other is not value and (other[1], other[4], other[5]) != (value[1], value[4], value[5]):
            say(f"tensor {value[0]} is both {other} and {value} among the {side}")
            return


def _check_view(base: Any, outputs: list[Any], say: Say) -> None:
    for number, storage, _, begin, end in outputs:
        if storage and storage == base[1] and end > begin and (begin < base[3] or end > base[4]):
            say(
                f"tensor {number} is bytes {begin} to {end} of storage {storage}, outside of tensor {base[0]}, "
                f"{base[3]} to {base[4]}, that it is a view of"
            )


# ---- types ---------------------------------------------------------------

_parsed: dict[Any, tuple[str, Any]] = {
    "Int": ("int", None),
    "Bool": ("bool", None),
    "Double": ("double", None),
    "None": ("none", None),
    "String": ("string", None),
    "Device": ("string", None),
    "Tensor(nullptr (uninitialized))": ("tensor", -1),
}


def _parse(kind: str) -> tuple[str, Any]:
    """Parses `Tensor(float)` or `GenericList[Int,Tuple[Bool,None]]`. Unknown names are values of some other type."""
    if kind.startswith("Tensor(") and kind.endswith(")"):
        return "tensor", ITEMSIZES.get(kind[7:-1], 0)
    if kind.startswith(("GenericList[", "Tuple[")):
        if not kind.endswith("]"):
            return "broken", None
        kinds = _split(kind[kind.index("[") + 1 : -1])
        return ("broken", None) if kinds is None else ("list", kinds)
    return ("other", None) if kind and kind.count("[") == kind.count("]") else ("broken", None)


def _split(text: str) -> list[str] | None:
    """Splits at commas outside brackets; returns None if brackets do not match."""
    if not text:
        return []
    if not any(bracket in text for bracket in "[(<"):
        return text.split(",")
    kinds, depth, begin = [], 0, 0
    for index, character in enumerate(text):
        if character in "[(<":
            depth += 1
        elif character in "])>":
            depth -= 1
            if depth < 0:
                return None
        elif character == "," and depth == 0:
            kinds.append(text[begin:index])
            begin = index + 1
    return None if depth else [*kinds, text[begin:]]


def _short(kind: str) -> str:
    return kind if len(kind) <= 60 else kind[:57] + "…"
