"""Whether a checkpoint belongs to the stage that is to go on from it.

Checkpoints are found by the names of stages, which are those of operators. An operator that is put into a
program renumbers the ones behind it, and then a checkpoint could be another operator's. So beside the
checkpoints is a file that says of every stage what it does and reads; a stage that is something else now is
refused with a sentence, where Spark would fail somewhere in its state or, worse, would not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moldau.pipelines.streams.application.settings import StreamsSettings
from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.operations import Operation, Source
from moldau.pipelines.streams.topology.stages import Stage
from moldau.pipelines.streams.topology.stateful import Aggregate, TableAggregate

_FILE = "stages.json"


def check_checkpoints(stages: Sequence[Stage], planner: Planner) -> None:
    """Compare with what was there at the last start, and remember what is there now."""
    settings = planner.settings
    known = _known(settings)
    now = {stage.name: told(stage, planner) for stage in stages}
    for name, is_now in now.items():
        was = known.get(name)
        if was is not None and Path(settings.checkpoint(name)).exists() and not _fits(was, is_now):
            raise StreamsException(
                f"The program has changed: the state of {name} in {settings.checkpoint(name)} was made by "
                f"{_words(was)}, but {name} is now {_words(is_now)}. Name operators and stores, so that "
                "their names stay what they are when others are added; or begin anew, with clean_up() or "
                "another application.id"
            )
    file = _file(settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    written = file.with_suffix(".new")
    written.write_text(json.dumps({**known, **now}, indent=1, sort_keys=True))
    written.replace(file)


def told(stage: Stage, planner: Planner) -> dict[str, Any]:
    """What its state depends on: the operator, its windows, and the topics of every input."""
    operation = None if stage.operator is None else stage.operator.operation
    windows = getattr(operation, "windows", None)
    legs = [leg for port in stage.ports for leg in port] or list(stage.before)
    return {
        "operator": _operator(operation),
        "windows": None if windows is None else repr(windows),
        "reads": [sorted(_topics(leg.origin, planner)) for leg in legs],
    }


def _operator(operation: Operation | None) -> str:
    """Joins of other kinds keep the same state, aggregates do not."""
    if isinstance(operation, Aggregate | TableAggregate):
        return f"{type(operation).__name__} ({operation.kind})"
    return "steps" if operation is None else type(operation).__name__


def _topics(origin: Node, planner: Planner) -> list[str]:
    if isinstance(origin.operation, Source):
        pattern = origin.operation.pattern
        return list(origin.operation.topics) if pattern is None else [f"topics like {pattern}"]
    return [planner.topic_of(origin) or origin.name]


def _fits(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """A stream may have got or lost some of its topics."""
    if any(was.get(each) != now[each] for each in ("operator", "windows")):
        return False
    before = was.get("reads", [])
    return len(before) == len(now["reads"]) and all(
        set(one) & set(two) for one, two in zip(before, now["reads"], strict=True)
    )


def _words(stage: Mapping[str, Any]) -> str:
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
        raise StreamsException(f"{file} is damaged ({error}): delete it") from error


def _file(settings: StreamsSettings) -> Path:
    return Path(settings.state_dir) / settings.application_id / _FILE
