"""The applications that apps.py runs."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field

Pattern = tuple[str, str]


@dataclass
class App:
    """An application. `words` follow `python`, or `vestige run`; {bin} and {port} are replaced."""

    name: str
    words: list[str]
    # the client of a server; the server gets `signal` when the client has ended
    client: list[str] = field(default_factory=list)
    signal: int = signal.SIGTERM
    as_terminal: bool = False  # send the signal to all its processes, like Ctrl-C
    folder: str = "."  # working folder, in a copy of apps/
    sources: list[str] = field(default_factory=list)  # packages whose sources the application needs
    stdlib: str = ""  # a package of the standard library, copied to code/
    variables: dict[str, str] = field(default_factory=dict)
    any_order: bool = False  # sort the printed lines, because threads or processes print them
    unsteady: list[Pattern] = field(default_factory=list)  # patterns of text that differs each time, and replacements
    ignored: list[str] = field(default_factory=list)  # lines that only some runs print
    rounds: int = 3  # runs in each way; the least CPU time counts


def pytest(package: str, how: str, *options: str) -> App:
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *options]
    # Chance decides which of xdist's workers runs a test, and so the order of dots, but not their number.
    ignored = [r"^[.sx]+ +\[ *\d+%\]$"] if how == "-xdist" else []
    return App(f"pytest-{package}{how}", words, folder=package, sources=[package], ignored=ignored)


def server(name: str, words: list[str], pages: list[str], **others: object) -> App:
    app = App(name, words, **others)
    app.any_order = True
    app.client = ["ask_http.py", "{port}", *pages]
    return app


def reloading(name: str, words: list[str]) -> App:
    app = server(name, words, ["/", "--reload", "plain_server.py"], signal=signal.SIGINT, as_terminal=True)
    app.ignored = ["KeyboardInterrupt|Traceback|^  "]  # the processes that Ctrl-C reaches
    return app


COVERAGE = ("--cov", "--cov-report=term")
HERE = "127.0.0.1:{port}"
STREAMLIT = ["--server.headless", "true", "--server.port", "{port}", "--browser.gatherUsageStats", "false"]
PAGES = ["/total/3", "/total/100"]
DJANGO = {"DJANGO_SETTINGS_MODULE": "django_settings"}
GUNICORN = ["{bin}/gunicorn", "-w", "2", "-b", HERE, "site_wsgi:app"]
ITS_PID = [(r"\(\d+\)$", "(<pid>)")]

APPS = [
    *[pytest(package, "") for package in ("click", "jinja2")],
    *[pytest(package, "-xdist", "-n", "2") for package in ("click", "jinja2")],
    *[pytest(package, "-coverage", *COVERAGE) for package in ("click", "jinja2")],
    App("django-test", ["-m", "django", "test", "django_tests"], variables=DJANGO),
    server(
        "django-runserver",
        ["-m", "django", "runserver", HERE],
        PAGES,
        signal=signal.SIGINT,
        as_terminal=True,
        variables=DJANGO,
    ),
    server(
        "flask-debug",
        ["-m", "flask", "--app", "site_wsgi", "run", "--debug", "--port", "{port}"],
        [*PAGES, "--reload", "site_wsgi.py"],
        signal=signal.SIGINT,
        as_terminal=True,
        ignored=[r"GET /word", "Inotify queue overflowed"],  # the program watches files that others use, too
        unsteady=[(r"PIN: [\d-]+", "PIN: <pin>")],
    ),
    server("gunicorn-sync", GUNICORN, PAGES, unsteady=ITS_PID),
    server("gunicorn-gthread", [*GUNICORN, "-k", "gthread", "--threads", "4"], PAGES, unsteady=ITS_PID),
    server("gunicorn-gevent", [*GUNICORN, "-k", "gevent"], PAGES, unsteady=ITS_PID),
    server("uvicorn-uvloop", ["-m", "uvicorn", "--loop", "uvloop", "--port", "{port}", "site_asgi:app"], ["/", "/x"]),
    server(
        "uvicorn-reload",
        ["-m", "uvicorn", "--reload", "--port", "{port}", "site_asgi:app"],
        ["/", "/x", "--reload", "site_asgi.py"],
        signal=signal.SIGINT,
        as_terminal=True,
        ignored=[r"GET /word"],
    ),
    server("streamlit", ["-m", "streamlit", "run", "streamlit_page.py", *STREAMLIT], ["/_stcore/health"]),
    reloading("hupper", ["hupper_server.py", "{port}"]),
    reloading("watchfiles", ["-m", "watchfiles", "plain_server.main", "--args", "{port}"]),
    App(
        "celery",
        [
            "-m",
            "celery",
            "-A",
            "celery_tasks",
            "worker",
            "-c",
            "2",
            "-n",
            "one",
            "--without-gossip",
            "--without-mingle",
        ],
        client=["ask_celery.py"],
        any_order=True,
    ),
    App("black", ["-m", "black", "--check", "code"], stdlib="json", any_order=True),
    App("mypy", ["-m", "mypy", "--no-incremental", "code/json"], stdlib="json"),
    App("pylint", ["-m", "pylint", "--persistent=n", "code/json"], stdlib="json"),
    App("sphinx", ["-m", "sphinx", "-b", "html", "docs", "out"]),
    App("nbconvert", ["-m", "nbconvert", "--to", "markdown", "--execute", "--stdout", "cells.ipynb"]),
    App("pandas", ["pandas_tables.py"]),
    App("matplotlib", ["matplotlib_plots.py"]),
    App("sqlalchemy", ["sqlalchemy_orm.py"]),
    App("scikit-learn-loky", ["sklearn_loky.py"]),
    App("numba", ["numba_loops.py"]),
    App("grpcio", ["grpc_calls.py"]),
    App("hf-trainer", ["hf_trainer.py"], unsteady=[(r"(runtime|per_second)': '[^']*'", r"\1'")]),
    App("dataloader", ["dataloader.py"]),
    App("torch-compile", ["torch_compile.py"], variables={"TORCHINDUCTOR_CACHE_DIR": "inductor"}),
    App("torchrun", ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "ddp.py"], any_order=True),
    App("lightning", ["lightning_fit.py"]),
    App("jax", ["jax_steps.py"]),
    App("dask", ["dask_cluster.py"]),
    App("pyspark", ["spark_frames.py"], ignored=[r"WARN|Picked up"]),
    App("ray", ["ray_tasks.py"]),
]
