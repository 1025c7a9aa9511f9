"""The service: held replies, shared batches, failed writes, foreign records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from moldau.http.errors import ApiError
from moldau.registry.state import errors
from moldau.registry.state.records import DamagedRecord
from moldau.registry.state.registry import Decision, Registry
from tests.harness.registry.application import Answer
from tests.unit.registry.memory_log import MemoryLog, timed_out
from tests.unit.registry.requests import TestRegistry, on_a_loop, record


@on_a_loop
async def test_a_decision_sees_the_one_before_it_though_neither_is_acknowledged() -> None:
    registry = await TestRegistry().start()
    registry.log.open.clear()
    writes = [asyncio.create_task(registry.register("s", record("r", f"f{i}"))) for i in range(5)]
    await asyncio.sleep(0.01)
    assert not any(write.done() for write in writes)
    registry.log.open.set()
    answers = [(await write).json for write in writes]
    assert [(each["id"], each["version"]) for each in answers] == [(i, i) for i in range(1, 6)]


@on_a_loop
async def test_a_read_does_not_show_what_is_not_acknowledged() -> None:
    registry = await TestRegistry().start()
    registry.log.open.clear()
    write = asyncio.create_task(registry.register("s", record("r", "a")))
    await asyncio.sleep(0.01)
    read = asyncio.create_task(registry.ask("GET", "/schemas/ids/1"))
    await asyncio.sleep(0.01)
    assert not read.done()
    registry.log.fails = timed_out()
    registry.log.open.set()
    assert (await write).json["error_code"] == 50002
    assert (await read).json["error_code"] == 40403


@on_a_loop
async def test_registering_the_same_waits_for_the_first_registration() -> None:
    registry = await TestRegistry().start()
    registry.log.open.clear()
    first = asyncio.create_task(registry.register("s", record("r", "a")))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(registry.register("s", record("r", "a")))
    await asyncio.sleep(0.01)
    assert not second.done()
    registry.log.open.set()
    assert (await first).json["id"] == (await second).json["id"] == 1
    assert len(registry.log.records) == 1


@on_a_loop
async def test_after_a_failed_write_the_state_is_that_of_the_topic() -> None:
    registry = await TestRegistry().start()
    await registry.register("s", record("r", "a"))
    registry.log.fails = timed_out()
    lost = await registry.register("s", record("r", "b"))
    assert (lost.status, lost.json["error_code"]) == (500, 50002)
    assert registry.leader.fencings > 0
    registry.log.fails = None
    assert (await registry.ask("GET", "/subjects/s/versions")).json == [1]
    assert (await registry.register("s", record("r", "c"))).json["id"] == 2


@on_a_loop
async def test_an_unconfirmed_write_that_was_stored_is_found_after_loading() -> None:
    registry = await TestRegistry().start()
    registry.log.fails = timed_out()
    registry.log.stores_before_failing = True
    assert (await registry.register("s", record("r", "a"))).status == 500
    registry.log.fails = None
    assert (await registry.ask("GET", "/schemas/ids/1")).status == 200
    assert (await registry.register("t", record("r", "b"))).json["id"] == 2


@on_a_loop
async def test_a_record_of_another_instance_is_applied_and_clears_cached_responses() -> None:
    log = MemoryLog()
    ours = await TestRegistry(log).start()
    await ours.register("s", record("r", "a"))
    assert (await ours.ask("GET", "/subjects")).json == ["s"]
    log.write(b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', b'{"subject":"s","version":1}')
    assert (await ours.ask("GET", "/subjects")).json == []


FOREIGN = (
    b'{"keytype":"SCHEMA","subject":"t","version":1,"magic":1}',
    b'{"subject":"t","version":1,"id":1,"schema":"\\"string\\"","deleted":false}',
)


@on_a_loop
async def test_a_write_is_not_acknowledged_if_a_foreign_record_precedes_it() -> None:
    """A leader without fencing, such as Confluent's, has given the same id to another schema."""
    registry = await TestRegistry().start()
    registry.log.open.clear()
    write, same = (asyncio.create_task(registry.register("s", record("r", "a"))) for _ in range(2))
    await asyncio.sleep(0.01)
    registry.log.write(*FOREIGN)
    registry.log.open.set()
    for answer in (await write, await same):
        assert (answer.status, answer.json["error_code"]) == (500, 50001)
        assert "another instance wrote to the topic" in answer.json["message"]
    assert (await registry.ask("GET", "/schemas/ids/1")).json["schema"] == '"string"'
    assert (await registry.ask("GET", "/subjects/s/versions")).status == 404
    assert (await registry.register("s", record("r", "a"))).json["id"] == 2


