"""Consumer instances of v2: create, subscribe, assign, read, seek, commit, delete, expiry, errors."""

from __future__ import annotations

import asyncio
import base64
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from moldau.rest.engine.consumer import PolledConsumer
from moldau.rest.engine.instance import Instance as EngineInstance
from moldau.rest.engine.instance import InstanceConfig
from tests.harness.rest_proxy import V2, Api, embedded, rest_proxy
from tests.harness.waiting import eventually
from tests.integration.rest.conftest import World
from tests.integration.rest.test_v2_produce import SCHEMAS


class Instance:
    """A consumer instance, as a client uses it."""

    def __init__(self, rest: Api, group: str, format: str = "json", **config: Any) -> None:
        self.rest, self.format = rest, format
        wanted = {"format": format, "auto.offset.reset": "earliest", "auto.commit.enable": "false", **config}
        answer = rest("POST", f"/consumers/{group}", wanted, V2)
        assert answer.status == 200, answer.body
        self.name = answer.body["instance_id"]
        self.path = f"/consumers/{group}/instances/{self.name}"
        assert answer.body["base_uri"].endswith(self.path)

    def post(self, path: str, body: Any = None, status: int = 204) -> Any:
        answer = self.rest("POST", f"{self.path}/{path}", body, V2)
        assert answer.status == status, answer.body
        return answer.body

    def read(self, query: str = "timeout=300") -> list[Any]:
        answer = self.rest("GET", f"{self.path}/records?{query}", accept=embedded(self.format))
        assert answer.status == 200, answer.body
        records: list[Any] = answer.body
        return records

    def values(self, count: int) -> list[Any]:
        """Read until `count` records have arrived; the first reads may be empty."""
        found: list[Any] = []

        def enough() -> bool:
            found.extend(each["value"] for each in self.read())
            return len(found) >= count

        eventually(enough, timeout=30, what=f"{count} records")
        return found

    def assign(self, topic: str, *partitions: int) -> None:
        self.post("assignments", {"partitions": [{"topic": topic, "partition": each} for each in partitions]})


@contextmanager
def instance(rest: Api, group: str, format: str = "json", **config: Any) -> Iterator[Instance]:
    created = Instance(rest, group, format, **config)
    try:
        yield created
    finally:
        assert rest("DELETE", created.path).status == 204


def produce(rest: Api, topic: str, *values: Any) -> None:
    body = {"records": [{"value": value} for value in values]}
    answer = rest("POST", f"/topics/{topic}", body, embedded("json"))
    assert answer.status == 200, answer.body


def produce_to(rest: Api, topic: str, partition: int, *values: Any) -> None:
    body = {"records": [{"value": value, "partition": partition} for value in values]}
    answer = rest("POST", f"/topics/{topic}", body, embedded("json"))
    assert all(each["error_code"] is None for each in answer.body["offsets"]), answer.body


def test_subscribed_instance_reads_and_commits(rest: Api) -> None:
    produce(rest, "c-subscribe", 1, 2, 3)
    with instance(rest, "g-subscribe") as first:
        first.post("subscription", {"topics": ["c-subscribe"]})
        assert rest("GET", f"{first.path}/subscription").body == {"topics": ["c-subscribe"]}
        assert first.values(3) == [1, 2, 3]
        assert rest("GET", f"{first.path}/assignments").body == {
            "partitions": [{"topic": "c-subscribe", "partition": 0}]
        }
        offsets = {"offsets": [{"topic": "c-subscribe", "partition": 0, "offset": 1, "metadata": "m"}]}
        assert first.post("offsets", offsets, 200) == []
        partitions = {"partitions": [{"topic": "c-subscribe", "partition": 0}]}
        committed = rest("GET", f"{first.path}/offsets", partitions, V2).body["offsets"]
        assert committed == [{"topic": "c-subscribe", "partition": 0, "offset": 2, "metadata": "m"}]
    with instance(rest, "g-subscribe") as second:
        second.post("subscription", {"topics": ["c-subscribe"]})
        assert second.values(1) == [3]
        assert second.post("offsets", None, 200) == []
        committed = rest("GET", f"{second.path}/offsets", partitions, V2).body["offsets"]
        assert committed[0]["offset"] == 3
        assert rest("DELETE", f"{second.path}/subscription").status == 204
        assert rest("GET", f"{second.path}/subscription").body == {"topics": []}


