"""Files for other tools: each file has the calls of the Chrome export of the trace, with equal counts and durations.
Small readers are in this file; in tests/clients, the tools themselves read the files.
"""

import cProfile
import gzip
import json
import marshal
import pstats
import re
import struct
import threading
from collections import Counter, defaultdict
from xml.etree import ElementTree

import pytest

from vestige import Trace, profile, record_function
from vestige._core import export_traces

ODD = 'an "odd"; <name> & \u00e9'


def leaf(x):
    return len([x])


def fall(n):
    return leaf(n) if n == 0 else fall(n - 1)


def fail():
    raise ValueError


def produce():
    yield leaf(1)
    yield leaf(2)


def work():
    for _ in range(3):
        fall(4)
        sorted([3, 1, 2], key=leaf)
        try:
            fail()
        except ValueError:
            pass
    list(produce())


def record(path):
    """Records every kind of call, on two threads."""
    with profile(output=str(path)):
        work()
        with record_function(ODD):
            fall(1)
        thread = threading.Thread(target=work, name="a worker")
        thread.start()
        thread.join()
    return path


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return str(record(tmp_path_factory.mktemp("exports") / "t.vst"))


@pytest.fixture(scope="module")
def export(trace, tmp_path_factory):
    """Returns a function that exports to a suffix, and perhaps a format, and returns the bytes."""
    folder = tmp_path_factory.mktemp("exported")

    def exported(suffix, format=None):
        path = folder / f"t{suffix}"
        export_traces([Trace(trace)], str(path), all_windows=True, format=format)
        data = path.read_bytes()
        return gzip.decompress(data) if suffix.endswith(".gz") else data

    return exported


@pytest.fixture(scope="module")
def spans(export):
    """Returns Chrome's spans: (thread, name, start in ns, duration in ns), outer spans first."""
    document = json.loads(export(".json"))
    found = [
        (event["tid"], event["name"], ns(event["ts"]), ns(event["dur"]))
        for event in document["traceEvents"]
        if event["ph"] == "X" and event["cat"] != "Trace"
    ]
    return sorted(found, key=lambda span: (span[0], span[2], -span[3]))


def ns(us):
    return round(us * 1000)


def stacks(spans):
    """Returns {stack of names: [calls, self ns]}."""
    found = defaultdict(lambda: [0, 0])
    open_spans = []
    for tid, name, start, duration in spans:
        while open_spans and (open_spans[-1][0] != tid or open_spans[-1][2] <= start):
            open_spans.pop()
        stack = (*open_spans[-1][1], name) if open_spans else (name,)
        if open_spans:
            found[open_spans[-1][1]][1] -= duration
        found[stack][0] += 1
        found[stack][1] += duration
        open_spans.append((tid, stack, start + duration))
    return dict(found)


# ---- timelines ---------------------------------------------------------


