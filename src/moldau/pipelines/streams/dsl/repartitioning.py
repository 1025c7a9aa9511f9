"""Internal topics between operators: a stream whose keys changed goes through one before equal keys are
needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.topology.graph import Graph, Node
from moldau.pipelines.streams.topology.operations import Repartition

SUFFIX = "-repartition"
_GENERATED = re.compile(r"KSTREAM.*-[0-9]{10}")


def repartition_node(
    graph: Graph,
    prefix: str,
    key_serde: Serde | None,
    value_serde: Serde | None,
    partitions: int | None = None,
    partitioner: Callable[[str, Any, Any, int], int] | None = None,
) -> Node:
    """A way through `<prefix>-repartition`, not yet in its place. It uses up three numbers, as every way
    does."""
    topic = prefix if prefix.endswith(SUFFIX) else prefix + SUFFIX
    sink = graph.new_name("KSTREAM-SINK-")
    null_filter = graph.new_name("KSTREAM-FILTER-")
    source = graph.new_name("KSTREAM-SOURCE-")
    if not _GENERATED.fullmatch(prefix):
        sink, null_filter, source = f"{topic}-sink", f"{topic}-filter", f"{topic}-source"
    operation = Repartition(topic, sink, source, null_filter, key_serde, value_serde, partitions, partitioner)
    return Node(source, operation, key_serde=key_serde, value_serde=value_serde)
