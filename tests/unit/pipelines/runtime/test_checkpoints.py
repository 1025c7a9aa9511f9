"""The checkpoint of another pipeline is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.pipelines.runtime.checkpoints import refuse_foreign
from moldau.pipelines.runtime.definition import BadDefinition, Definition, Sink, Source


def definition(**source: object) -> Definition:
    return Definition("mine", Path("mine.yaml"), Source(**source), (Sink(topic="out"),))  # type: ignore[arg-type]


def checkpoint(folder: Path, offsets: str) -> str:
    (folder / "offsets").mkdir()
    (folder / "offsets" / "9").write_text("v1\n{}\n{}\n")
    (folder / "offsets" / "10").write_text('v1\n{"batchWatermarkMs": 0}\n' + offsets + "\n")
    return str(folder)


@pytest.mark.parametrize(
    ("offsets", "source", "read"),
    [
        ('{"a": {"0": 5}, "b": {"0": 1}}', {"topics": ("c",)}, "the topics a, b"),
        ('{"a": {"0": 5}}', {"format": "rate"}, "the topics a"),
        ("17", {"topics": ("a",)}, "no topic"),
        ('{"logOffset": 3}', {"topics": ("a",)}, "no topic"),
    ],
)
def test_checkpoint_of_another_pipeline_is_refused(
    tmp_path: Path, offsets: str, source: dict[str, object], read: str
) -> None:
    place = checkpoint(tmp_path, offsets)
    with pytest.raises(
        BadDefinition, match=f"mine.yaml: the checkpoint .* reads {read}. Give this pipeline another"
    ):
        refuse_foreign(place, definition(**source))


@pytest.mark.parametrize(
    ("offsets", "source"),
    [
        ('{"a": {"0": 5}}', {"topics": ("a", "new")}),
        ('{"a": {"0": 5}}', {"pattern": "x.*"}),
        ('{"$moldau": {}}', {"pattern": "x.*"}),
        ('{"a": {"0": 5}}', {"topics": ("b",), "options": {"failOnDataLoss": "false"}}),
        ('{"logOffset": 3}', {"format": "parquet"}),
        ("half a li", {"topics": ("a",)}),
    ],
)
def test_checkpoint_that_may_be_its_own_is_accepted(
    tmp_path: Path, offsets: str, source: dict[str, object]
) -> None:
    refuse_foreign(checkpoint(tmp_path, offsets), definition(**source))
    refuse_foreign(str(tmp_path / "none yet"), definition(**source))
    refuse_foreign("s3://bucket/folder", definition(**source))
