"""Categories of memory, compared with torch.profiler's export_memory_timeline for the same programs. Finding the
category never keeps, calls or changes an object of the program.
"""

import collections
import gc
import gzip
import json
import multiprocessing
import weakref

import pytest

import vestige

torch = pytest.importorskip("torch")

from torch import nn
from torch.optim import optimizer as optimizers

pytestmark = [
    pytest.mark.filterwarnings("ignore:`export_memory_timeline` is deprecated"),
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events"),
]

PREEXISTING, CREATE, INCREMENT_VERSION, DESTROY = 1, 2, 3, 4
PARAMETER, OPTIMIZER, INPUT, TEMPORARY, ACTIVATION, GRADIENT, AUTOGRAD, UNKNOWN = range(8)
ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}
# Only torch's reports, because torch.profiler counts only these.
REPORTS = {**ALL, "memory_native_allocators": False}


# ---- programs ----------------------------------------------------------------


def train(model, optimizer, *, steps=2, shape=(8, 16), keep=False, accumulate=1):
    for _ in range(steps):
        x, y = torch.randn(*shape), torch.randint(0, 4, (shape[0],))
        for _ in range(accumulate):
            nn.functional.cross_entropy(model(x), y).backward()
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad(set_to_none=not keep)


def mlp(make=None, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = make(model.parameters()) if make else None
    return lambda: train(model, optimizer, **options)


def momentum(**options):
    return mlp(lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9), **options)


def convolutions():
    torch.manual_seed(0)
    layers = (nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3))
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * 6 * 6, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return lambda: train(model, optimizer, steps=1, shape=(2, 3, 16, 16))


def attention():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = nn.Sequential(layer, nn.Flatten(), nn.Linear(8 * 16, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    return lambda: train(model, optimizer, steps=1, shape=(4, 8, 16))


def inference():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))

    def run():
        with torch.no_grad():
            for _ in range(2):
                model(torch.randn(8, 16))

    return run


def by_hand():
    """Uses neither modules nor an optimizer: parameters are recognised by how operators use them."""
    torch.manual_seed(0)
    parameters = torch.randn(16, 4, requires_grad=True), torch.zeros(4, requires_grad=True)

    def run():
        for _ in range(2):
            (((torch.randn(8, 16) @ parameters[0] + parameters[1]) ** 2).mean()).backward()
            with torch.no_grad():
                for parameter in parameters:
                    parameter -= 0.1 * parameter.grad
                    parameter.grad = None

    return run


PROGRAMS = {
    "momentum": momentum,
    "adam": lambda: mlp(torch.optim.Adam),
    "foreach": lambda: mlp(lambda parameters: torch.optim.Adam(parameters, foreach=True)),
    "accumulated": lambda: momentum(keep=True, accumulate=2),
    "no optimizer": mlp,
    "convolutions": convolutions,
    "attention": attention,
    "inference": inference,
    "by hand": by_hand,
}


# ---- the same as torch's -------------------------------------------------------


def raw_events(prof, folder):
    prof.export_memory_timeline(str(folder / "t.raw.json.gz"), device="cpu")
    return json.loads(gzip.decompress((folder / "t.raw.json.gz").read_bytes()))


def exported(prof, folder):
    prof.export_memory_timeline(str(folder / "t.json"), device="cpu")
    times, rows = json.loads((folder / "t.json").read_text())
    return times, rows, raw_events(prof, folder)


def record(program, folder, **options):
    with vestige.profile(**options) as prof:
        program()
    return exported(prof, folder)


@pytest.fixture(scope="module")
def torchs(tmp_path_factory):
    """Returns torch.profiler's timeline of each program."""
    from torch.profiler import profile

    folder = tmp_path_factory.mktemp("torchs")
    found = {}
    for name, make in PROGRAMS.items():
        program = make()
        with profile(**ALL) as prof:
            program()
        found[name] = raw_events(prof, folder)
    return found


def rows_of(raw):
    """Returns the bytes of each category after each event; blocks from before the first event are combined."""
    now, rows = [0] * 9, []
    for time_ns, _, size, category in raw:
        now[1 + category] += size
        if time_ns == -1 and rows:
            rows.pop()
        rows.append(list(now))
    return rows


def peaks(rows):
    return [max(column) for column in zip(*rows)]


def totals(raw):
    found = collections.Counter()
    for _, action, size, category in raw:
        found[action, category, "+" if size > 0 else "-"] += size
    return dict(found)


