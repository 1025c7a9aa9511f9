"""Checks that a checkpoint belongs to the stage that would resume from it.

Checkpoints are stored by stage name, which is the name of an operator. Adding an unnamed operator to a
program renumbers the operators after it, so a checkpoint may now carry the name of another operator. The file
`stages.json` next to the checkpoints records the operator, windows and topics of every stage. A stage that
has changed is rejected, where Spark would fail with an obscure error or use the wrong state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.settings import StreamsSettings
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.operations import Operation, Source
from moldau.pipelines.streams.topology.stages import Stage
from moldau.pipelines.streams.topology.stateful import Aggregate, StreamStreamJoin, TableAggregate

_FILE = "stages.json"


def check_checkpoints(stages: Sequence[Stage], planner: Planner) -> None:
    """Compare the stages with those of the last start, and store them."""
    settings = planner.settings
    known = _known(settings)
    now = {stage.name: fingerprint(stage, planner) for stage in stages}
    for name, is_now in now.items():
        was = known.get(name)
        if was is not None and Path(settings.checkpoint(name)).exists() and not _fits(was, is_now):
            raise StreamsException(
                f"The program has changed: the state of {name} in {settings.checkpoint(name)} was written "
                f"by {_description(was)}, but {name} is now {_description(is_now)}. Name operators and "
                "stores, so that adding others does not rename them; or start over with clean_up() or "
                "another application.id"
            )
    file = _file(settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    written = file.with_suffix(".new")
    written.write_text(json.dumps({**known, **now}, indent=1, sort_keys=True))
    written.replace(file)


def fingerprint(stage: Stage, planner: Planner) -> dict[str, Any]:
    """Return what the state of a stage depends on: the operator, its windows, and the topics of every input.

    The result is stored, so the class names of operations and the fields of windows must not change."""
    operation = None if stage.operator is None else stage.operator.operation
    windows = operation.windows if isinstance(operation, Aggregate | StreamStreamJoin) else None
    chains = [chain for port in stage.ports for chain in port] or list(stage.before)
    return {
        "operator": _operator(operation),
        "windows": None if windows is None else repr(windows),
        "reads": [sorted(_topics(chain.origin, planner)) for chain in chains],
    }


def _operator(operation: Operation | None) -> str:
    """Name an operation. Inner, left and outer joins have the same state; the kinds of aggregates have
    not."""
    if isinstance(operation, Aggregate | TableAggregate):
        return f"{type(operation).__name__} ({operation.kind})"
    return "steps" if operation is None else type(operation).__name__


def _topics(origin: Node, planner: Planner) -> list[str]:
    if isinstance(origin.operation, Source):
        pattern = origin.operation.pattern
        return list(origin.operation.topics) if pattern is None else [f"topics like {pattern}"]
    return [planner.topic_of(origin) or origin.name]


def _fits(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a stage can resume from a checkpoint. A stream may have gained or lost some of its topics."""
    if any(was.get(each) != now[each] for each in ("operator", "windows")):
        return False
    before = was.get("reads", [])
    return len(before) == len(now["reads"]) and all(
        set(one) & set(two) for one, two in zip(before, now["reads"], strict=True)
    )


def _description(stage: Mapping[str, Any]) -> str:
    reads = "; ".join(", ".join(topics) for topics in stage.get("reads", []))
    windows = f" in {stage['windows']}" if stage.get("windows") else ""
    return f"{stage.get('operator')}{windows} over {reads}"


def _known(settings: StreamsSettings) -> dict[str, Any]:
    file = _file(settings)
    if not file.exists():
        return {}
    try:
        return dict(json.loads(file.read_text()))
    except ValueError as error:
        raise StreamsException(f"{file} is corrupt ({error}): delete it") from error


def _file(settings: StreamsSettings) -> Path:
    return Path(settings.state_dir) / settings.application_id / _FILE