def fields(data):
    """Yields (number, value) for each field of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            yield key >> 3, data[at : at + size]
            at += size


def read_perfetto(data):
    """Returns spans in the form of the fixture `spans`. Each sequence has its own clock, tracks and names."""
    names, clocks, tracks, begun, spans, tids = {}, {}, {}, {}, [], {}
    for _, packet in fields(data):
        parts = dict(fields(packet))
        sequence = parts[10]
        if parts.get(13) == 1:
            names = {key: name for key, name in names.items() if key[0] != sequence}
            snapshot = [dict(fields(clock)) for number, clock in fields(parts[6]) if number == 1]
            clocks[sequence] = next(clock[2] for clock in snapshot if clock[1] == 64)
            tracks[sequence] = dict(fields(dict(fields(parts[59])).get(11, b""))).get(11)
        for number, one in fields(parts.get(12, b"")):
            if number == 2:
                name = dict(fields(one))
                names[sequence, name[1]] = name[2].decode()
        if 60 in parts:
            track = dict(fields(parts[60]))
            if 4 in track:
                tids[track[1]] = dict(fields(track[4]))[2]
        if 11 not in parts:
            continue
        clocks[sequence] = (clocks[sequence] + parts[8]) % 2**64
        event = dict(fields(parts[11]))
        track = event.get(11, tracks[sequence])
        if event[9] == 1:
            begun[sequence, track] = names.get((sequence, event.get(10))), clocks[sequence]
        elif event[9] == 2:
            name, start = begun.pop((sequence, track))
            if name:
                spans.append((tids[track], name, start, clocks[sequence] - start))
    return sorted(spans, key=lambda span: (span[0], span[2], -span[3]))


@pytest.mark.parametrize("suffix", [".pftrace", ".perfetto-trace", ".pftrace.gz"])
def test_perfettos_format_has_the_same_spans_to_the_nanosecond(export, spans, suffix):
    base = json.loads(export(".json"))["baseTimeNanoseconds"]
    found = read_perfetto(export(suffix))
    assert [(tid, name, start - base, duration) for tid, name, start, duration in found] == spans


def chrome_spans(path):
    document = json.loads(path.read_bytes())
    return sorted(
        (event["tid"], event["name"], ns(event["ts"]) + document["baseTimeNanoseconds"], ns(event["dur"]))
        for event in document["traceEvents"]
        if event["ph"] == "X" and event["cat"] != "Trace"
    )


def test_perfettos_format_takes_up_a_thread_again_in_every_window(tmp_path):
    prof = profile(output=str(tmp_path / "t.vst"))
    for _ in range(3):
        prof.start()
        thread = threading.Thread(target=work)
        thread.start()
        work()
        thread.join()
        prof.stop()
    for name in ("t.json", "t.pftrace"):
        export_traces([Trace(str(tmp_path / "t.vst"))], str(tmp_path / name), all_windows=True)
    expected = chrome_spans(tmp_path / "t.json")
    assert sorted(read_perfetto((tmp_path / "t.pftrace").read_bytes())) == expected
    assert sum(name.endswith(": work") for _, name, _, _ in expected) == 6


def test_speedscope_opens_and_closes_the_same_spans(export, spans):
    document = json.loads(export(".speedscope.json"))
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert [profile["name"] for profile in document["profiles"]] == ["MainThread", "a worker"]
    frames, found = document["shared"]["frames"], []
    for thread in document["profiles"]:
        assert (thread["type"], thread["unit"]) == ("evented", "nanoseconds")
        stack, last = [], thread["startValue"]
        for event in thread["events"]:
            assert last <= event["at"] <= thread["endValue"]
            last = event["at"]
            if event["type"] == "O":
                stack.append((event["frame"], last))
            else:
                frame, start = stack.pop()
                assert frame == event["frame"]
                found.append((frames[frame]["name"], last - start))
        assert not stack
    assert Counter(found) == Counter((name.partition("): ")[2] or name, duration) for _, name, _, duration in spans)
    assert any(frame["name"] == "fall" and frame["file"] == __file__ and frame["line"] > 0 for frame in frames)


# ---- sums --------------------------------------------------------------


def folded(data):
    found = Counter()
    for line in data.decode().splitlines():
        stack, _, value = line.rpartition(" ")
        found[tuple(stack.split(";"))] += int(value)
    return found


def as_folded(stack):
    return tuple(name.replace(";", "_") for name in stack)


def test_folded_stacks_have_every_nanosecond_of_self_time(export, spans):
    expected = {as_folded(stack): own for stack, (_, own) in stacks(spans).items() if own}
    assert folded(export(".txt", "folded-ns")) == expected


def test_folded_stacks_in_microseconds_add_up_to_the_whole(export, spans):
    total_ns = sum(own for _, own in stacks(spans).values())
    found = folded(export(".folded"))
    assert sum(found.values()) == total_ns // 1000
    assert all(value > 0 for value in found.values())
    assert found == folded(export(".folded.gz"))


def test_a_flame_graph_shows_every_stack_as_wide_as_its_time(export, spans):
    root = ElementTree.fromstring(export(".svg"))
    groups = [g for g in root.iter("{http://www.w3.org/2000/svg}svg") if g.get("data-w")]
    expected = Counter()
    total = sum(own for _, own in stacks(spans).values())
    for stack, (_, own) in stacks(spans).items():
        for depth in range(len(stack)):
            expected[stack[: depth + 1]] += own
    found, path = {}, []
    for g in groups:
        title = g.find("{http://www.w3.org/2000/svg}title").text
        del path[int(g.get("data-d")) :]
        path.append(re.fullmatch(r"(.*) \(.*?\)", title)[1])
        found[tuple(path)] = float(g.get("data-w"))
    assert {stack: round(width * total) for stack, width in found.items()} == {
        stack: own for stack, own in expected.items() if own >= total // 50000 and own
    }


def read_pprof(data):
    """Returns the names of the sample types, and {stack: values}."""
    profile_ = list(fields(data))
    strings = [value.decode() for number, value in profile_ if number == 6]
    functions = {one[1]: one for one in (dict(fields(value)) for number, value in profile_ if number == 5)}
    locations = {}
    for number, value in profile_:
        if number == 4:
            location = dict(fields(value))
            locations[location[1]] = functions[dict(fields(location[4]))[1]]
    types = [dict(fields(value)) for number, value in profile_ if number == 1]
    assert strings[0] == ""
    found = {}
    for number, value in profile_:
        if number == 2:
            sample = dict(fields(value))
            names = tuple(strings[locations[one][2]] for one in reversed(list(packed(sample[1]))))
            found[names] = [a + b for a, b in zip(found.get(names, [0] * len(types)), packed(sample[2]), strict=False)]
    return [f"{strings[one[1]]}/{strings[one[2]]}" for one in types], found


def test_pprof_has_the_calls_and_the_time_of_every_stack(export, spans):
    types, found = read_pprof(export(".pb.gz"))
    assert types == ["calls/count", "wall/nanoseconds"]
    expected = {}
    for stack, values in stacks(spans).items():
        names = tuple(name.partition("): ")[2] or name for name in stack)
        expected[names] = [a + b for a, b in zip(expected.get(names, [0, 0]), values, strict=True)]
    assert found == expected


def test_pprof_has_what_was_allocated(tmp_path):
    def hoard():
        return [bytes(5000) for _ in range(7)]

    with profile(output=str(tmp_path / "t.vst"), profile_memory=True, memory_native_allocators=False):
        hoard()
    for name in ("t.json", "t.pb"):
        export_traces([Trace(str(tmp_path / "t.vst"))], str(tmp_path / name), all_windows=True)
    types, found = read_pprof((tmp_path / "t.pb").read_bytes())
    assert types[2:] == ["alloc_objects/count", "alloc_space/bytes"]
    inside = [value for stack, value in found.items() if any(name.endswith("hoard") for name in stack)]
    assert sum(objects for _, _, objects, _ in inside) >= 7
    assert sum(size for _, _, _, size in inside) >= 35000
    events = json.loads((tmp_path / "t.json").read_bytes())["traceEvents"]
    own = sum(event["args"].get("Self Allocated Bytes", 0) for event in events if event["ph"] == "X")
    assert sum(value[3] for value in found.values()) == own


def packed(data):
    return (
        value for _, value in fields(b"".join(b"\x08" + one for one in re.findall(rb"[\x80-\xff]*[\x00-\x7f]", data)))
    )


def read_pstats(data):
    stats = marshal.loads(data)
    assert all(re.fullmatch(r"\d+", str(calls)) for _, calls, *_ in stats.values())
    return stats


def test_pstats_has_the_sums_of_every_function(export, spans, tmp_path):
    stats = read_pstats(export(".pstats"))
    calls, own, total, primitive = Counter(), Counter(), Counter(), Counter()
    for stack, (count, self_ns) in stacks(spans).items():
        calls[stack[-1]] += count
        own[stack[-1]] += self_ns
        primitive[stack[-1]] += count if stack[-1] not in stack[:-1] else 0
        for name in set(stack):
            total[name] += self_ns
    shown = {}
    for (file, line, name), (cc, nc, tt, ct, _) in stats.items():
        shown[name if file == "~" else f"{shown_file(file, spans)}({line}): {name}"] = (cc, nc, tt, ct)
    assert {name: value[:2] for name, value in shown.items()} == {
        name: (primitive[name], calls[name]) for name in calls
    }
    for name, (_, _, tt, ct) in shown.items():
        assert (round(tt * 1e9), round(ct * 1e9)) == (own[name], total[name])
    path = tmp_path / "t.prof"
    path.write_bytes(export(".prof"))
    assert pstats.Stats(str(path)).total_calls == len(spans)


def shown_file(file, spans):
    """Returns the end of the file's path, as names show it."""
    names = {name.partition("(")[0] for _, name, _, _ in spans if "): " in name}
    return next(name for name in names if file.endswith(name))


