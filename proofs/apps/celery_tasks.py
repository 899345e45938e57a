"""Tasks of Celery, through a broker that is a folder."""

import os

from celery import Celery

for name in ("queue", "processed", "results", "control"):
    os.makedirs(name, exist_ok=True)
app = Celery("tasks", broker="filesystem://", backend=f"file://{os.path.abspath('results')}")
app.conf.broker_transport_options = {
    "data_folder_in": "queue",
    "data_folder_out": "queue",
    "processed_folder": "processed",
    "control_folder": "control",
}
app.conf.worker_hijack_root_logger = False


@app.task
def total(count):
    return sum(number * number for number in range(count))
