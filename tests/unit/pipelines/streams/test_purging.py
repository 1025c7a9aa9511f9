"""Which records of repartition topics nobody needs any more."""

from __future__ import annotations

import json

from moldau.base.ids import TopicPartition
from moldau.pipelines.streams.purging import done_with


def test_what_the_slowest_reader_has_done_with_goes() -> None:
    progress = [
        {"sources": [{"startOffset": json.dumps({"app-x-repartition": {"0": 7, "1": 0}, "user": {"0": 9}})}]},
        {"sources": [{"startOffset": {"app-x-repartition": {"0": 5}}}, {"startOffset": None}]},
        {},
    ]
    assert done_with(progress, {"app-x-repartition"}) == {TopicPartition("app-x-repartition", 0): 5}
