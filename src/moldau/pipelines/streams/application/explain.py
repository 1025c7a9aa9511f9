"""The text of `KafkaStreams.explain()`: the Spark queries of a topology, what runs in Python, and Spark's
plans."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence

from moldau.pipelines.streams.application.preparation import Prepared
from moldau.pipelines.streams.physical.stage_frames import StageFrame
from moldau.pipelines.streams.topology.operations import Source
from moldau.pipelines.streams.topology.stages import Stage


def explanation(made: Sequence[tuple[Stage, StageFrame]], prepared: Prepared) -> str:
    """Return one paragraph per query."""
    lines = [f"{len(made)} Spark queries"]
    for number, (stage, frame) in enumerate(made, 1):
        lines += ["", f"Query {number}: {stage.name} (output mode {frame.output_mode})"]
        lines += [f"  reads   {name}" for name in _read(stage, prepared)]
        lines += [f"  does    {name}" for name in _steps(stage)]
        lines.append(f"  Python  {', '.join(frame.python) or 'nothing: the query is fully native'}")
        lines += [f"  writes  {name}" for name in _written(stage, prepared)]
        lines += [f"  | {line}" for line in _plan(frame).splitlines() if line.strip()]
    return "\n".join(lines)


def _read(stage: Stage, prepared: Prepared) -> list[str]:
    found = []
    for origin in stage.origins:
        operation = origin.operation
        if isinstance(operation, Source):
            found.append(operation.pattern or ", ".join(operation.topics))
        else:
            found.append(prepared.planner.topic_of(origin) or origin.name)
    return found


def _steps(stage: Stage) -> list[str]:
    chains = [*(chain for port in stage.ports for chain in port), *stage.before]
    steps = [node.name for chain in chains for node in chain.nodes]
    if stage.operator is not None:
        steps.append(f"{stage.operator.name} (stateful{', final results only' if stage.final else ''})")
    if stage.after is not None:
        steps += [node.name for node in stage.after.nodes]
    return list(dict.fromkeys(steps))


def _written(stage: Stage, prepared: Prepared) -> list[str]:
    names = []
    for leaf in stage.leaves:
        leaving = prepared.planner.leaf_exit(leaf, 0)
        if leaving is not None:
            names.append(leaving.topic or f"topics chosen by {leaf.name}")
    names += prepared.planner.late_topics(stage)
    return list(dict.fromkeys(names))


def _plan(frame: StageFrame) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.frame.explain(mode="simple")
    return text.getvalue()
