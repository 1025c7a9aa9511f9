"""Remote segments of deleted topics."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.harness.tiered.faulty_store import DELETE, of_topic, set_faults
from tests.harness.tiered.in_process import tiered_node, until
from tests.harness.tiered.worlds import stored

_CONFIGS = {
    "remote__log__storage__manager__class__name": "tests.harness.tiered.faulty_store.FaultyStore",
    "rlmm__config__remote__log__metadata__topic__num__partitions": "1",
}


def test_a_segment_that_cannot_be_deleted_does_not_delay_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    remote = tmp_path / "remote"

    async def scenario() -> None:
        async with tiered_node(tmp_path, **_CONFIGS) as world:
            for topic in ("first", "second"):
                await world.fill(topic)
            set_faults(remote, of_topic(DELETE, "first"))
            topics = [DeleteTopicState(name=name) for name in ("first", "second")]
            await world.connection.call(DeleteTopicsRequest(topics=topics, timeout_ms=5000))
            await until(lambda: not stored(remote, "second"))
            await until(lambda: "the remote segments of first-0 are deleted later" in caplog.text)
            assert stored(remote, "first") == [0, 1, 2]
            set_faults(remote)
            await until(lambda: not stored(remote, "first"))

    asyncio.run(scenario())