def test_pstats_counts_as_cprofile_does(tmp_path):
    """Runs the work under each profiler: functions, calls, primitive calls and callers are equal for all Python
    functions.
    """
    path = tmp_path / "t.vst"
    prof = profile(output=str(path))
    prof.start()
    work()
    prof.stop()
    export_traces([Trace(str(path))], str(tmp_path / "t.pstats"), all_windows=True)
    theirs = cProfile.Profile()
    theirs.enable()
    work()
    theirs.disable()
    theirs.create_stats()

    def mine(stats):
        return {
            key[:2]: (cc, nc, {caller[:2]: counts[:2] for caller, counts in callers.items() if caller[0] == __file__})
            for key, (cc, nc, _, _, callers) in stats.items()
            if key[0] == __file__
        }

    ours = mine(read_pstats((tmp_path / "t.pstats").read_bytes()))
    ours = {key: value for key, value in ours.items() if key in mine(theirs.stats)}  # without this test, which was open
    expected = mine(theirs.stats)
    here = test_pstats_counts_as_cprofile_does.__code__.co_firstlineno
    for _, _, callers in ours.values():
        callers.pop((__file__, here), None)
    # list() runs the generator. Its call has a span, for which cProfile has no event.
    for counts in (ours, expected):
        counts[__file__, produce.__code__.co_firstlineno][2].clear()
    assert ours == expected
    assert len(expected) == 5


