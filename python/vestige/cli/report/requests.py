"""Causes in loops: many small requests instead of one, and work that a loop repeats for nothing."""

from __future__ import annotations

from vestige.base.quantities import duration
from vestige.reading.awaits import FUTURE, SOCKET
from vestige.reading.kinds import NATIVE, PYTHON
from vestige.reading.labels import plain_name
from vestige.reading.libraries import OWN
from vestige.reading.waits import LOCK, SLEEP, SPIN

from .findings import Finding, place, waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .data import Node
    from .findings import Evidence

SITE_CALLS, SITE_SHARE, SITE_OUTSIDE = 1000, 0.2, 0.5
FEW_CALLS, FEW_NS = 50, 200_000  # fewer calls are requests, too, if each took so long outside of the program
ONLY_SLEEPS = 0.9
FINDINGS = 3  # the most findings of this kind
WAITS_FOR_EVENTS = ("select", "poll", "zmq_poll", "control", "accept", "_accept")  # event loops and servers call these
OUTSIDE = (
    "execute", "executemany", "fetchone", "fetchmany", "fetchall", "send", "sendall", "open", "stat", "request",
    "posix_spawn", "fork_exec", "system",
)  # fmt: skip
FILES = ("read", "readline", "readlines", "close", "__exit__")  # methods of a file that was opened
RESUMES = ("generator", "coroutine", "async_generator")  # their method send() is no request


def _asks_outside(node: Node) -> int:
    """Returns the time of a call that requests something from outside of the program: a file, a database, another
    machine. A wait for a lock, such as that of a queue, is a wait for another thread and does not count.
    """
    if node.kind != NATIVE:
        return 0
    name, kind = plain_name(node.name), waits(node)
    owner = node.name.partition(" of ")[2].removesuffix(" object>")
    asks = (name in OUTSIDE and not owner.startswith(RESUMES)) or (name in FILES and owner.startswith("_io."))
    return node.total_ns if asks or (kind not in ("", LOCK, SPIN) and name not in WAITS_FOR_EVENTS) else 0


def outside_of(evidence: Evidence) -> list[int]:
    """Returns for each place the time of requests to the outside, in the place itself and below."""
    places = evidence.places
    sums = [0] * len(places.nodes)
    for at in range(len(sums) - 1, -1, -1):
        sums[at] = min(max(sums[at], _asks_outside(places.nodes[at])), places.nodes[at].total_ns)
        if places.parents[at] >= 0:
            sums[places.parents[at]] += sums[at]
    return sums


class Site:
    """A function whose loop calls other functions, some of which make requests to the outside."""

    def __init__(self, at: int, repeats: int = 0) -> None:
        self.at = at
        self.repeats = repeats  # how often it makes a call each time it runs; 0: as often as its first call says
        self.calls: list[int] = []
        self.total_ns = self.outside_ns = 0


