import time


def poll():
    for _ in range(6):
        time.sleep(0.05)


poll()
