"""The executors of effects: one for each, and the resolution of regular expressions."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any, cast, get_args

from moldau.groups.modern.regex import ResolvedRegex
from moldau.server.coordinators.effects import EffectExecutors, RegexResolution
from moldau.statemachine.effects import Effect, ResolveRegexes


class _Unused:
    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"construction must not use {name}")


def test_the_table_has_an_executor_for_every_effect() -> None:
    unused: Any = _Unused()
    executors = EffectExecutors(unused, unused, unused, write_markers=lambda effect: None)
    assert set(executors._table) == set(get_args(Effect))
    assert all(not inspect.iscoroutinefunction(each) for each in executors._table.values())


class _Groups:
    """Remembers the resolved expressions that are stored."""

    def __init__(self) -> None:
        self.stored: list[Mapping[str, ResolvedRegex]] = []

    async def write(self, group_id: str, decide: Any) -> None:
        groups = self

        class Shard:
            def regexes_resolved(self, group_id: str, resolved: Mapping[str, ResolvedRegex]) -> None:
                groups.stored.append(resolved)

        decide(Shard())


class _Pool:
    async def run(self, function: Any, *arguments: Any) -> Any:
        return function(*arguments)


def test_an_expression_matches_only_topics_that_the_member_may_describe() -> None:
    groups = _Groups()
    topics = [f"orders-{number}" for number in range(1200)]
    effect = ResolveRegexes("g", ("orders-.*", "x"), topics, 1, 2, lambda name: name.endswith("0"))

    async def scenario() -> None:
        resolution = RegexResolution(cast(Any, groups), cast(Any, _Pool()))
        await resolution._resolve(effect)

    asyncio.run(scenario())
    (resolved,) = groups.stored
    assert resolved["orders-.*"].topics == {name for name in topics if name.endswith("0")}
    assert resolved["x"].topics == frozenset()
