"""Which records of repartition topics nobody needs any more."""

from __future__ import annotations

import json

from moldau.base.ids import TopicPartition
from moldau.pipelines.streams.application.purging import done_with

TOPIC = "app-x-repartition"


def test_what_the_slowest_reader_has_done_with_goes() -> None:
    progress = [
        {"sources": [{"startOffset": json.dumps({TOPIC: {"0": 7, "1": 0}, "user": {"0": 9}})}]},
        {"sources": [{"startOffset": {TOPIC: {"0": 5}, "$moldau": {"ids": {TOPIC: "x"}, "first": {}}}}]},
        {},
    ]
    assert done_with(progress, {TOPIC: 2}) == {TopicPartition(TOPIC, 0): 5}


def test_a_reader_at_its_first_batch_needs_everything() -> None:
    ahead = {"sources": [{"startOffset": {TOPIC: {"0": 7}}}]}
    for behind in ({}, {"sources": [{"startOffset": None}]}, {"sources": [{"startOffset": "null"}]}):
        assert done_with([ahead, behind], {TOPIC: 2}) == {}
