"""Share groups: the position follows the broker's lag, and never seems to go back."""

from __future__ import annotations

from moldau.base.ids import TopicPartition
from moldau.lag.evaluation.evaluator import LagEvaluator
from moldau.lag.evaluation.observation import CommittedOffset, GroupObservation, Round
from moldau.lag.evaluation.rules import Status
from moldau.lag.evaluation.state import LagRules

PLACE = TopicPartition("orders", 0)


class ShareWorld:
    def __init__(self) -> None:
        self.evaluator = LagEvaluator(LagRules(60_000, 10_000))
        self.now_ms = 0

    def round(self, start: int, lag: int | None, end: int) -> None:
        self.now_ms += 10_000
        group = GroupObservation("jobs", "share", "Stable", {PLACE: CommittedOffset(start, lag)})
        self.evaluator.observe(Round(self.now_ms, {"jobs": group}, {PLACE: end}))

    @property
    def positions(self) -> list[int]:
        return [each.offset for each in self.evaluator.commits("jobs")[PLACE]]

    @property
    def status(self) -> Status:
        return self.evaluator.judge("jobs").status


def test_progress_without_a_new_start_offset_is_progress() -> None:
    world = ShareWorld()
    for completed in range(8):
        world.round(0, 100 - completed, 100)
    assert world.positions == [0 + each for each in range(1, 8)]
    assert world.status is Status.OK


def test_records_that_arrive_between_lag_and_end_offset_are_no_rewind() -> None:
    world = ShareWorld()
    for _ in range(8):
        world.round(0, 0, 100)
    world.round(0, 0, 150)  # 50 records arrived after the lag was read
    world.round(0, 50, 150)
    assert world.positions == [100, 150]
    assert world.status is not Status.REWIND


def test_a_reset_start_offset_is_a_rewind() -> None:
    world = ShareWorld()
    for completed in range(8):
        world.round(completed * 10, 100 - completed * 10, 100)
    world.round(20, 80, 100)
    assert world.positions[-2:] == [70, 20]
    assert world.status is Status.REWIND


def test_a_broker_without_lag_counts_from_the_start_offset() -> None:
    world = ShareWorld()
    world.round(40, None, 100)
    assert world.evaluator.judge("jobs").total_lag == 60
