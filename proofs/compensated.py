"""How far compensated durations are from what programs take without being recorded.

    proofs/compensated.py totals     twelve programs of pyperformance: CPU time bare, recorded and compensated
    proofs/compensated.py others     the same of twenty programs more, of which the errors come
    proofs/compensated.py functions  functions of the standard library, each run bare by itself
    proofs/compensated.py peers      what cProfile and VizTracer show of the same programs
    proofs/compensated.py write      results/compensated.md from what the others have put into build/compensated

A second argument, turbo or safe (or the name of a peer), measures that alone and keeps what is known of the other: each
takes two or three minutes, in which the machine should have nothing else to do.

Run it with the Python of .venv/<version> (make develop PY=…), with pyperformance 1.14.0 and sqlglot installed there, or
in a folder that PYTHONPATH names. Each program runs in a process of its own, where bare and recorded runs take turns; of
each kind the least CPU time counts. Every recording learns its costs anew. The compensated total is the CPU time of a
recorded run less what the trace says was the recorder's. Of the runs in a recording the first does not count: in it
functions are defined, and the interpreter, which forgets at the start how it had specialised its code, does that anew.
"""

import argparse
import asyncio
import gc
import inspect
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
KEPT = os.path.join(ROOT, "build", "compensated")
sys.path.insert(0, os.path.join(ROOT, "bench"))

# ---- programs ----------------------------------------------------------------


def hexiom():
    module = programs.load("hexiom")
    return lambda: [module.main(1, 25) for _ in range(4)]


def nbody():
    module = programs.load("nbody")
    return lambda: module.bench_nbody(1, "sun", 6000)


def pyflate():
    module = programs.load("pyflate")
    path = os.path.join(os.path.dirname(module.__file__), "data", "interpreter.tar.bz2")
    return lambda: module.bench_pyflake(1, path)


def sqlglot():
    module = programs.load("sqlglot_v2")
    return lambda: [(module.bench_parse(1), module.bench_transpile(1)) for _ in range(20)]


