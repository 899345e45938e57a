"""Our execution traces in Chakra's converter (mlc-chakra), compared with torch's: every node arrives, with its name and
parent.

Its linker asks for et_replay, which is in no package index, and for kernels of a GPU, so the linker is not tested.
"""

from collections import Counter

import pytest

from vestige.cli.et.command import main

from .conftest import document, only

pytest.importorskip("chakra")

from chakra.schema.protobuf.et_def_pb2 import GlobalMetadata, Node
from chakra.src.converter.pytorch_converter import PyTorchConverter
from chakra.src.third_party.utils.protolib import decodeMessage, openFileRd

THREAD = "[pytorch|profiler|execution_trace|thread]"


def converted(path, folder):
    """Returns the nodes of Chakra's file."""
    out = folder / f"{path.stem}.et"
    PyTorchConverter().convert(str(path), str(out), simulate=True)
    file = openFileRd(str(out))
    assert decodeMessage(file, GlobalMetadata())
    nodes = []
    while True:
        node = Node()
        if not decodeMessage(file, node):
            return nodes
        nodes.append(node)


def attribute(node, name):
    return next(entry for entry in node.attr if entry.name == name)


@pytest.mark.parametrize("rank", [0, 1])
def test_the_converter_keeps_every_node(training, tmp_path, rank):
    """Without the process's root, which the converter also drops from torch's traces."""
    path = training / f"vestige.{rank}.et.json"
    given = {node["id"]: node for node in document(path)["nodes"] if node["id"] != 1}
    nodes = converted(path, tmp_path)
    assert len(nodes) == len(given) > 500
    for node in nodes:
        other = given.pop(node.id)
        assert node.name == other["name"]
        assert node.inputs.shapes == str(other["inputs"]["shapes"])
        assert node.outputs.types == str(other["outputs"]["types"])
        assert attribute(node, "rf_id").int64_val == other["attrs"][0]["value"]
        assert attribute(node, "op_schema").string_val == other["attrs"][6]["value"]
        if other["name"] != THREAD:
            assert node.data_deps
    assert not given


def test_what_the_converter_makes_of_ours_is_what_it_makes_of_torchs(training, tmp_path):
    ours, torchs = (converted(training / f"{name}.0.et.json", tmp_path) for name in ("vestige", "torch"))
    seen = [
        Counter((node.name, node.type, node.inputs.shapes, node.inputs.types) for node in nodes)
        for nodes in (ours, torchs)
    ]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("rank", [0, 1])
def test_nothing_is_wrong_with_our_trace_nor_with_its_timeline(training, capsys, rank):
    timeline = only(training / "vestige", f"worker{rank}.*.json")
    code = main(["check", str(training / f"vestige.{rank}.et.json"), "--timeline", str(timeline)])
    assert code == 0, capsys.readouterr().out
