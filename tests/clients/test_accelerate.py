"""accelerate's profile() and a training by transformers' Trainer with vestige in torch's place."""

import importlib.util

import pytest

from .conftest import HERE, document, only, run


def recorded(script, tmp_path, packages, pattern):
    """Returns the events of the only trace that a script wrote."""
    for package in ("torch", *packages):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"no {package} here")
    run(HERE / script, tmp_path, cwd=tmp_path)
    return document(only(tmp_path, pattern))["traceEvents"]


def check_steps(events, optimizer):
    steps = [event["name"] for event in events if event["name"].startswith("ProfilerStep#")]
    assert steps == ["ProfilerStep#2", "ProfilerStep#3"]
    assert sum(event["name"] == optimizer for event in events) == 2
    linear = [event for event in events if event["name"] == "aten::linear"]
    assert linear and all(event["args"]["Input Dims"] for event in linear)


def test_accelerate_finds_its_steps_and_shapes(tmp_path):
    events = recorded("accelerate_fit.py", tmp_path, ["accelerate"], "profile_*.json")
    check_steps(events, "Optimizer.step#SGD.step")
    (first, _) = (event for event in events if event["name"] == "aten::linear")
    assert first["args"]["Input Dims"] == [[3, 4], [2, 4], [2]]


def test_a_trainer_of_transformers_is_recorded_step_by_step(tmp_path):
    events = recorded("transformers_fit.py", tmp_path, ["transformers"], "*.pt.trace.json")
    check_steps(events, "Optimizer.step#AdamW.step")
