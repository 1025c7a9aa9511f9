"""Spark's daemon of Python workers, whose workers are quick between tasks and leave without complaint.

    python -m moldau.pipelines.spark.worker_daemon pyspark.worker

A query that is stopped, a task that is cancelled and a session that ends close the connections of their
workers. Nobody waits for what those still had to say, so it is no error that they cannot say it; PySpark's
own daemon prints a traceback for each. Everything else that goes wrong in a worker is told as ever.

PySpark collects garbage after every task of a worker, and looks at every object of every module for it: 100
ms and more with Arrow loaded, which is most of what a small micro-batch costs. What modules brought stays
anyway, so it is frozen, and only what tasks have made since is looked at.

Workers are forks of this process: nothing may be imported here that starts threads.
"""

from __future__ import annotations

import gc
import sys
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


def with_frozen_modules(worker: Callable[..., int]) -> Callable[..., int]:
    """A worker whose garbage is collected without a look at the modules it has imported."""
    frozen = 0

    @wraps(worker)
    def run(*arguments: Any) -> int:
        nonlocal frozen
        code = worker(*arguments)
        if len(sys.modules) != frozen:
            frozen = len(sys.modules)
            gc.collect()
            gc.freeze()
        return code

    return run


def main() -> None:
    from pyspark import daemon

    daemon.worker = without_complaint(with_frozen_modules(daemon.worker))
    daemon.manager()


if __name__ == "__main__":
    main()
