"""Descriptions are those of Kafka Streams 4.3, line by line.

`descriptions.tsv` is what `tests/interop/java/StreamsOracle.java` printed for its scenes: the scene, a tab,
a line.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from tests.harness.streams.scenes import SCENES


def expected() -> dict[str, list[str]]:
    lines: dict[str, list[str]] = defaultdict(list)
    for line in (Path(__file__).parent / "descriptions.tsv").read_text().splitlines():
        scene, _, text = line.partition("\t")
        lines[scene].append(text)
    return lines


@pytest.mark.parametrize(("scene", "lines"), expected().items())
def test_a_program_is_described_as_in_java(scene: str, lines: list[str]) -> None:
    builder = StreamsBuilder()
    SCENES[scene](builder)
    assert builder.build().describe().splitlines() == lines
