"""Calls that take less than a millisecond, and two that take more."""

import time


def quick():
    pass


def slow():
    quick()
    time.sleep(0.003)


def main():
    for _ in range(20):
        quick()
    slow()
    slow()


main()
