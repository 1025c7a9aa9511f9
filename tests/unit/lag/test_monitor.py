"""A monitor whose rounds meet a bug says so; one whose rounds fail continues."""

from __future__ import annotations

import asyncio

from moldau.base.errors import ErrorCode, KafkaError
from moldau.lag.evaluation.state import LagRules
from moldau.lag.monitor import LagMonitor
from tests.harness.lag.broker import LagBroker

RULES = LagRules(300, 20)


def test_a_failed_round_leaves_the_verdicts_and_the_next_one_replaces_them() -> None:
    async def run(broker: LagBroker) -> None:
        monitor = LagMonitor(broker.bootstrap, RULES)
        await monitor.start()
        known = monitor.snapshot
        broker.listing_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        while monitor.snapshot.error is None:
            await asyncio.sleep(0.01)
        assert monitor.snapshot.groups.keys() == known.groups.keys()
        broker.listing_error = ErrorCode.NONE
        while monitor.snapshot.error is not None:
            await asyncio.sleep(0.01)
        assert monitor.snapshot.time_ms > known.time_ms
        await monitor.close()

    with LagBroker(2) as broker:
        asyncio.run(asyncio.wait_for(run(broker), 30))


def test_a_listener_that_raises_stops_the_monitor_with_a_reason() -> None:
    async def run(broker: LagBroker) -> str:
        monitor = LagMonitor(broker.bootstrap, RULES)
        await monitor.start()

        def broken(change: object) -> None:
            raise ValueError("a bug")

        monitor.on_change.append(broken)
        reason = await monitor.failed()
        await monitor.close()
        return reason

    with LagBroker(1) as broker:
        # The groups have lag and make no progress: their status changes after a window.
        reason = asyncio.run(asyncio.wait_for(run(broker), 30))
    assert "ValueError('a bug')" in reason


def test_a_cluster_that_cannot_be_reached_is_an_error_at_the_start() -> None:
    async def run() -> KafkaError:
        monitor = LagMonitor("127.0.0.1:1", RULES)
        try:
            await monitor.start()
        except KafkaError as error:
            return error
        finally:
            await monitor.close()
        raise AssertionError("it was reached")

    assert "127.0.0.1:1" in str(asyncio.run(run()))
