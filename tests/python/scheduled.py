"""Random programs of asyncio tasks, and an event loop that notes each step of each task.

Time is simulated: the loop jumps to the next timer, so that no program takes long and no result depends on the clock.
"""

import asyncio
import random
import selectors

NOTHING, FUTURE, TASK, GATHER = range(4)  # the kinds of objects that a task waits for, as in traces
ENDED = -1


class Selector(selectors.SelectSelector):
    """Moves the loop's clock instead of waiting for a timer."""

    loop = None

    def select(self, timeout=None):
        assert timeout is not None, "every task waits for another one"
        self.loop.now += timeout
        return super().select(0)


class Noting:
    """A mixin for event loops: notes the steps of tasks."""

    steps = None  # [task, the object it waits for after the step]

    def call_soon(self, callback, *args, context=None):
        task = getattr(callback, "__self__", None)
        if not hasattr(task, "_fut_waiter"):
            return super().call_soon(callback, *args, context=context)

        def step(*args):
            entry = [task, None]
            self.steps.append(entry)
            callback(*args)
            entry[1] = awaited_by(task)

        return super().call_soon(step, *args, context=context)


class Loop(Noting, asyncio.SelectorEventLoop):
    def __init__(self):
        self.now = 0.0
        selector = Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self):
        return self.now


def awaited_by(task):
    waiter = task._fut_waiter
    if task.done():
        return ENDED
    if waiter is None:
        return NOTHING
    if type(waiter).__name__ == "_GatheringFuture":
        return GATHER
    return TASK if hasattr(waiter, "_fut_waiter") else FUTURE


def run(main, loop=None):
    """Runs a program to its end. Returns the names of the tasks in the order in which they ran, with the object that
    each waited for after the step.
    """
    loop = loop or Loop()
    loop.steps = []
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(main)
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    return [(task.get_name(), awaits) for task, awaits in loop.steps]


# ---- a program at random --------------------------------------------------------

KINDS = ("turn", "sleep", "get", "put", "lock", "child", "gather", "forget", "nest", "stubborn", "fail", "cancel")


class World:
    """Objects that the tasks of one program share."""

    def __init__(self, seed, second):
        self.random = random.Random(seed)
        self.second = second
        self.queue = asyncio.Queue(2)
        self.lock = asyncio.Lock()
        self.children = []
        self.count = 0

    def script(self, depth):
        """Returns the list of a task's actions."""
        return [self.random.choice(KINDS) for _ in range(self.random.randint(1, 5))] if depth else ["turn"]

    def start(self, depth):
        self.count += 1
        task = asyncio.ensure_future(actor(self, self.script(depth), depth))
        task.set_name(f"actor {self.count}")
        return task


async def actor(world, script, depth):
    for kind in script:
        await act(world, kind, depth)


async def nested(world, script, levels):
    if levels:
        return await nested(world, script, levels - 1)
    await actor(world, script, 1)


async def act(world, kind, depth):
    if kind == "turn":
        await asyncio.sleep(0)
    elif kind == "sleep":
        await asyncio.sleep(world.random.randint(1, 5) * world.second)
    elif kind in ("get", "put"):
        used = world.queue.get() if kind == "get" else world.queue.put(1)
        try:
            await asyncio.wait_for(used, 3 * world.second)
        except TimeoutError:
            pass
    elif kind == "lock":
        async with world.lock:
            await asyncio.sleep(world.second)
    elif kind == "child":
        child = world.start(depth - 1)
        await asyncio.wait([child])
        child.cancelled() or child.exception()
    elif kind == "gather":
        await asyncio.gather(*(world.start(depth - 1) for _ in range(3)), return_exceptions=True)
    elif kind == "forget":
        world.children.append(world.start(depth - 1))
    elif kind == "nest":
        await nested(world, world.script(1), world.random.randint(1, 6))
    elif kind == "stubborn":
        try:
            await nested(world, ["sleep"], 3)
        except asyncio.CancelledError:
            await asyncio.sleep(2 * world.second)
            raise
    elif kind == "cancel" and world.children:
        world.random.choice(world.children).cancel()
    elif kind == "fail":
        raise ValueError(kind)


async def program(seed, second=1):
    """Runs a random program. `second`: the length of a second, in a loop with real time."""
    world = World(seed, second)
    first = [world.start(3) for _ in range(4)]
    done = await asyncio.gather(*first, return_exceptions=True)
    while world.children:
        child = world.children.pop()
        await asyncio.wait([child])
        child.cancelled() or child.exception()
    assert all(one is None or isinstance(one, (ValueError, asyncio.CancelledError)) for one in done)
