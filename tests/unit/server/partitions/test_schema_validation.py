from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from moldau.base.clock import SystemClock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.base.pool import InlinePool
from moldau.client.registry.types import Schema
from moldau.config.broker.config import BrokerConfig
from moldau.config.topic import RECORD_NAME_STRATEGY, TOPIC_NAME_STRATEGY, TOPIC_RECORD_NAME_STRATEGY
from moldau.http.asgi import Receive, Scope, Send, send_json
from moldau.http.server import HttpServer
from moldau.http.settings import HttpSettings
from moldau.registry.state.registry import Limit
from moldau.server.partitions.schema_validation import SchemaValidator, SubjectOfSchema, record_names_of
from moldau.storage.log.config import LogConfig
from moldau.storage.log.schema_ids import SchemaIds, SchemaKey
from tests.unit.config.node_properties import node
from tests.unit.registry.requests import TestRegistry, on_a_loop

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


class Served:
    """A registry whose listener delays or refuses requests on demand, and a validator that asks it."""

    def __init__(self, registry: TestRegistry) -> None:
        self.registry = registry
        self.validator: SchemaValidator
        self.requests = 0
        self.status = 0
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests += 1
        await self.open.wait()
        if self.status:
            await send_json(send, self.status, {"error_code": self.status, "message": "refused"})
        else:
            await self.registry.application(scope, receive, send)

    async def refusal(self, topic: str, schema: SchemaKey, timeout_ms: int = 5000) -> KafkaError | None:
        """Return the error of a batch with one record that names the schema."""
        ids = SchemaIds(None, {schema: [0]})
        try:
            await self.validator.check(TopicPartition(topic, 0), LogConfig(), ids, timeout_ms)
        except KafkaError as error:
            return error
        return None


def validator(url: str) -> SchemaValidator:
    settings = {
        "confluent.schema.registry.url": url,
        "confluent.schema.registry.max.retries": "0",
        "confluent.missing.id.cache.ttl.sec": "0",
    }
    return SchemaValidator.of(BrokerConfig(node() | settings), SystemClock(), InlinePool())


@asynccontextmanager
async def served(path: str = "", **settings: Any) -> AsyncIterator[Served]:
    world = Served(await TestRegistry(**settings).start())
    server = HttpServer(
        HttpSettings.from_properties({"listeners": "http://127.0.0.1:0"}, default_port=0), SystemClock()
    )
    server.bind()
    world.validator = validator(server.urls[0] + path)
    await server.open(world)
    try:
        yield world
    finally:
        world.open.set()
        await world.validator.close()
        await server.close()


@on_a_loop
async def test_an_id_of_more_subjects_than_a_page_has_is_accepted() -> None:
    async with served(search_limit=Limit(10, 10)) as world:
        for number in range(25):
            await world.registry.register(f"topic-{number}-value", '"string"')
        assert await world.refusal("topic-24", 1) is None
        refused = await world.refusal("topic-25", 1)
        assert refused is not None and refused.code == ErrorCode.INVALID_RECORD


@on_a_loop
async def test_schemas_are_found_by_their_guid() -> None:
    async with served() as world:
        answer = await world.registry.register("orders-value", '"string"')
        guid = UUID(json.loads(answer.body)["guid"]).bytes
        assert await world.refusal("orders", guid) is None
        elsewhere = await world.refusal("other", guid)
        assert elsewhere is not None and "not registered under the subject other-value" in str(elsewhere)
        unknown = await world.refusal("orders", bytes(16))
        assert unknown is not None and unknown.code == ErrorCode.INVALID_RECORD
        assert f"GUID {UUID(int=0)}, which the schema registry does not have" in str(unknown)


async def set_alias(world: Served, subject: str, alias: str) -> None:
    answer = await world.registry.ask("PUT", f"/config/{subject}", {"alias": alias})
    assert answer.status == 200, answer.body


@on_a_loop
async def test_schema_of_the_subject_that_an_alias_names_is_accepted() -> None:
    async with served() as world:
        await world.registry.register("canonical", '"string"')
        await world.registry.register("other", '"int"')
        assert await world.refusal("orders", 1) is not None
        await set_alias(world, "orders-value", "canonical")
        assert await world.refusal("orders", 1) is None
        assert await world.refusal("orders", 2) is not None


@on_a_loop
async def test_alias_may_name_a_subject_of_another_context() -> None:
    async with served() as world:
        answer = await world.registry.register(":.staging:orders", '"string"')
        guid = UUID(json.loads(answer.body)["guid"]).bytes
        await set_alias(world, "orders-value", ":.staging:orders")
        assert await world.refusal("orders", 1) is None
        assert await world.refusal("orders", guid) is None
        # Id 2 exists in the default context only.
        await world.registry.register("first", '"int"')
        await world.registry.register("second", '"long"')
        refused = await world.refusal("orders", 2)
        assert refused is not None and refused.code == ErrorCode.INVALID_RECORD


@on_a_loop
async def test_ids_belong_to_the_context_of_the_url() -> None:
    async with served("/contexts/.staging") as world:
        await world.registry.register("orders-value", '"int"')
        answer = await world.registry.register(":.staging:orders-value", '"string"')
        await world.registry.register("payments-value", '"long"')
        assert await world.refusal("orders", 1) is None
        assert await world.refusal("orders", UUID(json.loads(answer.body)["guid"]).bytes) is None
        assert await world.refusal("payments", 1) is not None
        assert await world.refusal("payments", 2) is not None


@on_a_loop
async def test_a_short_timeout_of_one_producer_does_not_refuse_the_ids_of_others() -> None:
    async with served() as world:
        await world.registry.register("slow-value", '"string"')
        await world.registry.register("other-value", '"int"')
        world.open.clear()
        refused = await world.refusal("slow", 1, timeout_ms=50)
        assert refused is not None and refused.code == ErrorCode.REQUEST_TIMED_OUT
        world.open.set()
        assert await world.refusal("other", 2) is None
        # The look-up has continued, and a retry with the same timeout finds its result.
        assert await world.refusal("slow", 1, timeout_ms=5000) is None
        assert await world.refusal("slow", 1, timeout_ms=0) is None
        assert world.requests == 2


@pytest.mark.parametrize(("status", "is_asked_again"), [(401, True), (404, True), (429, True), (503, False)])
def test_only_a_registry_that_fails_is_not_asked_for_a_while(status: int, is_asked_again: bool) -> None:
    @on_a_loop
    async def check() -> None:
        async with served() as world:
            await world.registry.register("t-value", '"string"')
            world.status = status
            refused = await world.refusal("t", 1)
            assert refused is not None and refused.code == ErrorCode.REQUEST_TIMED_OUT
            world.status = 0
            assert (await world.refusal("t", 1) is None) == is_asked_again
            assert world.requests == 1 + is_asked_again

    check()


@on_a_loop
async def test_a_registry_that_cannot_be_reached_is_not_asked_for_a_while() -> None:
    async with served() as world:
        await world.registry.register("t-value", '"string"')
        await world.validator.close()
        world.validator = validator("http://127.0.0.1:1")
        for reason in ("cannot be reached", "could not be reached a moment ago"):
            refused = await world.refusal("t", 1)
            assert refused is not None and reason in str(refused)
