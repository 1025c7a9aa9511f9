"""PySpark's worker daemon with three changes, named by the setting `spark.python.daemon.module`.

    python -m moldau.pipelines.spark.worker_daemon pyspark.worker

- The daemon loads the kernels before it forks workers, so that all workers share Numba's memory and none of
  them spends half a second on importing it.
- Spark closes the connections of workers when a query stops, a task is cancelled or a session ends.
  PySpark's daemon prints a traceback for each; here such a worker exits silently. Other errors are printed.
- PySpark runs the garbage collector after every task over all objects of all modules: 100 ms and more with
  Arrow loaded, most of the cost of a small micro-batch. Here the objects of modules are frozen, so that the
  collector visits only those that tasks have created.

Workers are forks of this process: no module imported here may start threads.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

#: The exit code of a worker that Spark does not reuse.
_NOT_REUSED = 1


def ignore_closed_connection(worker: Callable[..., int]) -> Callable[..., int]:
    """Let a worker exit silently when Spark has closed its connection."""

    @wraps(worker)
    def run(*arguments: Any) -> int:
        try:
            return worker(*arguments)
        except (BrokenPipeError, ConnectionResetError):
            return _NOT_REUSED

    return run


def freeze_modules(worker: Callable[..., int]) -> Callable[..., int]:
    """Exclude the objects of imported modules from garbage collection, again after each new import."""
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


def load_kernels() -> None:
    """Compile the kernels, or load them from Numba's cache."""
    from moldau.pipelines.arrow import decode_kernel, encode_kernel  # noqa: F401

    gc.collect()
    gc.freeze()


def main() -> None:
    from pyspark import daemon

    # The other worker modules look up, create and plan data sources.
    if sys.argv[1:] == ["pyspark.worker"]:
        load_kernels()
    daemon.worker = ignore_closed_connection(freeze_modules(daemon.worker))
    daemon.manager()


if __name__ == "__main__":
    main()
