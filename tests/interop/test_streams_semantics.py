"""The streams API beside the real Kafka Streams: the same programs, the same records, the same tables.

Every scene is described as Java describes it, and run on Moldau's broker and on Apache Kafka. What differs on
purpose is in `docs/PIPELINES.md`.
"""

from __future__ import annotations

import pytest

from moldau.pipelines.streams.builder import StreamsBuilder
from tests.harness.streams_results import recorded
from tests.harness.streams_scenes import SCENES
from tests.interop import streams_oracle

pytestmark = pytest.mark.interop


def test_what_was_recorded_is_what_kafka_streams_says() -> None:
    """Other tests compare with the record."""
    found = streams_oracle.results()
    assert recorded() == {scene: written for scene, written in found.items() if written}


@pytest.mark.parametrize("scene", SCENES)
def test_descriptions(scene: str) -> None:
    builder = StreamsBuilder()
    SCENES[scene](builder)
    assert str(builder.build().describe()).splitlines() == streams_oracle.description(scene)
