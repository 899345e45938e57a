"""Measures the cost of `sched`: six programs, and a program that mostly switches between threads.

    python bench/sched.py [--rounds 20]

Each program is recorded without `sched` and with it, alternating in one process. The least CPU time of many runs is
shown, which has all threads of the process in it, also vestige's own.

On 3.12 and a busy machine with two processors (12 rounds): richards +1.3 %, deltablue -0.5 %, raytrace +1.3 %, go +0.7 %,
json_dumps +1.6 %, logging -1.0 %, all within what repeats differ by; switching, with 300,000 switches a second, 0.8 us
more for each, which would be 4 % at 50,000. So it is off by default.
"""

import argparse
import os
import tempfile
import threading
import time

import programs
from vestige import profile

PASSES = 5000  # round trips of a token


def switching():
    """Two threads that wait for each other through pipes: each round takes one thread off its processor and puts the
    other on.
    """
    there, back = os.pipe(), os.pipe()

    def answer():
        for _ in range(PASSES):
            os.read(there[0], 1)
            os.write(back[1], b"x")

    def run():
        other = threading.Thread(target=answer)
        other.start()
        for _ in range(PASSES):
            os.write(there[1], b"x")
            os.read(back[0], 1)
        other.join()

    return run


def measure(run, sched, folder):
    """Returns CPU and wall seconds of one recorded run."""
    path = os.path.join(folder, "t.vst")
    with profile(output=path, overwrite=True, sched=sched, gc=False):
        cpu, wall = time.process_time(), time.perf_counter()
        run()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return cpu, wall


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    made = {name: make() for name, make in {**programs.SIX, "switching": switching}.items()}
    print(f"{'program':<12} {'without':>10} {'with sched':>10} {'more':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for name, run in made.items():
            best = {False: (1e9, 1e9), True: (1e9, 1e9)}
            for at in range(2 * rounds):
                sched = at % 4 in (1, 2)
                took = measure(run, sched, folder)
                best[sched] = tuple(map(min, best[sched], took))
            plain, with_sched = best[False][0], best[True][0]
            print(
                f"{name:<12} {plain * 1e3:>7.1f} ms {with_sched * 1e3:>7.1f} ms {with_sched / plain - 1:>+7.1%}", end=""
            )
            if name == "switching":
                rate = 4 * PASSES / best[True][1]
                each = (with_sched - plain) / (4 * PASSES)
                print(f"   {rate:,.0f} switches/s, {each * 1e9:.0f} ns more each", end="")
            print(flush=True)


if __name__ == "__main__":
    main()
