from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.statemachine.decision import Decision
from moldau.statemachine.runtime import CommitTimeout, Runtime

Counting = Callable[[], Decision[int, str]]


class ListLog:
    """Takes records and commits them when told to."""

    def __init__(self) -> None:
        self.records: list[int] = []
        self.refuse: KafkaError | None = None

    @property
    def end_offset(self) -> int:
        return len(self.records)

    def append(self, records: Sequence[int]) -> int:
        if self.refuse is not None:
            raise self.refuse
        self.records.extend(records)
        return len(self.records) - 1


class Sum:
    """A state machine that adds numbers."""

    def __init__(self) -> None:
        self.total = 0
        self.log = ListLog()
        self.runtime: Runtime[int] = Runtime(self.log, self.replay)

    def replay(self, records: Sequence[int], base_offset: int) -> None:
        assert self.log.records[base_offset:] == list(records)
        self.total += sum(records)

    def add(self, *numbers: int) -> Counting:
        return lambda: Decision(numbers, f"total was {self.total}")


def run(test: Callable[[Sum], object]) -> None:
    async def main() -> None:
        await asyncio.wait_for(test(Sum()), 5)  # type: ignore[arg-type]

    asyncio.run(main())


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_a_response_waits_for_the_commit_but_the_next_decision_does_not() -> None:
    async def test(machine: Sum) -> None:
        first = asyncio.ensure_future(machine.runtime.write(machine.add(1, 2)))
        second = asyncio.ensure_future(machine.runtime.write(machine.add(4)))
        await settle()
        assert machine.total == 7
        assert not first.done() and not second.done()
        machine.runtime.committed(1)
        assert await first == "total was 0"
        assert not second.done()
        machine.runtime.committed(2)
        assert await second == "total was 3"

    run(test)


def test_a_decision_without_records_waits_for_the_records_it_may_have_seen() -> None:
    async def test(machine: Sum) -> None:
        assert await machine.runtime.write(machine.add()) == "total was 0"
        writing = asyncio.ensure_future(machine.runtime.write(machine.add(5)))
        await settle()
        looking = asyncio.ensure_future(machine.runtime.write(machine.add()))
        reading = asyncio.ensure_future(machine.runtime.read(lambda: machine.total))
        await settle()
        assert not looking.done() and not reading.done()
        machine.runtime.committed(0)
        assert await writing == "total was 0"
        assert await looking == "total was 5"
        assert await reading == 5

    run(test)


def test_a_refused_append_changes_nothing() -> None:
    async def test(machine: Sum) -> None:
        machine.log.refuse = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full")
        with pytest.raises(KafkaError, match="full"):
            await machine.runtime.write(machine.add(1))
        assert machine.total == 0
        machine.log.refuse = None
        writing = asyncio.ensure_future(machine.runtime.write(machine.add(1)))
        await settle()
        machine.runtime.committed(0)
        assert await writing == "total was 0"

    run(test)


def test_a_decision_that_raises_changes_nothing() -> None:
    async def test(machine: Sum) -> None:
        def refuse() -> Decision[int, str]:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "no")

        with pytest.raises(KafkaError, match="no"):
            await machine.runtime.write(refuse)
        assert machine.log.records == []

    run(test)


def test_truncated_records_fail_waiting_requests_and_the_runtime_continues() -> None:
    async def test(machine: Sum) -> None:
        writing = [asyncio.ensure_future(machine.runtime.write(machine.add(1))) for _ in range(2)]
        await settle()
        machine.log.records.clear()
        machine.total = 0
        machine.runtime.failed(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full"))
        for task in writing:
            with pytest.raises(KafkaError, match="full"):
                await task
        again = asyncio.ensure_future(machine.runtime.write(machine.add(9)))
        await settle()
        machine.runtime.committed(0)
        assert await again == "total was 0"

    run(test)


def test_a_cancelled_request_does_not_disturb_others() -> None:
    async def test(machine: Sum) -> None:
        impatient = asyncio.ensure_future(machine.runtime.write(machine.add(1)))
        patient = asyncio.ensure_future(machine.runtime.write(machine.add(1)))
        await settle()
        impatient.cancel()
        await settle()
        machine.runtime.committed(1)
        assert await patient == "total was 1"
        assert impatient.cancelled()

    run(test)


def test_refuse_lets_pending_requests_finish() -> None:
    async def test(machine: Sum) -> None:
        writing = asyncio.ensure_future(machine.runtime.write(machine.add(1)))
        await settle()
        machine.runtime.refuse(KafkaError(ErrorCode.NOT_CONTROLLER, "stopping"))
        with pytest.raises(KafkaError, match="stopping"):
            await machine.runtime.write(machine.add(1))
        machine.runtime.committed(0)
        assert await writing == "total was 0"

    run(test)


def test_close_fails_pending_and_new_requests() -> None:
    async def test(machine: Sum) -> None:
        writing = asyncio.ensure_future(machine.runtime.write(machine.add(1)))
        await settle()
        machine.runtime.close(KafkaError(ErrorCode.NOT_CONTROLLER, "gone"))
        with pytest.raises(KafkaError, match="gone"):
            await writing
        with pytest.raises(KafkaError, match="gone"):
            await machine.runtime.write(machine.add(1))
        with pytest.raises(KafkaError, match="gone"):
            await machine.runtime.read(lambda: machine.total)

    run(test)


def test_a_response_times_out_and_its_records_stay() -> None:
    async def test(state: Sum) -> None:
        timeout = CommitTimeout(lambda: 10, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        state.runtime = Runtime(state.log, state.replay, timeout=timeout)
        with pytest.raises(KafkaError) as late:
            await state.runtime.write(state.add(1))
        assert late.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        with pytest.raises(KafkaError) as late:
            await state.runtime.read(lambda: state.total)
        assert late.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        state.runtime.committed(0)
        assert await state.runtime.read(lambda: state.total) == 1

    run(test)


def test_on_refused_receives_the_error_of_a_refused_append() -> None:
    async def test(state: Sum) -> None:
        errors: list[KafkaError] = []
        state.log.refuse = KafkaError(ErrorCode.NOT_COORDINATOR)
        with pytest.raises(KafkaError):
            await state.runtime.write(lambda: Decision([1], "never", on_refused=errors.append))
        assert errors == [state.log.refuse] and state.total == 0

    run(test)