@on_a_loop
async def test_a_read_beside_a_foreign_record_is_answered_from_the_topic() -> None:
    registry = await TestRegistry().start()
    registry.log.open.clear()
    write = asyncio.create_task(registry.register("s", record("r", "a")))
    await asyncio.sleep(0.01)
    reads = [asyncio.create_task(registry.ask("GET", f"/subjects/{name}/versions/1")) for name in "su"]
    await asyncio.sleep(0.01)
    registry.log.write(FOREIGN[0].replace(b'"t"', b'"u"'), FOREIGN[1].replace(b'"t"', b'"u"'))
    registry.log.open.set()
    assert [(await read).status for read in reads] == [404, 200]
    assert (await write).status == 500


@on_a_loop
async def test_the_time_of_a_version_is_that_of_its_record() -> None:
    registry = await TestRegistry().start()
    await registry.register("s", record("r", "a"))
    assert (await registry.ask("GET", "/schemas/ids/1")).json["ts"] == 1001


@on_a_loop
async def test_a_response_cached_before_a_recovery_is_not_used_after_it() -> None:
    registry = await TestRegistry().start()
    registry.log.write(
        b'{"keytype":"CONFIG","subject":"x","magic":0}', b'{"subject":"x","compatibilityLevel":"FULL"}'
    )
    assert (await registry.ask("GET", "/subjects")).json == []
    registry.log.fails = timed_out()
    assert (await registry.register("s", record("r", "a"))).status == 500
    registry.log.fails = None
    # The topic has been written by another instance, and has as many records as before.
    registry.log.records[:] = [
        (
            b'{"keytype":"SCHEMA","subject":"t","version":1,"magic":1}',
            b'{"subject":"t","version":1,"id":1,"schema":"\\"string\\"","deleted":false}',
        )
    ]
    # A write without a record makes this instance the leader again, which alone uses such responses.
    assert (await registry.register("t", '"string"')).json["id"] == 1
    assert (await registry.ask("GET", "/subjects")).json == ["t"]


@on_a_loop
async def test_a_failed_append_is_not_taken_for_an_acknowledged_one() -> None:
    registry = await TestRegistry().start()
    tasks: list[asyncio.Task[Answer]] = []

    def ask_before_the_writer_knows() -> None:
        tasks.append(asyncio.create_task(registry.ask("GET", "/schemas/ids/1")))
        tasks.append(asyncio.create_task(registry.register("s", record("r", "a"))))
        registry.log.on_failure = None

    registry.log.fails = timed_out()
    registry.log.on_failure = ask_before_the_writer_knows
    assert (await registry.register("s", record("r", "a"))).status == 500
    assert [(await task).status for task in tasks] == [404, 500]
    assert registry.log.records == []


@on_a_loop
async def test_metadata_that_names_no_version_is_stored_as_it_is() -> None:
    registry = await TestRegistry().start()
    for number, text in enumerate(("--5", "²", "1_0", "9" * 5000), 1):
        answer = await registry.register(
            "s", record("r", f"f{number}"), metadata={"properties": {"confluent:version": text}}
        )
        assert (answer.status, answer.json["version"]) == (200, number)
    again = await TestRegistry(registry.log).start()
    assert (await again.ask("GET", "/subjects/s/versions")).json == [1, 2, 3, 4]


@on_a_loop
async def test_of_a_precomputation_only_an_invalid_schema_matters() -> None:
    service = (await TestRegistry().start()).service

    def failing(error: Exception) -> Callable[[Registry], Decision]:
        def decide(_: Registry) -> Decision:
            raise error

        return decide

    for error in (errors.schema_not_found(), LookupError(), RuntimeError("changed during iteration")):
        await service.precompute(failing(error))
    with pytest.raises(ApiError, match="no schema"):
        await service.precompute(failing(errors.invalid_schema("no schema")))
    with pytest.raises(ZeroDivisionError):
        await service.precompute(failing(ZeroDivisionError()))
    await service.close()


@on_a_loop
async def test_records_that_cannot_be_applied_are_neither_stored_nor_visible() -> None:
    registry = await TestRegistry().start()
    good = (
        b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
        b'{"subject":"s","version":1,"id":1,"schema":"\\"string\\"","deleted":false}',
    )

    with pytest.raises(DamagedRecord):
        await registry.service.write(lambda _: Decision((good, (b"no JSON", b"")), None))
    assert (await registry.ask("GET", "/subjects")).json == []
    assert registry.log.records == []
    assert (await registry.register("s", record("r", "a"))).json["id"] == 1
