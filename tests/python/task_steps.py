"""The steps of the tasks of a trace, for tests that compare them with what they know."""

from vestige import Trace

GOES_ON = -2  # a step has several calls, and this is not the last


class Read:
    """Steps, in order of time, with names in place of numbers."""

    def __init__(self, path, **options):
        trace = Trace(str(path))
        self.functions = trace.functions()
        self.read = trace.tasks(steps=True, **options)
        self.tasks = {task[0]: task for task in self.read["tasks"]}
        self.steps = sorted(self.read["steps"], key=lambda step: step[2])

    def name(self, number):
        return self.tasks[number][3]

    def function(self, number):
        return self.functions[number][1] if number else None

    def order(self):
        """[(name, what it waits for afterwards)]"""
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
        """Of its steps: the task that woke it, and the function."""
        by = [(step[6], step[7]) for step in self.steps_of(name)]
        return [(self.name(task) if task > 0 else task, self.function(function)) for task, function in by]
