"""A checkpoint that another pipeline has made, seen before Spark goes on from it.

Spark goes on from any checkpoint: with the offsets of other topics it finds records lost, and with those of
another kind of source it stumbles over their form. Where a checkpoint lies on this machine its last offsets
say what was read; elsewhere Spark's own words have to do. Who lets records be lost may change topics.
"""

from __future__ import annotations

import json
from pathlib import Path

from moldau.pipelines.runtime.definition import BadDefinition, Definition, Source
from moldau.pipelines.runtime.progress import offsets_of

_SCHEME = "file:"
#: A version and what Spark notes of the batch come before the offsets of the sources.
_HEAD = 2


def refuse_foreign(checkpoint: str, definition: Definition) -> None:
    """Say that a checkpoint is another's, if it is."""
    read = _topics_read(checkpoint)
    if read is None or _may_have_read(definition.source, read):
        return
    what = f"the topics {', '.join(sorted(read))}" if read else "no topic"
    raise BadDefinition(
        f"{definition.file}: the checkpoint {checkpoint} is of a pipeline that reads {what}. Give this one "
        "another name or another 'checkpoint', or remove the folder to begin anew"
    )


def _may_have_read(source: Source, topics: set[str]) -> bool:
    if not source.is_topic:
        return not topics
    may_lose = source.options.get("failOnDataLoss", "").lower() == "false"
    return may_lose or source.pattern is not None or not topics.isdisjoint(source.topics)


def _topics_read(checkpoint: str) -> set[str] | None:
    """The topics in the last offsets, none for other sources; None if nothing is known."""
    if ":" in checkpoint.removeprefix(_SCHEME):
        return None
    folder = Path(checkpoint.removeprefix(_SCHEME)) / "offsets"
    logs = [path for path in folder.glob("*") if path.name.isdigit()]
    if not logs:
        return None
    last = max(logs, key=lambda path: int(path.name))
    lines = last.read_text(errors="replace").splitlines()[_HEAD:]
    topics: set[str] = set()
    for line in lines:
        try:
            topics |= (offsets_of(json.loads(line)) or {}).keys()
        except ValueError:
            return None
    return topics
