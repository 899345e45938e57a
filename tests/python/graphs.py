"""Helpers for tests that examine execution traces."""

import gzip
import json

PROCESS = "[pytorch|profiler|execution_trace|process]"
THREAD = "[pytorch|profiler|execution_trace|thread]"
ATTRIBUTES = ["rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid", "op_schema", "kernel_backend", "kernel_file"]


def read(path):
    path = str(path)
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        return json.load(file)


def nodes_of(path):
    return read(path)["nodes"]


def root_of(nodes):
    """Returns the root, and checks that every node descends from it."""
    (root,) = [node for node in nodes if node["name"] == PROCESS]
    assert root["id"] == root["ctrl_deps"] == 1
    parents = {node["id"]: node["ctrl_deps"] for node in nodes}
    assert len(parents) == len(nodes)
    for node in nodes:
        seen, at = set(), node["id"]
        while at != 1:
            assert at not in seen
            seen.add(at)
            at = parents[at]
    return root


def attribute(node, name):
    (value,) = [one["value"] for one in node["attrs"] if one["name"] == name]
    return value


def rf_id(node):
    return attribute(node, "rf_id")


def rf_ids(nodes):
    return sorted(rf_id(node) for node in nodes if node["name"] not in (PROCESS, THREAD))


def timeline_rf_ids(path):
    events = read(path)["traceEvents"]
    shown = [event for event in events if event.get("cat") in ("cpu_op", "user_annotation") and event["ph"] != "e"]
    return sorted(event["args"].get("Record function id", 0) for event in shown)


def named(nodes, name):
    return [node for node in nodes if node["name"] == name]


def one(nodes, name):
    (node,) = named(nodes, name)
    return node


def children(nodes, node):
    return [other for other in nodes if other["ctrl_deps"] == node["id"] and other is not node]