def test_instance_subscribes_to_a_pattern(rest: Api) -> None:
    produce(rest, "c-pattern-a", "a")
    produce(rest, "c-pattern-b", "b")
    produce(rest, "x-c-pattern-c", "c")
    with instance(rest, "g-pattern") as each:
        each.post("subscription", {"topic_pattern": "c-pattern-.*"})
        assert sorted(each.values(2)) == ["a", "b"]
        assert rest("GET", f"{each.path}/subscription").body == {"topics": ["c-pattern-a", "c-pattern-b"]}


def test_patterns_are_those_of_java_and_bounded(rest: Api) -> None:
    produce(rest, "c-java-17", "digits")
    produce(rest, "c-java-xx", "letters")
    with instance(rest, "g-java") as each:
        path = f"{each.path}/subscription"
        for bad in ("c-(", "((((a{1,200}){1,200}){1,200}){1,200})", "a" * 5000):
            assert rest("POST", path, {"topic_pattern": bad}, V2).error == (422, 422)
        each.post("subscription", {"topic_pattern": r"c-(?:java|scala)-\d+"})
        assert each.values(1) == ["digits"]


def test_assigned_instance_seeks(world: World, rest: Api) -> None:
    produce(rest, "c-assign", *range(5))
    with instance(rest, "g-assign") as each:
        each.assign("c-assign", 0)
        assert each.values(5) == [0, 1, 2, 3, 4]
        each.post("positions", {"offsets": [{"topic": "c-assign", "partition": 0, "offset": 3}]})
        assert each.values(2) == [3, 4]
        partition = {"partitions": [{"topic": "c-assign", "partition": 0}]}
        each.post("positions/beginning", partition)
        assert each.values(5) == [0, 1, 2, 3, 4]
        each.post("positions/end", partition)
        assert each.read("timeout=200") == []
        produce(rest, "c-assign", "new")
        assert each.values(1) == ["new"]
        elsewhere = {"offsets": [{"topic": "c-assign", "partition": 7, "offset": 0}]}
        refused = rest("POST", f"{each.path}/positions", elsewhere, V2)
        assert refused.error == (409, 40903)
        subscribed = rest("POST", f"{each.path}/subscription", {"topics": ["c-assign"]}, V2)
        assert subscribed.error == (409, 40903)


def test_responses_are_limited_by_bytes(rest: Api) -> None:
    produce(rest, "c-bytes", *("x" * 1000 for _ in range(6)))
    with instance(rest, "g-bytes") as each:
        each.assign("c-bytes", 0)
        eventually(lambda: each.rest("GET", f"{each.path}/assignments").body["partitions"], what="assigned")
        sizes: list[int] = []

        def all_read() -> bool:
            sizes.append(len(each.read("timeout=200&max_bytes=2500")))
            return sum(sizes) >= 6

        eventually(all_read, timeout=30, what="six records")
        assert max(sizes) == 2
        each.post("positions/beginning", {"partitions": [{"topic": "c-bytes", "partition": 0}]})
        alone = eventually(lambda: each.read("timeout=200&max_bytes=10"), timeout=20)
        assert [record["offset"] for record in alone] == [0]


