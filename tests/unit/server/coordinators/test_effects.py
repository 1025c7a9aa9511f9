"""Every effect that a decision can request has exactly one executor."""

from __future__ import annotations

import inspect
from typing import Any, get_args

from moldau.server.coordinators.effects import EffectExecutors
from moldau.statemachine.effects import Effect


class _Unused:
    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"construction must not use {name}")


def test_the_table_has_an_executor_for_every_effect() -> None:
    unused: Any = _Unused()
    executors = EffectExecutors(unused, unused, unused, write_markers=lambda effect: None)
    assert set(executors._table) == set(get_args(Effect))
    assert all(not inspect.iscoroutinefunction(each) for each in executors._table.values())