def tomli_loads():
    """The standard library's tomllib, which is tomli's code; tomli itself is compiled to C. Parses a tenth of the data."""
    import tomllib

    folder = os.path.dirname(programs.load("nbody").__file__)
    path = os.path.join(os.path.dirname(folder), "bm_tomli_loads", "data", "tomli-bench-data.toml")
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    text = "".join(lines[: len(lines) // 10])
    return lambda: tomllib.loads(text)


def async_tree():
    module = programs.load("async_tree")
    module.NUM_RECURSE_LEVELS = 4
    return lambda: asyncio.run(module.NoneAsyncTree().run())


SIX_MORE = {
    "hexiom": hexiom,
    "nbody": nbody,
    "pyflate": pyflate,
    "sqlglot": sqlglot,
    "tomli_loads": tomli_loads,
    "async_tree": async_tree,
}


def all_programs():
    import compensated_others

    return {**programs.SIX, **SIX_MORE, **compensated_others.ALL}


def cpu_ns(run):
    begin = time.process_time_ns()
    run()
    return time.process_time_ns() - begin


def sum_of(trace, compensated):
    trace.set_compensated(compensated)
    trace.set_by_running(True)
    return sum(trace.tables(["functions"])["functions"]["self_ns"])


RUNS = 4  # runs in a recording


def recorded(run, engine, least):
    """Returns the least CPU time of the recorded runs, and the recorder's share of a run according to the trace. If the
    time is not less than `least`, the trace is not read.
    """
    from vestige import profile
    from vestige.recording import costs

    costs._learned.clear()
    record = profile(engine=engine, compensate=True, sched=True)
    record.start()
    taken = [cpu_ns(run) for _ in range(RUNS)]
    record.stop()
    if min(taken[1:]) >= least:
        return least, 0
    trace = record._trace()
    return min(taken[1:]), (sum_of(trace, False) - sum_of(trace, True)) / RUNS


def run_total(name, engine, rounds):
    """The compensated time is taken from the round whose recorded run took least."""
    run = all_programs()[name]()
    run()
    bare, best = 1 << 62, (1 << 62, 0)
    for _ in range(rounds):
        gc.collect()
        bare = min(bare, *(cpu_ns(run) for _ in range(4)))
        gc.collect()
        found = recorded(run, engine, best[0])
        best = found if found[0] < best[0] else best
    return {"bare": bare, "recorded": best[0], "compensated": best[0] - best[1]}


# ---- peers -------------------------------------------------------------------


def run_peer(name, peer, rounds):
    """Returns the CPU time of a program under another profiler, which is the time that this profiler shows: none of
    them compensates.
    """
    import peers

    run = all_programs()[name]()
    run()
    tool = peers.CProfile() if peer == "cProfile" else peers.VizTracerAnew()
    best = 1 << 62
    for _ in range(rounds):
        gc.collect()
        tool.start()
        best = min(best, cpu_ns(run), cpu_ns(run))
        tool.stop()
        tool.clear()
    return {"recorded": best}


# ---- functions ---------------------------------------------------------------

PARTS = """
textwrap.wrap("one two three four five six seven eight nine ten " * 4, 30)
textwrap.dedent("    a\\n      b\\n    c\\n" * 5)
textwrap.shorten("one two three four five six seven", 20)
json.dumps({"a": [1, 2, 3], "b": {"c": None}}, indent=2)
json.loads('{"a": [1, 2, 3], "b": {"c": null}}')
fractions.Fraction.limit_denominator(fractions.Fraction(314159, 100000), 100)
statistics.mean([1, 2, 3, 4, 5, 6])
statistics.pstdev([1.0, 2.0, 3.5, 4.0])
statistics.median_grouped([1, 2, 2, 3, 4])
urllib.parse.urlencode({"a": 1, "b": "c d", "e": "é"})
urllib.parse.quote("a path/with spaces/and é")
urllib.parse.unquote("a%20path/with%20spaces")
urllib.parse.urljoin("http://a/b/c/d", "../g")
urllib.parse.parse_qs("a=1&b=2&c=3&d=4")
posixpath.normpath("/a/./b/../c//d/e/../f")
posixpath.relpath("/a/b/c/d", "/a/x/y")
posixpath.commonpath(["/a/b/c", "/a/b/d", "/a/b"])
ntpath.normpath("c:/a/./b/../c//d")
fnmatch.translate("*.[ch]pp?")
colorsys.rgb_to_hls(0.2, 0.4, 0.4)
colorsys.hsv_to_rgb(0.5, 0.5, 0.4)
shlex.split("a 'b c' d --e=f \\"g h\\"")
shlex.join(["a", "b c", "d'e"])
html.escape("<a href='x'>y & z</a>")
html.unescape("&lt;a&gt; &amp; &eacute;")
copy.deepcopy([1, [2, 3], {"a": (4, 5)}])
copy.copy({"a": 1})
heapq.merge([1, 4, 7], [2, 5, 8])
bisect.bisect([1, 2, 3, 4], 3)
calendar.monthcalendar(2024, 2)
calendar.month(2024, 2)
ipaddress.ip_address("192.168.10.1")
ipaddress.ip_network("10.0.0.0/24")
pprint.pformat([list(range(6)), {"a": 1, "b": 2}] * 3)
difflib.get_close_matches("appel", ["ape", "apple", "peach", "puppy"])
string.capwords("one two three four")
base64.b32encode(b"some bytes of text")
uuid.uuid5(uuid.NAMESPACE_DNS, "python.org")
mimetypes.guess_type("a/b/file.tar.gz")
email.utils.parseaddr("A Name <a@b.example>")
email.utils.formataddr(("A Name", "a@b.example"))
dataclasses.make_dataclass("C", ["x", "y"])
ast.literal_eval("[1, 2, {'a': (3, 4)}]")
random.sample(range(100), 6)
random.shuffle(list(range(12)))
glob.escape("a[b]*c?")
tokenize.untokenize([(1, "a"), (54, "="), (2, "1")])
quopri.decodestring(b"a=20b=20c")
gettext.c2py("n != 1")
optparse.OptionParser(add_help_option=False)
"""


def stub_of(function):
    """Returns a function that takes the same arguments and does nothing."""
    taken = inspect.signature(function).parameters.values()
    empty = inspect.Parameter.empty
    plain = [each.replace(annotation=empty, default=empty if each.default is empty else None) for each in taken]
    exec(f"def stub{inspect.Signature(plain)}: pass", names := {})
    return names["stub"]


def parts():
    """Yields name and code of a function, a run of many calls, and a run of as many calls of its stub, for each line."""
    for line in filter(None, PARTS.splitlines()):
        called = line.partition("(")[0]
        module = called.rpartition(".")[0]
        if module not in ("urllib.parse", "email.utils"):
            module = module.partition(".")[0]
        exec(f"import {module}", names := {})
        function = eval(called, names)
        bound = function if inspect.ismethod(function) or inspect.isfunction(function) else None
        if bound is None or inspect.isgeneratorfunction(bound):  # calling a generator function only makes a generator
            continue
        exec(f"def take(*args, **named):\n    return args, named\ngiven = take{line[len(called) :]}", names)
        args, named = names["given"]
        given = {"args": args, "named": named, "now": time.perf_counter_ns}
        exec(RUN, run := {"f": function, **given})
        exec(RUN, stub := {"f": stub_of(function), **given})
        yield called, bound.__code__, run["run"], stub["run"]


# Each call is timed separately, and the median counts, because some calls are interrupted or run a garbage collection.
RUN = """
def run(n):
    taken = []
    for _ in range(n):
        begin = now()
        f(*args, **named)
        taken.append(now() - begin)
    return sorted(taken)[n // 2]
"""


def time_part(run):
    """Returns how often the function can be called in about a millisecond."""
    begin = time.thread_time_ns()
    run(10)
    return max(25, min(2000, 10_000_000 // max(1, time.thread_time_ns() - begin)))


def nothing():
    pass


def plain_call_ns():
    """Returns the time of a call of a function that does nothing."""
    best = 1 << 62
    for _ in range(20):
        begin = time.thread_time_ns()
        for _ in range(1000):
            nothing()
            nothing()
            nothing()
            nothing()
        best = min(best, time.thread_time_ns() - begin)
    return best / 4000


def rows_of(trace, code):
    """Returns a function's row in the report."""
    known = trace.functions()
    name, line = code.co_name, code.co_firstlineno
    rows = trace.tables(["functions"], spread=True)["functions"]
    return [row for row in rows if known[row.func][1].rpartition(".")[2] == name and known[row.func][4] == line]


def run_functions(engine, rounds):
    """[name, bare ns of a call, recorded, compensated, error]: the least of the rounds, where what is recorded is the
    median of the calls, since a few of them are interrupted.

    A span has no more of how a function is called than a plain call takes. So what a bare run takes for the clock and
    for passing the arguments is measured with the stub, and taken off."""
    from vestige import profile
    from vestige.recording import costs

    # A median is not affected by fresh pieces of the file, which take time now and then.
    costs.add_storage = lambda model, _: model
    chosen = [(*part, time_part(part[2])) for part in parts()]
    plain_ns = plain_call_ns()
    bare, best = {}, {}
    for _ in range(rounds):
        costs._learned.clear()
        for name, code, run, stub, count in chosen:
            record = profile(engine=engine, compensate=True, gc=False)
            run(5)
            took = run(count) - stub(1000) + plain_ns
            bare[name] = min(bare.get(name, took), took)
            record.start()
            run(count)
            record.stop()
            trace = record._trace()
            plain = rows_of(trace, code)
            trace.set_compensated(True)
            rows = rows_of(trace, code)
            if len(rows) != 1:
                continue
            calls = rows[0].outer_calls
            found = (plain[0].total_median_ns, rows[0].total_median_ns, rows[0].error_ns / calls)
            best[name] = min(best.get(name, found), found)
    return [[name, bare[name], *best[name]] for name, *_ in chosen if name in best]


# ---- all of it ---------------------------------------------------------------


def kept(part):
    return os.path.join(KEPT, f"{part}-{sys.version_info[0]}.{sys.version_info[1]}.json")


def keep(part, rows):
    """Adds results to the stored ones."""
    os.makedirs(KEPT, exist_ok=True)
    known = {}
    if os.path.exists(kept(part)):
        with open(kept(part)) as file:
            known = json.load(file)
    with open(kept(part), "w") as file:
        json.dump({**known, **rows}, file, indent=1)


def child(*arguments):
    done = subprocess.run([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, timeout=600)
    if done.returncode:
        return None
    return json.loads(done.stdout.splitlines()[-1])


def measure(part, which, rounds):
    if part == "functions":
        for engine in which or ("turbo", "safe"):
            keep(part, {engine: child("one-functions", engine, str(rounds))})
        return
    names = [*programs.SIX, *SIX_MORE]
    if part == "others":
        names = [name for name in all_programs() if name not in names]
    one = "one-peer" if part == "peers" else "one-total"
    for how in which or (("cProfile", "VizTracer") if part == "peers" else ("turbo", "safe")):
        for name in names:
            told = child(one, f"{how} {name}", str(rounds))
            keep(part, {f"{how} {name}": told})
            print(how, name, told and {key: f"{value / 1e6:.2f} ms" for key, value in told.items()}, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "part", choices=("totals", "others", "functions", "peers", "write", "one-total", "one-functions", "one-peer")
    )
    parser.add_argument("which", nargs="?")
    parser.add_argument("rounds", nargs="?", type=int, default=4)
    options = parser.parse_args()
    if options.part == "write":
        import compensated_report

        figure = os.path.join(ROOT, "docs", "how", "compensated.svg")
        compensated_report.write(KEPT, os.path.join(HERE, "results", "compensated.md"), figure)
    elif options.part == "one-functions":
        print(json.dumps(run_functions(options.which, options.rounds)))
    elif options.part.startswith("one-"):
        how, name = options.which.split()
        print(json.dumps((run_total if options.part == "one-total" else run_peer)(name, how, options.rounds)))
    else:
        measure(options.part, options.which and [options.which], options.rounds)


if __name__ == "__main__":
    import programs

    main()