@pytest.mark.parametrize(
    ("format", "schema", "good", "bad", "read"), SCHEMAS, ids=lambda each: str(each)[:10]
)
def test_records_with_a_schema_are_decoded(
    rest: Api, format: str, schema: str, good: Any, bad: Any, read: Any
) -> None:
    topic = f"c-{format}"
    body = {"value_schema": schema, "records": [{"value": good}]}
    assert rest("POST", f"/topics/{topic}", body, embedded(format)).status == 200
    with instance(rest, f"g-{format}", format) as each:
        each.assign(topic, 0)
        assert each.values(1) == [read]
        produce(rest, topic, "not framed")
        assert rest("POST", f"/topics/{topic}", body, embedded(format)).status == 200

        def failed() -> bool:
            answer = rest("GET", f"{each.path}/records?timeout=200", accept=embedded(format))
            return answer.error == (408, 40801)

        # The record stays the next one until the client seeks past it.
        eventually(failed, timeout=20, what="the record is refused")
        assert failed()
        each.post("positions", {"offsets": [{"topic": topic, "partition": 0, "offset": 2}]})
        assert each.values(1) == [read]


def test_records_before_one_that_cannot_be_read_are_delivered(rest: Api) -> None:
    produce(rest, "c-poison", 1, 2)
    text = {"records": [{"value": "ew=="}]}
    assert rest("POST", "/topics/c-poison", text, embedded("binary")).status == 200
    produce(rest, "c-poison", 3)
    with instance(rest, "g-poison") as each:
        each.assign("c-poison", 0)
        assert each.values(2) == [1, 2]
        assert rest("GET", f"{each.path}/records?timeout=200", accept=embedded("json")).error == (408, 40801)
        each.post("positions", {"offsets": [{"topic": "c-poison", "partition": 0, "offset": 3}]})
        assert each.values(1) == [3]


def test_records_that_arrive_with_an_error_are_delivered(world: World, rest: Api) -> None:
    """One partition has no offset to begin at; the records of the other arrive in the same response."""
    rest("POST", world.v3("/topics"), {"topic_name": "c-error", "partitions_count": 2})
    produce_to(rest, "c-error", 0, *range(20))
    with instance(rest, "g-error", **{"auto.offset.reset": "none"}) as each:
        each.assign("c-error", 0, 1)
        offsets = [{"topic": "c-error", "partition": number, "offset": 99 * number} for number in (0, 1)]
        each.post("positions", {"offsets": offsets})
        found: list[int] = []
        errors = 0

        def all_arrived() -> bool:
            nonlocal errors
            answer = rest("GET", f"{each.path}/records?timeout=500&max_bytes=10", accept=embedded("json"))
            if answer.status == 200:
                found.extend(record["value"] for record in answer.body)
            else:
                errors += 1
            return len(found) >= 20 and errors > 0

        eventually(all_arrived, timeout=30, what="20 records and the error")
        assert found == list(range(20))


def test_records_that_have_no_form_in_json_fail_alone(rest: Api) -> None:
    """Text that can just be parsed cannot be written within a list: an error, not a lost response."""
    depths = range(880, 1000, 12)
    texts = [b"1", *(b"[" * depth + b"]" * depth for depth in depths), b"2", b"1e999", b"3"]
    records = [{"value": base64.b64encode(each).decode()} for each in texts]
    assert rest("POST", "/topics/c-deep", {"records": records}, embedded("binary")).status == 200
    with instance(rest, "g-deep") as each:
        each.assign("c-deep", 0)
        shown: list[int] = []
        failed: list[int] = []

        def all_read() -> bool:
            accept = {"Accept": embedded("json")}
            status, text, _ = rest.raw("GET", f"{each.path}/records?timeout=300", headers=accept)
            if status == 200:
                # Python's parser cannot read all that is written.
                shown.extend(map(int, re.findall(rb'"offset":(\d+)', text)))
            else:
                assert (status, b"40801" in text) == (408, True), text
                failed.append(len(shown) + len(failed))
                where = {"topic": "c-deep", "partition": 0, "offset": failed[-1] + 1}
                each.post("positions", {"offsets": [where]})
            return len(shown) + len(failed) == len(texts)

        eventually(all_read, timeout=30, what="all records")
        last = len(texts) - 1
        assert {0, last - 2, last} <= set(shown)
        assert len(failed) > 1 and failed[-1] == last - 1
        assert sorted(shown + failed) == list(range(len(texts)))


