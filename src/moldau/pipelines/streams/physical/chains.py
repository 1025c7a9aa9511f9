"""A leg as data frames: the steps that Spark computes itself first, the rest as one Python function over
Arrow.

A leg without any Python function stays in Spark altogether, and if the serdes on both sides have the same
form, nobody decodes anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from moldau.pipelines.streams.chains.planner import same_bytes
from moldau.pipelines.streams.chains.program import SIDE_OUTPUT, Exit, Program, Step
from moldau.pipelines.streams.errors import TopologyException
from moldau.pipelines.streams.physical import native
from moldau.pipelines.streams.physical.arrow_chains import LEFT_COLUMNS, through_python
from moldau.pipelines.streams.physical.native import NativeRows
from moldau.pipelines.streams.topology.operations import (
    Branch,
    Filter,
    MapValues,
    Merge,
    Repartition,
    SelectKey,
    Sink,
    Split,
    ToStream,
    ToTable,
    is_native,
)
from moldau.pipelines.streams.topology.stateful import Suppress

_PASSING = (Merge, Repartition, Sink, Suppress, ToStream, ToTable, Branch)


@dataclass(frozen=True, slots=True)
class Lowered:
    """What leaves a leg, `LEFT_COLUMNS`; and whether Python had to do something."""

    frame: DataFrame
    python: bool


def lower(rows: NativeRows, program: Program, *, validate: bool) -> Lowered:
    """Run a program over rows with the standard columns; `validate` has Python decode every record."""
    python_first = validate or program.timestamp_extractor is not None
    if not python_first and _wholly_native(program):
        try:
            frames = _native(rows, program, program.first, program.first_exits)
            if rows.side_outputs and not frames:
                # Nothing follows the operator, and yet it has to run.
                frames = [_leaving(rows, ())]
            return Lowered(_union(rows.frame, frames), python=False)
        except TopologyException:
            # Without expressions Python can do what Spark cannot.
            if any(_has_expression(step) for step in program.steps):
                raise
    while not python_first and (step := _next_native(program)) is not None:
        rows = _apply(rows, step)
        program = replace(program, first=step.after, first_exits=step.exits)
    program = replace(program, key_serde=rows.key_serde, value_serde=rows.value_serde)
    return Lowered(through_python(rows.frame, _reachable(program)), python=True)


def _reachable(program: Program) -> Program:
    """Without the steps that Spark has done; none of those that are left may be an expression."""
    wanted, reached = list(program.first), set()
    while wanted:
        number = wanted.pop()
        if number in reached:
            continue
        reached.add(number)
        step = program.steps[number]
        if _has_expression(step):
            raise TopologyException(
                f"{step.name} is a Spark expression behind a Python function, a timestamp extractor or a "
                "check of every record: put expressions first, or behind repartition()"
            )
        wanted += step.after
    done = Step("", ToStream(), ())
    steps = tuple(step if number in reached else done for number, step in enumerate(program.steps))
    return replace(program, steps=steps)


def _has_expression(step: Step) -> bool:
    return _is_native_step(step) and not isinstance(step.operation, _PASSING)


def _wholly_native(program: Program) -> bool:
    return all(_is_native_step(step) for step in program.steps) and all(
        _is_native_exit(each) for each in _exits(program)
    )


def _exits(program: Program) -> Iterator[Exit]:
    yield from program.first_exits
    for step in program.steps:
        yield from step.exits


def _is_native_exit(leaving: Exit) -> bool:
    return leaving.partitioner is None and leaving.extractor is None and not leaving.windowed


def _is_native_step(step: Step) -> bool:
    match step.operation:
        case Filter(predicate=function) | SelectKey(mapper=function) | MapValues(mapper=function):
            return is_native(function)
        case Split(predicates=functions):
            return all(is_native(function) for function in functions)
    return isinstance(step.operation, _PASSING)


def _next_native(program: Program) -> Step | None:
    """The first step, if Spark can do it before Python sees the rows."""
    if program.first_exits or len(program.first) != 1:
        return None
    step = program.steps[program.first[0]]
    return (
        step if isinstance(step.operation, Filter | SelectKey | MapValues) and _is_native_step(step) else None
    )


def _apply(rows: NativeRows, step: Step) -> NativeRows:
    match step.operation:
        case Filter(predicate=predicate, negated=negated):
            return native.filtered(rows, step.name, predicate, negated)
        case SelectKey(mapper=mapper):
            return native.with_keys(rows, step.name, mapper)
        case MapValues(mapper=mapper):
            return native.with_values(rows, step.name, mapper)
    return rows


def _native(
    rows: NativeRows, program: Program, first: Sequence[int], exits: Sequence[Exit]
) -> list[DataFrame]:
    """Exits that only pass rows on are one pass over them; what an expression changes is another frame."""
    passing, deeper = list(exits), []
    wanted = [(number, False) for number in first]
    while wanted:
        number, keyed = wanted.pop(0)
        step = program.steps[number]
        # A table, and so what is behind it, has no row without a key.
        keyed = keyed or isinstance(step.operation, ToTable)
        there = _with_keys(rows) if keyed else rows
        if isinstance(step.operation, Split):
            deeper += _native_split(there, program, step)
        elif _has_expression(step):
            deeper += _native(_apply(there, step), program, step.after, step.exits)
        else:
            passing += [replace(each, needs_key=each.needs_key or keyed) for each in step.exits]
            wanted += [(each, keyed) for each in step.after]
    return [*([_leaving(rows, passing)] if passing else []), *deeper]


def _with_keys(rows: NativeRows) -> NativeRows:
    return replace(rows, frame=rows.frame.filter(F.col("key").isNotNull()))


def _native_split(rows: NativeRows, program: Program, split: Step) -> list[DataFrame]:
    """Each branch has what its predicate holds for and no earlier one."""
    operation = split.operation
    predicates = operation.predicates if isinstance(operation, Split) else []
    frames: list[DataFrame] = []
    for number in split.after:
        branch = program.steps[number]
        position = branch.operation.position if isinstance(branch.operation, Branch) else None
        holds: Column = F.lit(True)
        for before in predicates[: len(predicates) if position is None else position]:
            holds = holds & ~F.coalesce(native.expression(before), F.lit(False))
        if position is not None:
            holds = holds & native.expression(predicates[position])
        chosen = native.filtered(rows, split.name, holds, negated=False)
        frames += _native(chosen, program, branch.after, branch.exits)
    return frames


def _leaving(rows: NativeRows, exits: Sequence[Exit]) -> DataFrame:
    """All exits at once: a union would have Spark do everything before it once more for each."""
    if len(exits) == 1 and not exits[0].needs_key and not rows.side_outputs:
        return rows.frame.select(*_columns(rows, exits[0]))
    made = [_struct(rows, each) for each in exits]
    structs = F.array_compact(F.array(*made)) if made else F.lit(None)
    if rows.side_outputs:
        sent = F.array(F.struct(*_side_columns()))
        structs = F.when(F.col("target").isNotNull(), sent).otherwise(structs)
    return rows.frame.select(F.inline(structs))


def _struct(rows: NativeRows, leaving: Exit) -> Column:
    made = F.struct(*_columns(rows, leaving))
    return F.when(F.col("key").isNotNull(), made) if leaving.needs_key else made


def _side_columns() -> list[Column]:
    """A row that an operator sends to a topic itself; its task's partition is the topic's."""
    added = {"exit": F.lit(SIDE_OUTPUT), "target": F.col("target"), "target_partition": F.col("partition")}
    return [added.get(name, F.col(name)).alias(name) for name in LEFT_COLUMNS]


def _columns(rows: NativeRows, leaving: Exit) -> list[Column]:
    key = _form(F.col("key"), rows.key_serde, leaving.key_serde, leaving.name, "keys")
    if leaving.key_suffix:
        key = F.concat(key, F.lit(leaving.key_suffix))
    if leaving.presence_only:
        value = F.when(F.col("value").isNotNull(), F.lit(b""))
    elif leaving.any_form:
        value = F.col("value")
    else:
        value = _form(F.col("value"), rows.value_serde, leaving.value_serde, leaving.name, "values")
    place = F.col("partition") if leaving.keeps_partition else F.lit(None).cast("int")
    added = {
        "exit": F.lit(leaving.number),
        "key": key,
        "value": value,
        "target": F.lit(leaving.topic).cast("string"),
        "target_partition": place,
    }
    return [added.get(name, F.col(name)).alias(name) for name in LEFT_COLUMNS]


def _form(column: Column, has: Any, wants: Any, name: str, kind: str) -> Column:
    if wants is None or same_bytes(has, wants):
        return column
    return native.encoded(
        native.decoded(column, has, f"the {kind} of {name}"), wants, f"the {kind} of {name}"
    )


def _union(frame: DataFrame, frames: Sequence[DataFrame]) -> DataFrame:
    if not frames:
        nothing = {"exit": F.lit(0), "target": F.lit(None).cast("string")}
        nothing["target_partition"] = F.lit(None).cast("int")
        empty = frame.filter(F.lit(False))
        return empty.select(*(nothing.get(name, F.col(name)).alias(name) for name in LEFT_COLUMNS))
    whole = frames[0]
    for each in frames[1:]:
        whole = whole.union(each)
    return whole
