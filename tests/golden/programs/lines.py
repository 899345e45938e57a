"""Calls that know the line that made them: of two lines that call a function, within sorted(), in a recursion."""

import time


def leaf():
    time.sleep(0.001)


def down(depth):
    leaf()
    if depth:
        down(depth - 1)


def main():
    leaf()
    for _ in range(2):
        leaf()
    down(2)
    sorted([2, 1], key=lambda number: time.sleep(0.001) or number)


main()
