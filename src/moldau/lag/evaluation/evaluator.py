"""The interface of the evaluation: rounds in, verdicts out."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.base.ids import TopicPartition
from moldau.lag.evaluation.judging import Judge
from moldau.lag.evaluation.observation import Round
from moldau.lag.evaluation.rules import Commit
from moldau.lag.evaluation.state import LagRules, LagState
from moldau.lag.evaluation.verdicts import GroupLag, LagSnapshot


class LagEvaluator:
    """Keeps the history of all groups and judges them as of the last round.

    `snapshot` judges all groups at once; with many groups, an event loop calls `judge` for each of `groups`
    and passes the verdicts to `snapshot_of`.
    """

    def __init__(self, rules: LagRules) -> None:
        self.state = LagState(rules)

    def observe(self, found: Round) -> None:
        """Add a round to the history."""
        self.state.observe(found)

    @property
    def groups(self) -> list[str]:
        return sorted(self.state.groups)

    def judge(self, group: str) -> GroupLag:
        state = self.state
        return Judge(state.rules, state.round, state.ends).judge(state.groups[group])

    def snapshot(self, cluster_id: str | None = None) -> LagSnapshot:
        return self.snapshot_of({name: self.judge(name) for name in self.groups}, cluster_id)

    def snapshot_of(self, groups: Mapping[str, GroupLag], cluster_id: str | None) -> LagSnapshot:
        topics: dict[str, dict[int, int]] = {}
        for (topic, partition), ends in self.state.ends.items():
            if ends.last is not None:
                topics.setdefault(topic, {})[partition] = ends.last
        counts = dict(self.state.partition_counts)
        return LagSnapshot(self.state.round.time_ms, cluster_id, groups, topics, partition_counts=counts)

    def commits(self, group: str) -> dict[TopicPartition, list[Commit]]:
        """Return the commits of a group in the window."""
        known = self.state.groups.get(group)
        return {} if known is None else {each: history.commits() for each, history in known.histories.items()}
