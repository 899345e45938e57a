"""A process that is killed while three of its calls and an annotation are open."""

import os
import signal

import vestige


def leaf():
    pass


def inner():
    for _ in range(10):
        leaf()
    with vestige.record_function("never ends"):
        os.kill(os.getpid(), signal.SIGKILL)


def outer():
    inner()


outer()
