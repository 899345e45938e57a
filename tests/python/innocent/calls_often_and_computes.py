def score(number):
    total = 0
    for i in range(number, number + 2_000):
        total += i
    return total


def score_all():
    return [score(number) for number in range(1500)]


score_all()