RECEIVES = ("recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "recvmsg_into", "read")
SENDS = ("send", "sendall", "sendmsg", "sendto", "write")


def serves(node: Node, *, sends: bool = True) -> bool:
    """Returns whether a loop receives from sockets first and sends then, as servers do. Calls inside are in the order
    in which they began. Without `sends`, the loop may also send nothing.
    """
    received = False
    work = list(reversed(list(node.children.values())))
    while work:
        at = work.pop()
        name = plain_name(at.name) if at.kind == NATIVE and "ocket" in at.name else ""
        if name in SENDS:
            return received
        received |= name in RECEIVES
        work.extend(reversed(list(at.children.values())))
    return received and not sends


def _sites(evidence: Evidence) -> list[Site]:
    """Returns the functions with such loops. The calls of one loop body are added up."""
    places = evidence.places
    outside = outside_of(evidence)
    slept = places.add_up(lambda node: node.total_ns if waits(node) == SLEEP else 0)
    sites: dict[int, Site] = {}
    for at, node in enumerate(places.nodes):
        parent = places.parents[at]
        each = node.calls // max(places.nodes[parent].calls, 1) if parent >= 0 else 0
        if places.importing[at] or each < FEW_CALLS:
            continue
        is_own = node.owner == OWN and (node.kind != NATIVE or places.own[parent] == parent)
        # A function that only sleeps stands for a request. A loop that sleeps by itself has a pace of its own.
        only_sleeps = node.kind == PYTHON and slept[at] >= ONLY_SLEEPS * node.total_ns
        requests = outside[at] - (0 if only_sleeps else slept[at])
        is_slow = is_own and requests >= FEW_NS * node.calls and not places.started[at]
        if each < SITE_CALLS and not is_slow:
            continue
        if outside[at] < SITE_OUTSIDE * node.total_ns:
            continue
        around = parent if places.nodes[parent].kind != NATIVE else places.above(parent)
        if around < 0:
            continue
        site = sites.setdefault(around, Site(around, each if around != parent else 0))
        site.calls.append(at)
        site.total_ns += node.total_ns
        site.outside_ns += outside[at]
    found = [site for site in sites.values() if not serves(places.nodes[site.at])]
    return sorted([*found, *_awaiting_sites(evidence)], key=lambda site: -site.total_ns)


AT_ONCE = 1.1
PREFIX = "[await] "
READS, WRITES = "StreamReader.", "StreamWriter."


def _awaits_outside(root: Node) -> tuple[int, int]:
    """Returns how often and how long tasks waited below a place for sockets, for something that other code completes,
    or in a function that sleeps.
    """
    count = ns = 0
    work = [root]
    while work:
        node = work.pop()
        work.extend(node.children.values())
        what = node.shown.removeprefix(PREFIX)
        if node.kind or what == node.shown or (node is root and what == SLEEP):
            continue
        if what in (SLEEP, SOCKET, FUTURE) or what.startswith(READS):
            count, ns = count + node.waits, ns + node.awaiting_ns
    return count, ns


def _answers(root: Node) -> bool:
    """Returns whether a coroutine reads from a stream before it writes to one, as servers do."""
    work = [root]
    while work:
        node = work.pop()
        name = plain_name(node.name) if node.kind == PYTHON else ""
        if name.startswith((READS, WRITES)):
            return name.startswith(READS)
        work.extend(reversed(list(node.children.values())))
    return False


def _awaiting_sites(evidence: Evidence) -> list[Site]:
    """Returns the coroutines that await many requests, one after the other. The tree counts the steps of a coroutine:
    one for each call, and one for each time that it waited.
    """
    places = evidence.places
    waited = places.add_up(lambda node: 0 if node.kind else node.waits)
    sites: list[Site] = []
    for at, node in enumerate(places.nodes):
        parent = places.parents[at]
        around = places.nodes[parent] if parent >= 0 else None
        if around is None or not node.awaiting_ns or PYTHON not in (node.kind, around.kind) or around.owner != OWN:
            continue
        calls, calls_around = node.calls - waited[at], around.calls - waited[parent]
        count, ns = _awaits_outside(node)
        each = calls // max(calls_around, 1)
        if each < FEW_CALLS or ns < max(FEW_NS * calls, SITE_OUTSIDE * node.awaiting_ns) or count < FEW_CALLS:
            continue
        if around.awaiting_ns > AT_ONCE * evidence.wall_ns or _answers(around):
            continue
        site = Site(parent, each)
        site.calls.append(at)
        site.total_ns, site.outside_ns = node.awaiting_ns, ns
        sites.append(site)
    return sites


def many_requests(evidence: Evidence) -> list[Finding]:
    """Fires if a function makes at least 1,000 calls each time it runs (N+1), or 50 slow calls, and these take a
    fifth of the time, half of which is outside of the program.
    """
    found = []
    for site in _sites(evidence)[:FINDINGS]:
        if site.total_ns < SITE_SHARE * evidence.rest_ns:
            break
        found.append(_requests(evidence, site))
    return found


def _requests(evidence: Evidence, site: Site) -> Finding:
    places = evidence.places
    around = places.nodes[site.at]
    calls = sorted((places.nodes[at] for at in site.calls), key=lambda node: -node.total_ns)
    first = calls[0]
    names = [plain_name(node.name) if node.kind == NATIVE else node.shown for node in calls[:FINDINGS]]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    evidence.explained.add(around.shown)
    each = site.repeats or first.calls // max(around.calls, 1)
    return Finding(
        "many requests",
        f"{around.shown} calls {listed} {each:,} times each time it runs: {duration(site.total_ns)} "
        f"({evidence.share(site.total_ns)}), of which {min(site.outside_ns / site.total_ns, 1):.0%} is outside of the "
        "program.",
        where={**place(around), "calls": first.shown},
        numbers={
            "calls": first.calls,
            "calls_of_caller": around.calls,
            "total_ns": site.total_ns,
            "outside_ns": site.outside_ns,
            "passed_ns": evidence.passed_ns,
        },
        look="report --tree",
        ns=site.total_ns,
    )


# Calls that a loop need not repeat, by library and name.
REPEATED = {("pandas", "DataFrame.iterrows"), ("sqlalchemy", "create_engine")}
REPEATED_CALLS, REPEATED_SHARE = 100, 0.15


def work_in_a_loop(evidence: Evidence) -> list[Finding]:
    """Fires if a loop in the user's own code repeats a slow call that need not be repeated."""
    places = evidence.places
    sums: dict[tuple[str, str], tuple[Node, Node, int, int]] = {}
    for at, node in enumerate(places.nodes):
        key = (node.library, node.name)
        if key not in REPEATED or node.kind != PYTHON or places.importing[at] or not places.outer[at]:
            continue
        around = places.caller(at)
        _, _, calls, ns = sums.get((around.shown, node.shown), (around, node, 0, 0))
        sums[around.shown, node.shown] = (around, node, calls + node.calls, ns + node.total_ns)
    found = []
    for around, node, calls, ns in sums.values():
        if calls < REPEATED_CALLS * max(around.calls, 1) or ns < REPEATED_SHARE * evidence.rest_ns:
            continue
        found.append(
            Finding(
                "work in a loop",
                f"{around.shown} calls {node.shown} {calls // max(around.calls, 1):,} times each time it runs: "
                f"{duration(ns)} ({evidence.share(ns)}).",
                where={**place(around), "calls": node.shown},
                numbers={
                    "calls": calls,
                    "calls_of_caller": around.calls,
                    "total_ns": ns,
                    "passed_ns": evidence.passed_ns,
                },
                look="report --tree",
                ns=ns,
            )
        )
    return found
