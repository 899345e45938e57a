"""For each kind of finding, a clause that says what people do about such a cause. docs/guides/findings.md has a part
for each kind.
"""

PAGE = "docs/guides/findings.md"
ADVICE = {
    "lost records": "Record less, with --no-c or --min-duration",
    "imports": "Import it where it is used, or load less of it",
    "many requests": "Ask once for all of them, by a join, a list of keys or a batch",
    "work in a loop": "Do it once before the loop, or on all items together",
    "blocked loop": "Await an asynchronous call, or hand the work to asyncio.to_thread()",
    "idle device": "Launch earlier, load data in other workers, and avoid waiting for results",
    "waiting": "Wait for several things at a time, or shorten the wait",
    "lock": "Hold the lock for less, and do the slow part before or after",
    "GIL": "Use processes or a free-threaded Python for this work",
    "garbage collection": "Call gc.freeze() after start-up, or raise gc.set_threshold()",
    "same arguments": "Remember the result, as functools.cache does",
    "exceptions": "Test first, and raise where something is wrong only",
    "retry": "Retry what may succeed only, a few times, and not with everybody else waiting",
    "cache": "Make the cache as large as the number of things it is asked for, or ask in their order",
    "logging": "Log less in the loop: by level, by sum, or through a buffer",
    "growing": "Append to a list and join it at the end, or keep a set or dict to search",
    "slow worker": "Cut the work into smaller pieces, or give the longest piece out first",
    "oversubscribed": "Start as many workers as there are processors",
    "short calls": "Move the loop into the function, or use a function in C for all items",
    "tail": "Compare the slow ones with the rest by the command below",
}
