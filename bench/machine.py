"""The machine of a measurement, and how much of it other processes used meanwhile."""

import datetime
import os
import platform
import resource
import tempfile


def cpu_model():
    with open("/proc/cpuinfo") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def is_virtual():
    with open("/proc/cpuinfo") as cpuinfo:
        return " hypervisor" in cpuinfo.read()


def filesystem(path):
    """Returns the type of the file system of a path."""
    path, best, kind = os.path.realpath(path), "", "unknown"
    with open("/proc/mounts") as mounts:
        for line in mounts:
            _, place, type_, *_ = line.split()
            if len(place) >= len(best) and os.path.commonpath([path, place]) == place:
                best, kind = place, type_
    return kind


def describe():
    virtual = ", virtual" if is_virtual() else ""
    return {
        "CPU": f"{cpu_model()}, {os.cpu_count()} CPUs{virtual}",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_version()}, {platform.python_compiler()}",
        "traces on": filesystem(tempfile.gettempdir()),
        "date": datetime.date.today().isoformat(),
    }


class Others:
    """The share of CPU time that other processes used, from construction until share() is called."""

    def __init__(self):
        self.busy, self.total, self.own = self._now()

    @staticmethod
    def _now():
        with open("/proc/stat") as stat:
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
        busy = user + nice + system + irq + softirq + steal
        own = sum(
            usage.ru_utime + usage.ru_stime
            for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        )
        tick = os.sysconf("SC_CLK_TCK")
        return busy / tick, (busy + idle + iowait) / tick, own

    def share(self):
        busy, total, own = self._now()
        return max(0.0, (busy - self.busy - (own - self.own)) / max(total - self.total, 1e-9))
