"""Reads of followers: the end of the topic is requested after the read arrived, once for many reads."""

from __future__ import annotations

import asyncio
import json

from moldau.base.errors import ErrorCode, KafkaError
from moldau.registry.catch_up import CatchUp
from tests.unit.registry.requests import TestRegistry, on_a_loop, record


class Topic:
    def __init__(self) -> None:
        self.requests = 0
        self.fails = False
        self.answer = asyncio.Event()

    async def read_to_end(self) -> None:
        self.requests += 1
        await self.answer.wait()
        if self.fails:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no answer")


@on_a_loop
async def test_reads_that_arrive_meanwhile_share_the_next_request() -> None:
    topic = Topic()
    catch_up = CatchUp(topic.read_to_end)
    first = asyncio.create_task(catch_up())
    await asyncio.sleep(0.01)
    later = [asyncio.create_task(catch_up()) for _ in range(5)]
    await asyncio.sleep(0.01)
    assert topic.requests == 1
    topic.answer.set()
    await asyncio.gather(first, *later)
    assert topic.requests == 2


@on_a_loop
async def test_without_kafka_reads_are_answered_and_do_not_ask_again() -> None:
    topic = Topic()
    topic.fails = True
    topic.answer.set()
    catch_up = CatchUp(topic.read_to_end)
    await catch_up()
    await catch_up()
    assert topic.requests == 1


@on_a_loop
async def test_a_follower_catches_up_before_it_answers() -> None:
    registry = await TestRegistry().start()
    await registry.register("s", record("r", "a"))
    registry.leader.leads = False
    requests = 0

    async def read_to_end() -> None:
        nonlocal requests
        requests += 1
        registry.log.write(
            b'{"keytype":"SCHEMA","subject":"s","version":2,"magic":1}',
            b'{"subject":"s","version":2,"id":2,"schema":"\\"string\\"","deleted":false}',
        )

    registry.service.catch_up = CatchUp(read_to_end)
    assert (await registry.ask("GET", "/schemas/ids/1")).status == 200
    assert requests == 0
    assert (await registry.ask("GET", "/subjects/s/versions/2")).status == 200
    assert requests == 1


@on_a_loop
async def test_a_follower_catches_up_before_it_answers_the_highest_id() -> None:
    registry = await TestRegistry().start()
    await registry.register("s", record("r", "a"))
    registry.leader.leads = False
    number = 1

    async def read_to_end() -> None:
        nonlocal number
        number += 1
        registry.log.write(
            b'{"keytype":"SCHEMA","subject":"s","version":%d,"magic":1}' % number,
            b'{"subject":"s","version":%d,"id":%d,"schema":"\\"string\\"","deleted":false}'
            % (number, number),
        )

    registry.service.catch_up = CatchUp(read_to_end)
    for expected in (2, 3):
        answer = await registry.ask("GET", "/schemas/ids/1?fetchMaxId=true")
        assert answer.json["maxId"] == expected


@on_a_loop
async def test_a_follower_catches_up_before_it_parses_a_large_schema() -> None:
    registry = await TestRegistry().start()
    registry.leader.leads = False

    async def read_to_end() -> None:
        if not registry.log.records:
            registry.log.write(
                b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
                b'{"subject":"s","version":1,"id":1,"schema":'
                b'"{\\"type\\":\\"fixed\\",\\"name\\":\\"r\\",\\"size\\":1}","deleted":false}',
            )

    registry.service.catch_up = CatchUp(read_to_end)
    outer = {"type": "record", "name": "u", "doc": "x" * 20_000, "fields": [{"name": "f", "type": "r"}]}
    body = {"schema": json.dumps(outer), "references": [{"name": "r", "subject": "s", "version": 1}]}
    answer = await registry.ask("POST", "/subjects/s", body)
    assert (answer.status, answer.json["error_code"]) == (404, 40403)