def _ended(each: Instance, read: Future[Any], *request: Any) -> bool:
    each.post(*request)
    return read.done()


def test_requests_do_not_wait_for_a_read(rest: Api) -> None:
    """A read that waits ends when a seek arrives, and the next read begins at the new position."""
    produce(rest, "c-turns", 1, 2)
    with instance(rest, "g-turns", **{"consumer.request.timeout.ms": 30_000, "fetch.min.bytes": 100}) as each:
        each.assign("c-turns", 0)
        eventually(lambda: each.read("timeout=200"), timeout=20)
        partition = {"topic": "c-turns", "partition": 0}
        where = {**partition, "offset": 0}
        for path, body, status in (
            ("positions", {"offsets": [where]}, 204),
            ("offsets", {"offsets": [where]}, 200),
            ("assignments", {"partitions": [partition]}, 204),
        ):
            each.post("positions", {"offsets": [{**where, "offset": 2}]})
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(each.read, "timeout=30000")
                # The first request may arrive before the read.
                ended = partial(_ended, each, waiting, path, body, status)
                eventually(ended, timeout=10, what=f"{path} ends a read")
        each.post("positions", {"offsets": [where]})
        assert each.values(2) == [1, 2]


def test_a_seek_of_one_partition_leaves_the_others(world: World, rest: Api) -> None:
    """Records that arrived but were not returned yet are returned once, in order."""
    rest("POST", world.v3("/topics"), {"topic_name": "c-two", "partitions_count": 2})
    for partition in (0, 1):
        produce_to(rest, "c-two", partition, *range(10 * partition, 10 * partition + 5))
    with instance(rest, "g-two") as each:
        each.assign("c-two", 0, 1)
        [first] = eventually(lambda: each.read("timeout=500&max_bytes=2"), timeout=20)
        sought, other = first["partition"], 1 - first["partition"]
        each.post("positions", {"offsets": [{"topic": "c-two", "partition": sought, "offset": 5}]})
        assert each.values(5) == list(range(10 * other, 10 * other + 5))
        assert each.read("timeout=300") == []


@pytest.mark.parametrize("change", ["seek", "assign"])
def test_a_partition_that_was_not_read_yet_keeps_its_position(world: World, rest: Api, change: str) -> None:
    """Its first record arrives after the reset to the end, and before another partition is moved."""
    topic = f"c-unread-{change}"
    rest("POST", world.v3("/topics"), {"topic_name": topic, "partitions_count": 3})
    produce_to(rest, topic, 1, "other")
    assert asyncio.run(_records_after(world, topic, change)) == {(0, b'"new"'), (1, b'"other"')}


async def _records_after(world: World, topic: str, change: str) -> set[tuple[int, bytes]]:
    properties = {
        "bootstrap.servers": world.bootstrap,
        "group.id": f"g-{topic}",
        "auto.offset.reset": "latest",
        "enable.auto.commit": False,
    }
    with ThreadPoolExecutor(1) as pool:
        consumer = PolledConsumer(properties, pool)
        reader = EngineInstance("g", "i", InstanceConfig(), consumer, None)
        try:
            async with asyncio.timeout(30):
                reader.assign([(topic, 0), (topic, 2)])
                # Once a partition is fetched, librdkafka knows its end.
                while await consumer.call(_known_end(topic, 0)) != 0:
                    consumer.take()
                    await asyncio.sleep(0.01)
                await asyncio.to_thread(produce_to, world.rest, topic, 0, "new")
                if change == "seek":
                    await reader.seek({(topic, 2): 0})
                reader.assign([(topic, 0), (topic, 1), (topic, 2)])
                await reader.seek({(topic, 1): 0})
                found: list[Message] = []
                while len(found) < 2:
                    found += consumer.take()
                    await asyncio.sleep(0.01)
        finally:
            await consumer.close()
        return {(each.partition() or 0, each.value() or b"") for each in found}


def _known_end(topic: str, partition: int) -> Callable[[Consumer], int]:
    return lambda consumer: consumer.get_watermark_offsets(TopicPartition(topic, partition), cached=True)[1]


