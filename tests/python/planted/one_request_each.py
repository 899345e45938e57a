import time


def fetch(number):
    time.sleep(0.0002)
    return number


def make_report(numbers):
    return [fetch(number) for number in numbers]


make_report(range(1500))
