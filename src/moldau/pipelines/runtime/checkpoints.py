"""Refuse the checkpoint of another pipeline before Spark continues from it.

Spark continues from any checkpoint: with the offsets of other topics it reports lost records, and with those
of another kind of source it fails to parse them. The last offsets of a checkpoint on this machine name the
topics that were read; for other file systems there is only the error of Spark. With `failOnDataLoss=false` a
pipeline may change its topics.
"""

from __future__ import annotations

import json
from pathlib import Path

from moldau.pipelines.runtime.definition import BadDefinition, Definition, Source
from moldau.pipelines.runtime.progress import offsets_of

_SCHEME = "file:"
#: The lines before the offsets of the sources: a version, and metadata of the batch.
_HEAD = 2


def refuse_foreign(checkpoint: str, definition: Definition) -> None:
    """Raise `BadDefinition` if the checkpoint belongs to another pipeline."""
    read = _topics_read(checkpoint)
    if read is None or _may_have_read(definition.source, read):
        return
    what = f"the topics {', '.join(sorted(read))}" if read else "no topic"
    raise BadDefinition(
        f"{definition.file}: the checkpoint {checkpoint} belongs to a pipeline that reads {what}. Give this "
        "pipeline another name or another 'checkpoint', or delete the folder to start again"
    )


def _may_have_read(source: Source, topics: set[str]) -> bool:
    if not source.is_topic:
        return not topics
    may_lose = source.options.get("failOnDataLoss", "").lower() == "false"
    return may_lose or source.pattern is not None or not topics.isdisjoint(source.topics)


def _topics_read(checkpoint: str) -> set[str] | None:
    """Return the topics in the last offsets (none for other sources); None if they are unknown."""
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
