"""Twenty programs from which compensated.py estimates how much programs differ: from pyperformance, and with modules of
the standard library. None of them is among the twelve that are compared with the aim.
"""

import asyncio
import io
import os
import pickle
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))

import programs


def chaos():
    import random

    module = programs.load("chaos")
    points = ((1.6, 3.3), (1.58, 4.12), (1.31, 5.29), (1.62, 5.33), (2.89, 5.5), (2.37, 4.38), (1.66, 4.36))
    spline = module.Spline([module.GVector(x, y, 0) for x, y in points], 3, [0, 0, 0, 1, 1, 1, 2, 2, 2])

    def run():
        random.seed(1234)
        module.Chaosgame([spline], 0.25).create_image_chaos(64, 64, 4000, None, 1234)

    return run


def float_points():
    module = programs.load("float")
    return lambda: module.benchmark(20000)


def coroutines():
    module = programs.load("coroutines")
    return lambda: module.bench_coroutines(1)


def deepcopy():
    module = programs.load("deepcopy")
    return lambda: (module.benchmark(20), module.benchmark_reduce(200), module.benchmark_memo(10))


def async_generators():
    module = programs.load("async_generators")

    async def main():
        async for _ in module.tree(range(8000)):
            pass

    return lambda: asyncio.run(main())


def nqueens():
    module = programs.load("nqueens")
    return lambda: module.bench_n_queens(7)


def scimark():
    module = programs.load("scimark")
    return lambda: (module.bench_MonteCarlo(1, 5000), module.bench_SOR(1, 20, 5, module.Array2D))


def unparse():
    import ast
    import textwrap

    with open(textwrap.__file__, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    return lambda: [ast.unparse(tree) for _ in range(3)]


def tokens():
    import textwrap
    import tokenize

    with open(textwrap.__file__, "rb") as file:
        source = file.read()
    return lambda: [sum(1 for _ in tokenize.tokenize(io.BytesIO(source).readline)) for _ in range(4)]


def pickles():
    data = [{"a": [1, 2, 3, ("x", i)], "b": {"c": None, "d": float(i)}} for i in range(300)]

    def run():
        file = io.BytesIO()
        pickle._Pickler(file).dump(data)
        file.seek(0)
        pickle._Unpickler(file).load()

    return run


def decimals():
    import _pydecimal

    decimal = _pydecimal.Decimal

    def run():
        x = decimal(1)
        for i in range(1, 250):
            x = (x + decimal(i) / decimal(7)).quantize(decimal("0.0001"))

    return run


def html():
    import html.parser

    parts = (f'<div class="c{i}" id=x{i}><p>text &amp; more {i}</p><br/></div>' for i in range(400))
    page = "<html><body>" + "".join(parts) + "</body></html>"

    def run():
        parser = html.parser.HTMLParser()
        parser.feed(page)
        parser.close()

    return run


def config():
    import configparser

    parts = (f"[s{i}]\n" + "".join(f"key{j} = value {j} ; c\n" for j in range(12)) for i in range(60))
    text = "".join(parts)

    def run():
        parser = configparser.ConfigParser()
        parser.read_string(text)
        for section in parser.sections():
            dict(parser.items(section))

    return run


MAIL = """From: A <a@b.example>
To: B <b@c.example>
Subject: =?utf-8?q?caf=C3=A9?= and more
Content-Type: multipart/mixed; boundary=xx

--xx
Content-Type: text/plain

hello
--xx--
"""


def mail():
    import email
    import email.policy

    def run():
        for _ in range(25):
            message = email.message_from_string(MAIL, policy=email.policy.default)
            message["subject"]
            message["to"].addresses
            message.get_body().get_content()
            message.as_string()

    return run


def queues():
    async def give(queue):
        for i in range(150):
            await queue.put(i)
        await queue.put(None)

    async def take(queue):
        while (await queue.get()) is not None:
            await asyncio.sleep(0)

    async def main():
        all_queues = [asyncio.Queue(4) for _ in range(8)]
        await asyncio.gather(*map(give, all_queues), *map(take, all_queues))

    return lambda: asyncio.run(main())


def tasks():
    """Tasks that end immediately."""

    async def nothing():
        pass

    async def main():
        for _ in range(5):
            await asyncio.gather(*(nothing() for _ in range(300)))

    return lambda: asyncio.run(main())


def arguments():
    import argparse

    def run():
        for _ in range(12):
            parser = argparse.ArgumentParser()
            for i in range(15):
                parser.add_argument(f"--opt{i}", type=int, default=i, help="help")
            parser.add_subparsers().add_parser("x").add_argument("f")
            parser.parse_args(["--opt3", "4", "x", "file"])
            parser.format_help()

    return run


def xml():
    from xml.dom import minidom

    page = "<r>" + "".join(f'<a i="{i}"><b>t{i}</b></a>' for i in range(300)) + "</r>"
    return lambda: [minidom.parseString(page).toprettyxml() for _ in range(3)]


def templates():
    import datetime
    import string

    template = string.Template("$a and ${b} cost $$5 $c")

    def run():
        for i in range(1500):
            template.substitute(a=i, b="x", c=3)
            datetime.date(2020, 1, 1 + i % 28).isoformat()

    return run


def fractions():
    from fractions import Fraction

    def run():
        total = Fraction(0)
        for i in range(1, 800):
            total = ((total + Fraction(i, i + 1)) % 3).limit_denominator(1000)

    return run


ALL = {
    "chaos": chaos,
    "float": float_points,
    "coroutines": coroutines,
    "deepcopy": deepcopy,
    "async_generators": async_generators,
    "nqueens": nqueens,
    "scimark": scimark,
    "unparse": unparse,
    "tokens": tokens,
    "pickles": pickles,
    "decimals": decimals,
    "html": html,
    "config": config,
    "mail": mail,
    "queues": queues,
    "tasks": tasks,
    "arguments": arguments,
    "xml": xml,
    "templates": templates,
    "fractions": fractions,
}
