"""Programs that proofs/attach_races.py attaches to, at difficult moments: `attach_races_targets.py KIND`.

The programs in UNTIL_TOLD run until their standard input ends; the others end by themselves. Their output does not
depend on how long they ran.
"""

import os
import re
import select
import signal
import sys
import threading
import time

UNTIL_TOLD = ("fork", "gil", "recursion", "threads", "signals")
ENDING = ("start", "end", "exec")
ROUNDS = 30  # how often a program replaces itself with exec


def told():
    return bool(select.select([0], [], [], 0)[0])


def work(number):
    return sum([leaf(i) for i in range(number)])


def leaf(number):
    return number * 2


def start():
    """Can be attached to from its first instruction on."""
    return [work(200) for _ in range(60000)][-1]


def end():
    """Ends in other ways than by returning, while a thread still computes."""
    threading.Thread(target=lambda: [work(100) for _ in range(10**9)], daemon=True).start()
    time.sleep(0.7)
    print("end", flush=True)
    raise SystemExit(7)


def fork():
    wrong = 0
    while not told():
        child = os.fork()
        if child == 0:
            os._exit(work(10) % 256)
        wrong += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 90
    return wrong


def exec_():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    work(200)
    if rounds < ROUNDS:
        os.execv(sys.executable, [*sys.orig_argv[:-1], str(rounds + 1)] if rounds else [*sys.orig_argv, "1"])
    return rounds


def gil():
    """Runs an instruction of Python that takes 20 ms or more; every second one does not let other threads run."""
    while not told():
        re.match(r"(a+)+$", "a" * 19 + "b")
        work(10)
    return work(10)


def down(number):
    return down(number + 1) + 1


def recursion():
    found = set()
    while not told():
        try:
            down(0)
        except RecursionError as error:
            found.add(type(error).__name__)
    return sorted(found)


def threads():
    over = threading.Event()
    wrong = []

    def run(number):
        while not over.is_set():
            if work(number) != number * (number - 1):
                wrong.append(number)
            time.sleep(0.001)

    running = [threading.Thread(target=run, args=(number,)) for number in range(60)]
    for thread in running:
        thread.start()
    while not told():
        time.sleep(0.005)
    over.set()
    for thread in running:
        thread.join()
    return wrong


def signals():
    """Gets an alarm every millisecond, and SIGUSR1 as fast as a child can send it."""
    count = [0]

    def handle(*_):
        count[0] += 1

    for number in (signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, handle)
    me, sender = os.getpid(), os.fork()
    if sender == 0:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in (signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_DFL)
        while os.getppid() == me:
            os.kill(me, signal.SIGUSR1)
            os.kill(me, signal.SIGUSR2)
            time.sleep(0.0002)
        os._exit(0)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    while not told():
        work(50)
    signal.setitimer(signal.ITIMER_REAL, 0)
    os.kill(sender, signal.SIGKILL)
    os.waitpid(sender, 0)
    return count[0] > 10


if __name__ == "__main__":
    if "LISTEN_AT" in os.environ:
        import vestige

        vestige.listen(os.environ["LISTEN_AT"])
    print(globals()[{"exec": "exec_"}.get(sys.argv[1], sys.argv[1])](), flush=True)
