"""A batch that is run again with less input than it had, because the source may lose some.

With `failOnDataLoss=false` a source goes on behind records that retention took. If it takes them from a batch
of which some tasks are written and others are not, the batch that is run again has fewer rows, and a task
that was written finds that its marker counts more. That is no other cut of the batch: a row goes to the task
of its range, or of its columns' hash, whichever other rows there are. So a task that was written stays as it
is, one that was not writes what is left: nothing is lost but what the source lost, and nothing is there
twice.

Where rows are dealt out in turn or by ranges (`repartition` without columns, `repartitionByRange`, `orderBy`)
each row that is missing moves others, and the query stops, as it does if a task has more rows than before.

The plan is looked at when a query starts, and what is found is a setting of its session, which tasks see.
What a function of `foreachBatch` does is not seen: there the sink's own option `failOnDataLoss` says it.
"""

from __future__ import annotations

from typing import Any

from pyspark import TaskContext

from moldau.pipelines.sink.options import SinkOptions
from moldau.pipelines.spark.query_plans import class_name, nodes

#: Set in the session of a query.
MAY_BE_LOST = "spark.moldau.inputMayBeLost"

_SOURCE, _OPTION = "StreamingRelationV2", "failOnDataLoss"


def may_be_lost(options: SinkOptions) -> bool:
    """Asked by a task: whether rows may be missing that it had before."""
    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(MAY_BE_LOST)
    return found == "true" or not options.fail_on_data_loss


def loses_input(plan: Any) -> bool:
    """Whether a query, by its plan in the JVM, may lose rows without any of the others moving."""
    found = list(nodes(plan))
    return any(map(_may_lose, found)) and not any(map(_deals_out, found))


def _may_lose(node: Any) -> bool:
    if class_name(node) != _SOURCE:
        return False
    return str(node.extraOptions().getOrDefault(_OPTION, "true")).strip().lower() == "false"


def _deals_out(node: Any) -> bool:
    name = class_name(node)
    if name == "Repartition":
        return bool(node.shuffle())
    if name == "RepartitionByExpression":
        expressions = node.partitionExpressions()
        return bool(expressions.isEmpty()) or class_name(expressions.head()) == "SortOrder"
    return name == "RebalancePartitions" or (name == "Sort" and bool(getattr(node, "global")()))
