"""Threads with names and without, annotations that overlap in tasks of asyncio, greenlets where there are any."""

import asyncio
import threading

import vestige


def leaf(n):
    return abs(n)


def work(number):
    with vestige.record_function("job", str(number)):
        for n in range(number + 1):
            leaf(n)


async def task(name, turns):
    with vestige.record_function(name):
        for _ in range(turns):
            await asyncio.sleep(0)


async def tasks():
    await asyncio.gather(task("long", 3), task("short", 1))


def switch():
    from greenlet import getcurrent, greenlet

    main = getcurrent()

    def other():
        leaf(-1)
        main.switch()
        leaf(-2)

    beside = greenlet(other)
    beside.switch()
    leaf(-3)
    beside.switch()


def main():
    threads = [threading.Thread(target=work, args=(n,), name=f"worker {n}" if n else None) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(tasks())
    switch()


main()