def changes(raw):
    """Returns rows in order, without their times; rows with equal times are sorted."""
    found = [tuple(row[1:]) for row in raw if row[1] in (CREATE, DESTROY)]
    return found, sorted(tuple(row[1:]) for row in raw if row[1] not in (CREATE, DESTROY))


@pytest.mark.parametrize("name", PROGRAMS)
def test_memory_has_the_categories_that_torch_gives_it(torchs, tmp_path, name):
    theirs, their_rows = torchs[name], rows_of(torchs[name])
    times, rows, raw = record(PROGRAMS[name](), tmp_path, **REPORTS)
    assert totals(raw) == totals(theirs)
    assert changes(raw) == changes(theirs)
    assert rows[-1] == their_rows[-1] and rows[0] == their_rows[0]
    assert peaks(rows_of(raw)) == peaks(their_rows) >= peaks(rows)
    assert len(times) == len(rows) and times == sorted(times) and times[0] == times[1]
    assert all(len(row) == 9 and row[0] == 0 and min(row) >= 0 for row in rows)
    assert [time_ns for time_ns, *_ in raw] == sorted(time_ns for time_ns, *_ in raw)
    assert all((time_ns == -1) == (action == PREEXISTING) for time_ns, action, *_ in raw)


def test_the_allocators_hooks_find_the_same_tensors(torchs, tmp_path):
    """By default, malloc's hooks see blocks, including blocks that libraries below torch allocate."""
    for name in ("adam", "convolutions", "inference"):
        raw = record(PROGRAMS[name](), tmp_path, **ALL)[2]
        ours, theirs = totals(raw), totals(torchs[name])
        assert {key: size for key, size in ours.items() if key[1] != UNKNOWN} == {
            key: size for key, size in theirs.items() if key[1] != UNKNOWN
        }
        assert all(abs(ours[key]) >= abs(theirs[key]) for key in theirs)


def test_optimizers_tell_of_parameters_where_calls_are_not_recorded(torchs, tmp_path):
    options = {**REPORTS, "with_stack": False}
    for name in ("momentum", "adam", "accumulated", "by hand"):
        raw = record(PROGRAMS[name](), tmp_path, **options)[2]
        assert totals(raw) == totals(torchs[name])


def test_blocks_of_an_earlier_recording_were_there_before(tmp_path):
    """torch knows the sizes of blocks whose allocation was not recorded."""
    found = []
    for make, options in ((torch.profiler.profile, ALL), (vestige.profile, REPORTS)):
        kept = []
        with make(**options):
            kept.extend(torch.ones(100) for _ in range(2))
        with make(**options) as prof:
            kept.pop()
            kept[0].add_(1)
            kept.clear()
        found.append(totals(raw_events(prof, tmp_path)))
    assert found[0] == found[1] and found[1][DESTROY, UNKNOWN, "-"] <= -800


def sizes_of_a_slice(folder):
    found = []
    for make, options in ((torch.profiler.profile, ALL), (vestige.profile, ALL)):
        part = [torch.ones(1000)[:10]]
        with make(**options) as prof:
            part[0].add_(torch.ones(10))
            part.clear()
        found.append(totals(raw_events(prof, folder)))
    return [(each[PREEXISTING, UNKNOWN, "+"], each[DESTROY, UNKNOWN, "-"]) for each in found]


