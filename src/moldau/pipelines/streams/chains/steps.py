"""The steps of chains: one small function per stateless operation, listed in the table `STEPS`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from moldau.pipelines.streams.chains.program import Step
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.topology.operations import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    ForEach,
    Map,
    MapValues,
    Merge,
    Operation,
    Peek,
    Print,
    Repartition,
    SelectKey,
    Sink,
    Split,
    TableFilter,
    TableMapValues,
    ToStream,
    ToTable,
    is_native,
)
from moldau.pipelines.streams.topology.stateful import Suppress

if TYPE_CHECKING:
    from moldau.pipelines.streams.chains.runner import Next, Runner

_FAILED = object()


def step_function(runner: Runner, step: Step) -> Next:
    return STEPS[type(step.operation)](runner, step, step.operation)


def _guarded(runner: Runner, step: Step, function: Any) -> Callable[..., Any]:
    """Wrap a user's function to return `_FAILED` if it raises and the exception handler is `continue`."""
    if is_native(function):
        raise TopologyException(
            f"{step.name} is a Spark expression after a Python function whose serdes are not known: "
            "specify the serdes of its input, for example with repartition() or Grouped"
        )
    name = step.name

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:  # noqa: BLE001 - the user's function may raise anything
            runner.failed(name, error)
            return _FAILED

    return call


def _pass(runner: Runner, step: Step, _: Any) -> Next:
    return runner.after(step)


def _filter(runner: Runner, step: Step, operation: Filter) -> Next:
    predicate, after, negated = (
        _guarded(runner, step, operation.predicate),
        runner.after(step),
        operation.negated,
    )

    def run(key: Any, value: Any) -> None:
        holds = predicate(key, value)
        if holds is not _FAILED and bool(holds) is not negated:
            after(key, value)

    return run


def _select_key(runner: Runner, step: Step, operation: SelectKey) -> Next:
    mapper, after = _guarded(runner, step, operation.mapper), runner.after(step)

    def run(key: Any, value: Any) -> None:
        new = mapper(key, value)
        if new is not _FAILED:
            after(new, value)

    return run


def _map(runner: Runner, step: Step, operation: Map) -> Next:
    mapper, after = _guarded(runner, step, operation.mapper), runner.after(step)

    def run(key: Any, value: Any) -> None:
        pair = mapper(key, value)
        if pair is not _FAILED:
            after(*pair)

    return run


def _map_values(runner: Runner, step: Step, operation: MapValues) -> Next:
    mapper, after = _guarded(runner, step, operation.mapper), runner.after(step)

    def run(key: Any, value: Any) -> None:
        new = mapper(key, value) if operation.with_key else mapper(value)
        if new is not _FAILED:
            after(key, new)

    return run


def _flat_map(runner: Runner, step: Step, operation: FlatMap) -> Next:
    mapper = _guarded(runner, step, lambda key, value: list(operation.mapper(key, value)))
    after = runner.after(step)

    def run(key: Any, value: Any) -> None:
        pairs = mapper(key, value)
        if pairs is not _FAILED:
            for pair in pairs:
                after(*pair)

    return run


def _flat_map_values(runner: Runner, step: Step, operation: FlatMapValues) -> Next:
    function = operation.mapper
    if operation.with_key:
        mapper = _guarded(runner, step, lambda key, value: list(function(key, value)))
    else:
        mapper = _guarded(runner, step, lambda _, value: list(function(value)))
    after = runner.after(step)

    def run(key: Any, value: Any) -> None:
        values = mapper(key, value)
        if values is not _FAILED:
            for each in values:
                after(key, each)

    return run


def _act(runner: Runner, step: Step, operation: Peek | ForEach) -> Next:
    action, after = _guarded(runner, step, operation.action), runner.after(step)

    def run(key: Any, value: Any) -> None:
        if action(key, value) is not _FAILED:
            after(key, value)

    return run


def _pair(key: Any, value: Any) -> str:
    return f"{key}, {value}"


def _print(runner: Runner, step: Step, operation: Print) -> Next:
    after = runner.after(step)
    text = _guarded(runner, step, operation.printed.mapper or _pair)

    def run(key: Any, value: Any) -> None:
        formatted = text(key, value)
        if formatted is _FAILED:
            return
        line = f"[{operation.label}]: {formatted}\n"
        if operation.printed.file is None:
            sys.stdout.write(line)
        else:
            with open(operation.printed.file, "a", encoding="utf-8") as file:
                file.write(line)
        after(key, value)

    return run


def _split(runner: Runner, step: Step, operation: Split) -> Next:
    branches = runner.branches(step)
    predicates = [
        (_guarded(runner, step, predicate), branches.get(position))
        for position, predicate in enumerate(operation.predicates)
    ]
    rest = branches.get(None)

    def run(key: Any, value: Any) -> None:
        for predicate, after in predicates:
            holds = predicate(key, value)
            if holds is _FAILED:
                return
            if holds:
                if after is not None:
                    after(key, value)
                return
        if rest is not None:
            rest(key, value)

    return run


def _to_table(runner: Runner, step: Step, _: ToTable) -> Next:
    after = runner.after(step)

    def run(key: Any, value: Any) -> None:
        if key is not None:
            after(key, value)

    return run


def _table_filter(runner: Runner, step: Step, operation: TableFilter) -> Next:
    """Filter a table: a row that does not match is forwarded as a tombstone, which deletes its older
    value."""
    predicate, after, negated = (
        _guarded(runner, step, operation.predicate),
        runner.after(step),
        operation.negated,
    )

    def run(key: Any, value: Any) -> None:
        if key is None:
            return
        holds = value is not None and predicate(key, value)
        if holds is not _FAILED:
            after(key, value if value is not None and bool(holds) is not negated else None)

    return run


def _table_map_values(runner: Runner, step: Step, operation: TableMapValues) -> Next:
    mapper, after = _guarded(runner, step, operation.mapper), runner.after(step)

    def run(key: Any, value: Any) -> None:
        if key is None:
            return
        if value is not None:
            value = mapper(key, value) if operation.with_key else mapper(value)
        if value is not _FAILED:
            after(key, value)

    return run


STEPS: Mapping[type[Operation], Callable[[Runner, Step, Any], Next]] = {
    Branch: _pass,
    Filter: _filter,
    FlatMap: _flat_map,
    FlatMapValues: _flat_map_values,
    ForEach: _act,
    Map: _map,
    MapValues: _map_values,
    Merge: _pass,
    Peek: _act,
    Print: _print,
    Repartition: _pass,
    SelectKey: _select_key,
    Sink: _pass,
    Split: _split,
    Suppress: _pass,
    TableFilter: _table_filter,
    TableMapValues: _table_map_values,
    ToStream: _pass,
    ToTable: _to_table,
}
