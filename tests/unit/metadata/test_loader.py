"""Metadata transactions and control batches in the loader."""

from __future__ import annotations

import pytest

from moldau.metadata.errors import InconsistentMetadata
from moldau.metadata.loader import MetadataLoader
from moldau.protocol.stored.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from tests.unit.metadata.builders import config, full_image


class TestLoader:
    def test_transaction_becomes_visible_at_its_end(self) -> None:
        loader = MetadataLoader(full_image())
        start = loader.image.offset + 1
        loader.replay([config("a", "1"), BeginTransactionRecord(name="x"), config("b", "2")], start, 5)
        delta, image = loader.publish()
        assert image.topic_config("orders") == {"retention.ms": "1000", "a": "1"}
        assert (image.offset, image.epoch) == (start, 5)
        assert delta.topic_configs_changed() == {"orders"}
        loader.replay([config("c", "3"), EndTransactionRecord()], start + 3, 5)
        _, image = loader.publish()
        assert image.topic_config("orders") == {"retention.ms": "1000", "a": "1", "b": "2", "c": "3"}
        assert image.offset == start + 4

    def test_aborted_transaction_is_discarded(self) -> None:
        loader = MetadataLoader(full_image())
        loader.replay([BeginTransactionRecord(), config("b", "2")], 100, 5)
        assert loader.transaction_start == 100
        loader.replay([AbortTransactionRecord(), config("c", "3")], 102, 6)
        _, image = loader.publish()
        assert image.topic_config("orders") == {"retention.ms": "1000", "c": "3"}
        assert (image.offset, image.epoch) == (103, 6)

    def test_transaction_markers_out_of_order_are_rejected(self) -> None:
        for records in ([EndTransactionRecord()], [AbortTransactionRecord()], [BeginTransactionRecord()] * 2):
            with pytest.raises(InconsistentMetadata):
                MetadataLoader().replay(records, 0, 1)

    def test_control_batches_advance_only_the_offset(self) -> None:
        loader = MetadataLoader(full_image())
        loader.advance(200, 7)
        delta, image = loader.publish()
        assert (image.offset, image.epoch) == (200, 7)
        assert not delta.topics_changed and not delta.configs_changed
