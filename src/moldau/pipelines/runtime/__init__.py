"""Pipelines that run by themselves: defined in files, supervised, restarted, seen from outside.

    moldau pipeline run orders.yaml clicks.py

A file becomes pipelines (`loading`): a YAML file is a `definition`, read by `yaml_file` and turned into
frames by `frames`, `steps`, `checks` and `outputs`; a Python file has functions with `@pipeline`. `host`
runs the queries of all of them in one driver and restarts those that fail (`restarts`); `driver` is that
process, and `supervisor` the one that starts it again when it dies. What is known of each is written to the
state folder (`state`), where `list`, `status` and `stop` find it, and is served for Prometheus (`metrics`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.pipelines.runtime.python_pipeline import Context, Pipeline, pipeline

__all__ = ["Context", "Pipeline", "pipeline"]


def __getattr__(name: str) -> Any:
    # Loaded when used: reading a definition needs no Spark.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.python_pipeline"), name)
