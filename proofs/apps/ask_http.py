"""The client of a server: requests pages, and changes a file of the server to make it reload.

ask_http.py PORT PATH… [--reload FILE]
"""

import sys
import time
import urllib.error
import urllib.request

PATIENCE_S = 90.0


def ask(port, path):
    """Returns the server's answer. Asks again while the server is starting or reloading."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError:
            raise
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def main():
    words = sys.argv[1:]
    reloaded = words.pop() if "--reload" in words else None
    port, *paths = [word for word in words if word != "--reload"]
    for path in paths:
        answers = {ask(port, path) for _ in range(5)}
        print(path, *sorted(answers))
    if reloaded:
        print(ask(port, "/word"))
        time.sleep(1.1)  # reloaders compare modification times in whole seconds
        with open(reloaded) as file:
            text = file.read()
        with open(reloaded, "w") as file:
            file.write(text.replace("first", "second"))
        deadline = time.monotonic() + PATIENCE_S
        while (word := ask(port, "/word")) == "first" and time.monotonic() < deadline:
            time.sleep(0.2)
        print(word)


main()
