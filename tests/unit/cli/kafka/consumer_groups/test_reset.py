"""kafka-consumer-groups --reset-offsets: the table of new offsets."""

from __future__ import annotations

import pytest

from moldau.base.ids import TopicPartition
from moldau.cli.kafka.consumer_groups.reset import print_plans


def test_new_offsets_are_printed_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_plans({"g": {TopicPartition("a-topic-with-a-long-name", 1): 5, TopicPartition("a", 0): 1}})
    assert capsys.readouterr().out.splitlines() == [
        "",
        "GROUP           TOPIC                    PARTITION  NEW-OFFSET",
        "g               a                        0          1",
        "g               a-topic-with-a-long-name 1          5",
    ]
    print_plans({})
    assert capsys.readouterr().out == "\n"
