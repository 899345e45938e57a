"""More records than the file may hold, long ones so that few fill it: the oldest are dropped, what is open stays open."""

import vestige

ROUNDS = 2000


def leaf():
    pass


def work(round):
    with vestige.record_function("round", f"{round} " + "long " * 900):
        leaf()


def main():
    for round in range(ROUNDS):
        work(round)


main()
