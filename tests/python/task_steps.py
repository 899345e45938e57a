"""Reads the steps of a trace's tasks, for tests that compare them with known steps."""

from vestige import Trace

GOES_ON = -2  # a step consists of several calls, and this call is not the last
ENDED = -1


def tasks_of(trace):
    """ "tasks": number, thread, function, name, start, end, steps, ns in steps, ns awaiting, longest step, its start, how
    it ended, kind. "awaits": function, kind, function that waited, count, ns. "steps": task, function, start, end, what
    is awaited then or ENDED or GOES_ON, function that waits, task that woke it or -1, function of that."""
    read = trace.tables(["task", "task_awaits", "task_steps"])
    return {
        "tasks": [
            (
                row.task,
                row.thread,
                row.func,
                row.task_name or "",
                row.start_ns,
                row.start_ns + row.duration_ns,
                row.steps,
                row.step_ns,
                row.awaiting_ns,
                row.longest_step_ns,
                row.longest_step_start_ns,
                row.ended,
                row.kind,
            )
            for row in read["task"]
        ],
        "awaits": [
            (row.func, row.awaits, row.awaiting or 0, row.waits, row.awaiting_ns) for row in read["task_awaits"]
        ],
        "steps": [
            (
                row.task,
                row.func,
                row.start_ns,
                row.start_ns + row.duration_ns,
                GOES_ON if row.goes_on else ENDED if row.awaits is None else row.awaits,
                row.awaiting or 0,
                -1 if row.waker_task is None else row.waker_task,
                row.waker or 0,
            )
            for row in read["task_steps"]
        ],
    }


class Read:
    """The steps in order of time, with names in place of numbers."""

    def __init__(self, path):
        trace = Trace(str(path))
        self.functions = trace.functions()
        self.read = tasks_of(trace)
        self.tasks = {task[0]: task for task in self.read["tasks"]}
        self.steps = sorted(self.read["steps"], key=lambda step: step[2])

    def name(self, number):
        return self.tasks[number][3]

    def function(self, number):
        return self.functions[number][1] if number else None

    def order(self):
        """Returns [(name, the object it waits for afterwards)]."""
        found, going_on = [], None
        for task, _, _, _, awaits, *_ in self.steps:
            if going_on == task:
                found.pop()
            found.append((self.name(task), awaits))
            going_on = task if awaits == GOES_ON else None
        return found

    def named(self, name):
        (task,) = [task for task in self.read["tasks"] if task[3] == name]
        return task

    def steps_of(self, name):
        return [step for step in self.steps if self.name(step[0]) == name]

    def wakers_of(self, name):
        """Returns, for each step of a task, the task that woke it, and the function that did."""
        by = [(step[6], step[7]) for step in self.steps_of(name)]
        return [(self.name(task) if task > 0 else task, self.function(function)) for task, function in by]
