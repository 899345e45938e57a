"""A real TensorBoard with torch's profiler plugin, queried over HTTP like its page does."""

import gzip
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

PLUGIN = "/data/plugin/pytorch_profiler/"


class Server:
    def __init__(self, folder, timeout=120):
        """Serves all runs below `folder`, once the plugin has read them."""
        self._log = []
        self._deadline = time.monotonic() + timeout
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder)]
        command += ["--host", "127.0.0.1", "--port", "0", "--load_fast", "false"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._reader = threading.Thread(target=lambda: self._log.extend(self._process.stdout), daemon=True)
        self._reader.start()
        try:
            self._address = self._wait(lambda: re.search(r"at (http://\S+?)/? ", "".join(self._log))).group(1)
            self.runs = self._wait(self._all_runs(set(os.listdir(folder))))
        except BaseException:
            self.close()
            raise

    def _all_runs(self, expected):
        """The plugin reads runs one after the other, and loads nothing else meanwhile."""

        def look():
            answer = self.ask("runs")
            return None if answer["loading"] or not expected <= set(answer["runs"]) else answer["runs"]

        return look

    def ask(self, route, **arguments):
        """Returns the plugin's answer, from JSON."""
        url = f"{self._address}{PLUGIN}{route}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(url, timeout=60) as reply:
            data = reply.read()
            if reply.headers.get("Content-Encoding") == "gzip":
                data = gzip.decompress(data)
        return json.loads(data)

    def complaints(self):
        """Returns the warnings and errors that the plugin logged."""
        return [line for line in self._log if re.match(r"[WE]\d{4} ", line) and "security_validator" not in line]

    def close(self):
        self._process.terminate()
        self._process.wait()
        self._reader.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _wait(self, ready):
        while time.monotonic() < self._deadline and self._process.poll() is None:
            answer = ready()
            if answer is not None:
                return answer
            time.sleep(0.05)
        raise RuntimeError("TensorBoard did not come up:\n" + "".join(self._log))
