"""Threads that work, sleep and wait for each other, recorded with --sched."""

import threading
import time


def works(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(20000))


def sleeps(seconds):
    time.sleep(seconds)


def worker(lock):
    with lock:
        works(0.004)
        sleeps(0.003)


def main():
    lock = threading.Lock()
    threads = [threading.Thread(target=worker, args=(lock,), name=f"worker {n}") for n in range(2)]
    for thread in threads:
        thread.start()
    works(0.003)
    for thread in threads:
        thread.join()


main()