def test_a_read_of_an_instance_that_is_deleted_meanwhile(rest: Api) -> None:
    produce(rest, "c-deleted", 1)
    each = Instance(rest, "g-deleted", **{"consumer.request.timeout.ms": 30_000})
    each.assign("c-deleted", 0)
    with socket.create_connection(("127.0.0.1", rest.port), timeout=20) as waiting:
        accept = f"Accept: {embedded('json')}"
        head = f"GET {each.path}/records?timeout=30000 HTTP/1.1\r\nHost: x\r\n{accept}\r\n\r\n"
        waiting.sendall(head.encode())
        for _ in range(3):
            assert rest("GET", f"{each.path}/assignments").status == 200
        assert rest("DELETE", each.path).status == 204
        assert waiting.recv(12) == b"HTTP/1.1 404"


def test_binary_is_the_default_format(rest: Api) -> None:
    produce(rest, "c-binary", "v")
    with instance(rest, "g-binary", "binary") as each:
        each.assign("c-binary", 0)
        assert each.values(1) == ["InYi"]


def test_errors_of_instances(rest: Api) -> None:
    with instance(rest, "g-errors", name="one") as each:
        assert each.name == "one"
        again = rest("POST", "/consumers/g-errors", {"name": "one", "format": "json"}, V2)
        assert again.error == (409, 40902)
        mismatch = rest("GET", f"{each.path}/records", accept=embedded("binary"))
        assert mismatch.error == (406, 40601)
        assert rest("GET", f"{each.path}/records", accept="text/plain").error == (406, 406)
        assert rest("POST", f"{each.path}/subscription", b"{}", "text/plain").error == (415, 415)
        assert rest("POST", f"{each.path}/subscription", {"topics": 3}, V2).error == (422, 422)
    for method, path in (("GET", "/records"), ("GET", "/assignments"), ("DELETE", ""), ("POST", "/offsets")):
        missing = rest(method, f"/consumers/g-errors/instances/one{path}")
        assert missing.error == (404, 40403), path
    assert rest("POST", "/consumers/g-errors", {"format": "xml"}, V2).error == (422, 422)
    refused = rest("POST", "/consumers/g-errors", {"auto.offset.reset": "sometimes"}, V2)
    assert refused.error == (422, 42204)
    low = rest("POST", "/consumers/g-errors", {"fetch.min.bytes": "-5"}, V2)
    assert low.error == (422, 40001)


def test_a_client_that_leaves_consumes_nothing(rest: Api) -> None:
    produce(rest, "c-left", 0)
    with instance(rest, "g-left", **{"consumer.request.timeout.ms": 20_000, "fetch.min.bytes": 1}) as each:
        each.assign("c-left", 0)
        assert each.values(1) == [0]
        with socket.create_connection(("127.0.0.1", rest.port)) as waiting:
            accept = f"Accept: {embedded('json')}"
            waiting.sendall(f"GET {each.path}/records HTTP/1.1\r\nHost: x\r\n{accept}\r\n\r\n".encode())
        produce(rest, "c-left", 1)
        assert each.values(1) == [1]


def test_idle_instances_expire_and_are_bounded(world: World) -> None:
    bootstrap = world.bootstrap
    limits = {"consumer_instance_timeout_ms": 1500, "consumer_instances_max": 2}
    with rest_proxy(bootstrap, **limits) as rest:
        one, two = Instance(rest, "g-expiry"), Instance(rest, "g-expiry")
        assert rest("POST", "/consumers/g-expiry", {}, V2).error == (503, 50301)

        def only_one_left() -> bool:
            assert one.read("timeout=1") == []
            return rest("GET", f"{one.path}/assignments").status == 200 and created()

        def created() -> bool:
            return rest("POST", "/consumers/g-expiry", {"name": "three"}, V2).status == 200

        eventually(only_one_left, timeout=20, every=0.2, what="the second instance expired")
        assert rest("GET", f"{two.path}/assignments").error == (404, 40403)
