"""Run pipelines that are defined in files: start, supervise, restart and monitor their queries.

    moldau pipeline run orders.yaml clicks.py

`pipeline_files` loads pipelines from files. A YAML file (`yaml`) contains definitions (`definition`), whose
queries are built by `source_frames`, `checks`, `steps` and `outputs`; a Python file contains functions with
`@pipeline` (`python_pipeline`). `host` runs the queries of all pipelines in one driver and restarts those
that fail (`failures`, `restarts`); `driver` is that process, `supervisor` restarts it if it dies. The status
of each pipeline is stored in the state folder (`state`), where `list`, `status` and `stop` find it, printed
(`progress_line`) and exported to Prometheus (`metrics`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.pipelines.runtime.python_pipeline import Context, Pipeline, pipeline

__all__ = ["Context", "Pipeline", "pipeline"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: reading a definition does not need Spark.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.python_pipeline"), name)
