"""The client of a Celery worker: runs some tasks and prints their results."""

from celery_tasks import total

asked = [total.delay(1000 * number) for number in range(8)]
print([answer.get(timeout=180) for answer in asked])
