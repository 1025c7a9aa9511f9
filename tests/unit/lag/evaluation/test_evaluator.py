"""Whatever happens to a group, verdicts follow from the lag, and the history stays bounded."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.lag.evaluation.rules import Status
from moldau.metrics.end_offsets import MAX_END_OFFSETS
from tests.scenarios.lag_world import GROUP, LagWorld

PARTITIONS = ("orders-0", "orders-1")
COMMANDS = st.one_of(
    st.tuples(st.just("produce"), st.sampled_from(PARTITIONS), st.integers(0, 500)),
    st.tuples(st.just("commit"), st.sampled_from(PARTITIONS), st.integers(0, 1000)),
    st.tuples(st.just("rounds"), st.integers(1, 12)),
    st.tuples(st.just("member"), st.sampled_from(("m1", "m2")), st.sampled_from(PARTITIONS)),
    st.tuples(st.just("rebalance"), st.sampled_from(("Stable", "Empty", "PreparingRebalance", "Dead"))),
    st.tuples(st.just("topic"), st.just("orders"), st.just(2)),
    st.tuples(st.just("retain"), st.sampled_from(PARTITIONS), st.integers(0, 500)),
    st.tuples(st.just("unavailable"), st.sampled_from(PARTITIONS)),
    st.tuples(st.just("available"), st.sampled_from(PARTITIONS)),
    st.sampled_from([("denied",), ("allowed",)]),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(COMMANDS, max_size=40), st.integers(0, 50))
def test_verdicts_follow_from_the_lag(commands: list[tuple[object, ...]], allowed_lag: int) -> None:
    world = LagWorld()
    world.run(f"window 60 10 allowed={allowed_lag}")
    world.run("topic orders 2")
    for command in commands:
        world.run(" ".join(map(str, command)))
    world.run("rounds 1")
    snapshot = world.evaluator.snapshot("id")
    group = snapshot.groups[GROUP]
    assert group.status == max((each.status for each in group.partitions), default=Status.OK)
    assert group.burrow_status in (Status.OK, Status.WARN, Status.ERR)
    lags = [each.lag for each in group.partitions if each.committed is not None]
    known = [each for each in lags if each is not None]
    assert group.total_lag == (sum(known) if group.offsets_read and len(known) == len(lags) else None)
    assert (group.reason is None) == (group.status is Status.OK)
    for each in group.partitions:
        assert 0 <= each.complete <= 1
        assert (each.reason is None) == (each.status is Status.OK)
        assert each.judged or each.status is Status.OK
        if each.lag is None or each.lag <= allowed_lag:
            assert each.status is Status.OK
        if each.status is Status.STOP:
            assert each.member_id == ""
        if each.lag_seconds is not None:
            assert each.lag_seconds >= 0 and (each.lag_seconds == 0 or each.lag)
    for commits in world.evaluator.commits(GROUP).values():
        assert len(commits) <= 7
        times = [commit.time_ms for commit in commits]
        assert times == sorted(set(times))
    assert all(len(ends) <= MAX_END_OFFSETS for ends in world.evaluator.state.ends.values())
