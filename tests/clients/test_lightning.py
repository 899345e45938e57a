"""Lightning's PyTorchProfiler with vestige in torch's place: everything that it asks of torch.profiler works."""

from .conftest import RECORDED, document, only


def test_a_trace_is_written_that_says_whose_it_is(lightning):
    trace = document(only(lightning, "*.pt.trace.json"))
    assert trace["Framework"] == "pytorch-lightning"
    assert trace["record_shapes"] == 1
    steps = [event["name"] for event in trace["traceEvents"] if event["name"].startswith("ProfilerStep#")]
    assert steps == [f"ProfilerStep#{step}" for step in RECORDED]


def test_its_own_annotations_and_those_of_modules_are_there(lightning):
    names = [event["name"] for event in document(only(lightning, "*.pt.trace.json"))["traceEvents"]]
    for name in (
        "[pl][profile][Strategy]SingleDeviceStrategy.training_step",
        "[pl][profile][LightningModule]Model.optimizer_step",
        "[pl][module]torch.nn.modules.linear.Linear: layer",
    ):
        assert names.count(name) in (len(RECORDED), 2 * len(RECORDED)), name  # spans, or pairs of a begin and an end


def test_its_report_is_a_table_of_operators(lightning):
    report = only(lightning, "*.txt").read_text()
    assert "Profile stats for: records" in report
    rows = {line.split()[0]: line for line in report.splitlines() if line.startswith(" ") and line.split()}
    assert "[[1, 4], [1, 4], [1]]" in rows["aten::linear"]
    assert "Self CPU time total: " in report