def test_callgrind_has_self_times_and_calls(export, spans):
    names, own, calls, function, target = {}, Counter(), Counter(), None, None

    def name_of(text):
        number, _, name = text.partition(" ")
        if name:
            names[number] = name
        return names[number]

    lines = export(".callgrind").decode().splitlines()
    skip = False
    for line in lines[lines.index("events: ns") + 1 :]:
        key, _, value = line.partition("=")
        if key == "fn":
            function = name_of(value)
        elif key == "cfn":
            target = name_of(value)
        elif key == "calls":
            calls[target] += int(value.split()[0])
            skip = True
        elif re.match(r"\d+ \d+$", line):
            own[function] += 0 if skip else int(line.split()[1])
            skip = False
        elif line.startswith("totals: "):
            assert int(line.split()[1]) == sum(own.values())
    expected_own, expected_calls = Counter(), Counter()
    for stack, (count, self_ns) in stacks(spans).items():
        name = stack[-1].partition("): ")[2] or stack[-1]
        expected_own[name] += self_ns
        expected_calls[name] += count if len(stack) > 1 else 0
    assert own == expected_own
    assert +calls == +expected_calls


# ---- several processes, and what goes wrong ----------------------------


def test_several_processes_are_told_apart(tmp_path):
    paths = [record(tmp_path / f"{i}.vst") for i in range(2)]
    traces = [Trace(str(path)) for path in paths]
    for suffix in (".folded", ".speedscope.json", ".pftrace", ".svg", ".pstats"):
        export_traces(traces, str(tmp_path / f"all{suffix}"), all_windows=True)
    assert all(stack[0].startswith("process ") for stack in folded((tmp_path / "all.folded").read_bytes()))
    document = json.loads((tmp_path / "all.speedscope.json").read_bytes())
    assert [re.sub(r"\d+", "N", one["name"]) for one in document["profiles"]] == [
        "process N, MainThread",
        "process N, a worker",
    ] * 2
    stats = read_pstats((tmp_path / "all.pstats").read_bytes())
    assert next(value[1] for key, value in stats.items() if key[2] == "fall") == 2 * (2 * 15 + 2)


def test_the_format_may_be_named(export):
    assert folded(export(".txt", "folded")) == folded(export(".folded"))
    assert struct.unpack("B", export(".bin", "perfetto")[:1]) == (10,)


def test_the_command_writes_every_format_by_its_name(workplace):
    record(workplace.path / "t.vst")
    for arguments, name in {
        ("--to", "perfetto"): "t.pftrace",
        ("--to", "pprof"): "t.pb.gz",
        ("-o", "callgrind.out.7"): "callgrind.out.7",
    }.items():
        result = workplace.vestige("export", "t.vst", *arguments)
        assert (result.stdout, result.returncode) == ("", 0) and result.stderr.startswith(f"vestige: wrote {name} (")
        assert (workplace.path / name).stat().st_size > 0
    result = workplace.vestige("export", "t.vst", "-o", "t.xml")
    assert result.returncode == 2
    assert ".pftrace, .perfetto-trace, .speedscope.json, .svg, .folded, .pb, .pprof" in result.stderr
    result = workplace.vestige("export", "t.vst", "--to", "word")
    assert result.returncode == 2
    assert "invalid choice: 'word'" in result.stderr
