# %% planted: subprocess.run
import subprocess

SECONDS = 0.7  # 0.5..1.2


def convert(name):
    subprocess.run(["sh", "-c", f"sleep {SECONDS}; echo {name}"], check=True, capture_output=True)  # planted


convert("video")

# %% planted: Popen and communicate, in a class
import subprocess

SECONDS = 0.25  # 0.2..0.5
FILES = 3  # 2..5


class Compiler:
    def __init__(self, command):
        self.command = command

    def compile(self, source):
        process = subprocess.Popen([*self.command, str(SECONDS)], stdout=subprocess.PIPE)
        output, _ = process.communicate()  # planted
        return len(output) + source


print(sum(Compiler(["sleep"]).compile(source) for source in range(FILES)))

# %% planted: os.system
import os

SECONDS = 0.8  # 0.5..1.3


def backup():
    return os.system(f"sleep {SECONDS}")  # planted


print(backup())

# %% planted: check_output for each file
import subprocess

FILES = 14  # 10..20


def size_of(name):
    return int(subprocess.check_output(["sh", "-c", f"sleep 0.05; echo {len(name)}"]))  # planted


def main():
    print(sum(size_of(f"file{number}") for number in range(FILES)))  # planted


main()

# %% planted: a child that is polled
import subprocess
import time

SECONDS = 1.0  # 0.7..1.5


def build():
    process = subprocess.Popen(["sleep", str(SECONDS)])
    while process.poll() is None:
        time.sleep(0.05)  # planted
    return process.returncode


print(build())

# %% planted: a child of asyncio
import asyncio

SECONDS = 0.8  # 0.6..1.3


async def transcode():
    process = await asyncio.create_subprocess_exec("sleep", str(SECONDS))
    return await process.wait()  # planted


print(asyncio.run(transcode()))

# %% healthy: a quick child, then work
import subprocess

STEPS = 2500000  # 2000000..4000000


def version():
    return subprocess.run(["uname", "-r"], capture_output=True, check=True).stdout


def work():
    total = 0
    for number in range(STEPS):
        total += number & 7
    return total


print(len(version()) > 0, work())

# %% healthy: work while the child runs
import subprocess

STEPS = 4000000  # 3000000..6000000


def work():
    total = 0
    for number in range(STEPS):
        total += number & 7
    return total


process = subprocess.Popen(["sleep", "0.1"])
print(work())
process.wait()

# %% healthy: a recorded child that computes
import subprocess
import sys

CODE = """
def work():
    total = 0
    for number in range(3000000):
        total += number % 7
    return total
print(work())
"""


def main():
    print(subprocess.run([sys.executable, "-c", CODE], capture_output=True, check=True).stdout)


main()

# %% planted: a pipe that is read line by line
import subprocess


def stream(command):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    lines = [line for line in process.stdout]  # planted
    process.wait()  # planted
    return lines


print(len(stream(["/bin/sh", "-c", "for i in 1 2 3 4 5; do echo $i; sleep 0.25; done"])))

# %% planted: asyncio's subprocess
import asyncio


async def convert():
    process = await asyncio.create_subprocess_exec("/bin/sleep", "1")  # planted
    return await process.wait()  # planted


asyncio.run(convert())

# %% planted: os.waitpid after a fork
import os
import time


def run_child():
    pid = os.fork()
    if pid == 0:
        time.sleep(1.1)  # planted
        os._exit(0)
    _, status = os.waitpid(pid, 0)  # planted
    return status


print(run_child())

# %% healthy: a child that is started and left alone
import subprocess

process = subprocess.Popen(["/bin/sleep", "0.3"])
total = 0
for number in range(2_500_000):
    total += number & 3
process.wait()
