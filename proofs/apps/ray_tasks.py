"""Ray on this machine: tasks and an actor in worker processes."""

import ray


@ray.remote
def square(number):
    return number * number


@ray.remote
class Counter:
    def __init__(self):
        self.total = 0

    def add(self, number):
        self.total += number
        return self.total


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    print(sum(ray.get([square.remote(number) for number in range(20)])))
    counter = Counter.remote()
    print(ray.get([counter.add.remote(number) for number in range(5)])[-1])
    ray.shutdown()
