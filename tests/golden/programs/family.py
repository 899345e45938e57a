"""A process that forks one child, starts another by spawning and a third as a command; each calls step()."""

import multiprocessing
import subprocess
import sys


def step():
    pass


def work(times):
    for _ in range(times):
        step()


if __name__ == "__main__":
    work(1)
    for number, method in enumerate(("fork", "spawn"), start=2):
        child = multiprocessing.get_context(method).Process(target=work, args=(number,), name=f"the {method} one")
        child.start()
        child.join()
    subprocess.run([sys.executable, "-c", "def step(): pass\nfor _ in range(4): step()"], check=True)
