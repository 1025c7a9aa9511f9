"""Spark's daemon of Python workers, which leaves without complaint when Spark hangs up.

    python -m moldau.pipelines.worker_daemon pyspark.worker

A query that is stopped, a task that is cancelled and a session that ends close the connections of their
workers. Nobody waits for what those still had to say, so it is no error that they cannot say it; PySpark's
own daemon prints a traceback for each. Everything else that goes wrong in a worker is told as ever.

Workers are forks of this process: nothing may be imported here that starts threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

#: How a worker ends that is not to be used again.
_GONE = 1


def without_complaint(worker: Callable[..., int]) -> Callable[..., int]:
    """A worker that ends when nobody listens any more."""

    @wraps(worker)
    def run(*arguments: Any) -> int:
        try:
            return worker(*arguments)
        except (BrokenPipeError, ConnectionResetError):
            return _GONE

    return run


def main() -> None:
    from pyspark import daemon

    daemon.worker = without_complaint(daemon.worker)
    daemon.manager()


if __name__ == "__main__":
    main()