def test_what_was_there_counts_whole_and_is_seen_to_go(tmp_path):
    """Differs from torch on purpose: a slice stands for its whole storage, and malloc's hooks see the storage freed.
    Runs in a new process, where torch does not count memory that other tests left.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        sizes = pool.apply(sizes_of_a_slice, (tmp_path,))
    assert sizes == [(40, -40), (4000, -4040)]


def test_the_command_line_writes_it_from_a_file(tmp_path, capsys):
    from vestige.cli import Failure, export

    file, page = tmp_path / "t.vst", tmp_path / "t.html"
    with vestige.profile(output=file, **REPORTS):
        PROGRAMS["inference"]()()
    assert export.main([str(file), "--to", "memory-timeline", "-o", str(page)]) == 0
    assert "<title>PARAMETER</title>" in page.read_text()
    with pytest.raises(Failure, match="a memory timeline ends in .html"):
        export.main([str(file), "--to", "memory-timeline", "-o", str(tmp_path / "t.png")])
    (tmp_path / "u.vst").write_bytes(file.read_bytes())
    with pytest.raises(Failure, match="a memory timeline shows one process"):
        export.main([str(file), str(tmp_path / "u.vst"), "--to", "memory-timeline", "-o", str(tmp_path / "t.json")])


def test_unchanged_programs_get_the_last_cycle(tmp_path):
    vestige.install()
    try:
        from torch.profiler import profile, schedule

        program = mlp(torch.optim.Adam, steps=1)
        with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=2), **ALL) as prof:
            for _ in range(4):
                program()
                prof.step()
        _, rows, raw = exported(prof, tmp_path)
        assert type(prof).__module__.startswith("vestige.")
    finally:
        vestige.uninstall()
    # One step: parameters and state existed before, gradients are new.
    assert rows[0][1:] == [2704, 5424, 0, 0, 0, 0, 0, 0]
    assert totals(raw)[CREATE, GRADIENT, "+"] == 2704


def test_optimizers_are_looked_at_again_when_they_hold_more(tmp_path):
    model, late = nn.Linear(16, 4), nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    both = nn.Sequential(model, late)

    def program():
        train(model, optimizer, steps=1)
        optimizer.add_param_group({"params": list(late.parameters())})
        train(both, optimizer, steps=1)

    raw = record(program, tmp_path, **{**REPORTS, "with_stack": False})[2]
    assert totals(raw)[CREATE, OPTIMIZER, "+"] == 4 * (16 * 4 + 4 + 4 * 4 + 4)


# ---- what it takes ---------------------------------------------------------------


asked: list[str] = []


class Shouting(torch.Tensor):
    """A tensor that prints every access to itself."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        asked.append(getattr(function, "__name__", str(function)))
        return super().__torch_function__(function, types, args, kwargs or {})


def test_nothing_of_the_programs_is_kept_called_or_left_behind(tmp_path):
    model = nn.Linear(4, 4)
    model.shouting = nn.Parameter(torch.zeros(3).as_subclass(Shouting))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    before = dict(optimizers._global_optimizer_post_hooks)
    asked.clear()
    with vestige.profile(**ALL) as prof:
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
        assert len(optimizers._global_optimizer_post_hooks) == len(before) + 1
        assert not {"_cdata", "untyped_storage", "data_ptr", "grad"} & set(asked)
    assert dict(optimizers._global_optimizer_post_hooks) == before
    gone = [weakref.ref(each) for each in (model, optimizer, model.weight, model.weight.grad)]
    gone += [weakref.ref(state["momentum_buffer"]) for state in optimizer.state.values()]
    del model, optimizer
    gc.collect()
    assert [each() for each in gone] == [None] * len(gone)
    assert exported(prof, tmp_path)[1][0][1] == 4 * (16 + 4 + 3)  # and yet its category is known


def test_the_page_shows_each_category_with_its_colour_and_the_maximum(tmp_path):
    with vestige.profile(**REPORTS) as prof:
        PROGRAMS["momentum"]()()
    prof.export_memory_timeline(tmp_path / "t.html")
    text = (tmp_path / "t.html").read_text()
    _, rows, _ = exported(prof, tmp_path)
    most = max(sum(row) for row in rows)
    assert f"({most} bytes)" in text and "http:" not in text and "https:" not in text and "<script" not in text
    seen = [name for name, column in zip(NAMES, list(zip(*rows))[1:]) if any(column)]
    assert [f"<title>{name}</title>" in text for name in NAMES] == [name in seen for name in NAMES]
    for name, colour in zip(NAMES, COLOURS):
        assert f'fill="{colour}"/></svg>{name}</td>' in text
        assert (f'<path fill="{colour}"' in text) == (name in seen)


NAMES = ["PARAMETER", "OPTIMIZER_STATE", "INPUT", "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL", "UNKNOWN"]
COLOURS = ["darkgreen", "goldenrod", "black", "mediumpurple", "red", "mediumblue", "royalblue", "grey"]


def test_without_shapes_what_was_freed_is_temporary_and_the_rest_unknown(tmp_path):
    options = {**REPORTS, "record_shapes": False}
    _, rows, raw = record(PROGRAMS["momentum"](), tmp_path, **options)
    assert {category for *_, category in raw} == {TEMPORARY, UNKNOWN}
    assert rows[-1][1 + UNKNOWN] == 2704 and rows[-1][1 + TEMPORARY] == 0
