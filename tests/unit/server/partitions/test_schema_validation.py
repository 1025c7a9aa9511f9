from __future__ import annotations

import pytest

from moldau.client.registry.types import Schema
from moldau.config.topic import RECORD_NAME_STRATEGY, TOPIC_NAME_STRATEGY, TOPIC_RECORD_NAME_STRATEGY
from moldau.server.partitions.schema_validation import SubjectOfSchema, record_names_of

NESTED = """syntax = "proto3";
package shop;
import "common.proto";
message Order { common.Money total = 1; message Line { message Tax { } } }
message Customer { }
"""
COMMON = 'syntax = "proto3"; package common; message Money { int64 cents = 1; }'


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        (Schema('{"type":"record","name":"Order","namespace":"shop","fields":[]}'), ("shop.Order",)),
        (Schema('{"type":"enum","name":"shop.Color","symbols":["RED"]}'), ("shop.Color",)),
        (Schema('"string"'), ("string",)),
        (Schema('{"title":"Order","type":"object"}', "JSON"), ("Order",)),
        (Schema('{"type":"object"}', "JSON"), ()),
        (Schema("true", "JSON"), ()),
    ],
)
def test_name_of_the_record_type(schema: Schema, names: tuple[str, ...]) -> None:
    assert record_names_of(schema, {}) == names


def test_avro_record_that_uses_a_referenced_type_has_a_name() -> None:
    text = (
        '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"by","type":"crm.Customer"}]}'
    )
    assert record_names_of(Schema(text), {}) == ("shop.Order",)


def test_every_message_of_a_protobuf_file_has_a_name() -> None:
    assert record_names_of(Schema(NESTED, "PROTOBUF"), {"common.proto": COMMON}) == (
        "shop.Order",
        "shop.Order.Line",
        "shop.Order.Line.Tax",
        "shop.Customer",
    )


@pytest.mark.parametrize(
    ("strategy", "key", "subjects"),
    [
        (TOPIC_NAME_STRATEGY, False, ("orders-value",)),
        (TOPIC_NAME_STRATEGY, True, ("orders-key",)),
        (RECORD_NAME_STRATEGY, True, ("shop.Order", "shop.Line")),
        (TOPIC_RECORD_NAME_STRATEGY, False, ("orders-shop.Order", "orders-shop.Line")),
    ],
)
def test_subjects_of_a_strategy(strategy: str, key: bool, subjects: tuple[str, ...]) -> None:
    subject = SubjectOfSchema("orders", strategy, key=key)
    assert subject.names(("shop.Order", "shop.Line")) == subjects
    assert subject.needs_record_names == (strategy != TOPIC_NAME_STRATEGY)
