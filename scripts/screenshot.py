#!/usr/bin/env python3
"""Takes the picture of the viewer that README and docs show: docs/viewer.png.

    .venv/3.11/bin/python scripts/screenshot.py [OUT]

Records a small training loop (torch must be importable) with operators, annotations and memory, opens it with
`vestige view` in Chromium without a window, selects a span and takes the picture.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "bench")]

from browser import Browser
from view_server import viewer

SIZE = 1366, 900
BYTES_MOST = 200_000
PROGRAM = '''\
import queue
import threading

import torch
from torch import nn

from vestige import profile, record_function

torch.set_num_threads(1)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.feed(self.norm(x))


def make_batch(number):
    """A sequence and what follows it."""
    tokens = torch.randn(8, 64, 128)
    return tokens, tokens.roll(-1, dims=1)


def load(batches, count):
    for number in range(count):
        with record_function("make batch"):
            batches.put(make_batch(number))


def train(model, optimizer, batches, steps):
    for step in range(steps):
        with record_function("step"):
            x, wanted = batches.get()
            with record_function("forward"):
                loss = nn.functional.mse_loss(model(x), wanted)
            with record_function("backward"):
                loss.backward()
            with record_function("optimizer"):
                optimizer.step()
                optimizer.zero_grad()


model = nn.Sequential(Block(128), Block(128))
optimizer = torch.optim.AdamW(model.parameters())
batches = queue.Queue(2)
warm = threading.Thread(target=load, args=(batches, 2))
warm.start()
train(model, optimizer, batches, 2)
warm.join()
with profile(profile_memory=True, with_stack=True, output="train.vst"):
    loaders = [threading.Thread(target=load, args=(batches, 2), name=f"loader-{number}") for number in range(2)]
    for loader in loaders:
        loader.start()
    train(model, optimizer, batches, 4)
    for loader in loaders:
        loader.join()
'''


def main(out):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(PROGRAM)
        subprocess.run([sys.executable, "train.py"], cwd=folder, check=True)
        browser = Browser(Path(folder) / "profile", *SIZE)
        try:
            with viewer(Path(folder) / "train.vst") as one:
                take(browser, one.address, out)
        finally:
            browser.close()
    if out.stat().st_size > BYTES_MOST:
        sys.exit(f"{out}: {out.stat().st_size} bytes, more than {BYTES_MOST}")


def take(browser, address, out):
    page = browser.open(address)
    page.set_size(*SIZE)
    page.wait("document.getElementById('loading').hidden && vestige.windows.settled && vestige.counters.whole.size")
    page.eval(
        """(async () => {
          const found = name => [...vestige.names.table(0)].flatMap((one, id) => one?.name === name ? [id] : []);
          const forward = await vestige.source.next(0, found('forward'), -1, false);
          const steps = await vestige.source.next(0, found('step'), forward.start_ns - 1, true);
          for (const thread of vestige.timeline.traces[0].threads)
            if (thread.number !== forward.thread) vestige.timeline.folded.add(`t0:${thread.number}`);
          vestige.timeline.arrange();
          vestige.stage.arranged();
          vestige.panel.height = 200;
          const length = steps.end_ns - steps.start_ns;
          vestige.view.show(steps.start_ns - length * 0.08, steps.end_ns + length * 0.25);
          await new Promise(done => setTimeout(done, 500));
          const inner = await vestige.source.next(0, found('Block.forward'), forward.start_ns, false);
          const { thread, depth, start_ns: start } = inner;
          await vestige.select({ trace: 0, thread, depth, time: start, start });
        })()"""
    )
    page.wait("vestige.windows.settled && vestige.stage.pending === null && vestige.details.span")
    page.mouse("mouseMoved", 700, 20)
    page.save_screenshot(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "viewer.png")
