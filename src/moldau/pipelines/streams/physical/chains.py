"""Translates chains to data frames: Spark computes leading native steps, and the other steps run as one
Python function over Arrow.

A chain without Python functions runs entirely in Spark. If the serdes at both ends have the same serialized
form, bytes are copied and nothing is deserialized.
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
from moldau.pipelines.streams.physical.arrow_chains import OUTPUT_COLUMNS, through_python
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
    """The rows that a chain emits (`OUTPUT_COLUMNS`), and whether some of its steps run in Python."""

    frame: DataFrame
    python: bool


def lower(rows: NativeRows, program: Program, *, validate: bool) -> Lowered:
    """Translate a program over rows with the standard columns; with `validate`, Python deserializes every
    record."""
    python_first = validate or program.timestamp_extractor is not None
    if not python_first and _wholly_native(program):
        try:
            frames = _native(rows, program, program.first, program.first_exits)
            if rows.side_outputs and not frames:
                # Nothing follows the operator, but its side outputs are needed.
                frames = [_emitted(rows, ())]
            return Lowered(_union(rows.frame, frames), python=False)
        except TopologyException:
            # Without expressions, Python can run the chain instead of Spark.
            if any(_has_expression(step) for step in program.steps):
                raise
    while not python_first and (step := _next_native(program)) is not None:
        rows = _apply(rows, step)
        program = replace(program, first=step.after, first_exits=step.exits)
    program = replace(program, key_serde=rows.key_serde, value_serde=rows.value_serde)
    return Lowered(through_python(rows.frame, _reachable(program)), python=True)


def _reachable(program: Program) -> Program:
    """Remove the steps that Spark computes, and check that no other step is an expression."""
    wanted, reached = list(program.first), set()
    while wanted:
        number = wanted.pop()
        if number in reached:
            continue
        reached.add(number)
        step = program.steps[number]
        if _has_expression(step):
            raise TopologyException(
                f"{step.name} is a Spark expression after a Python function or timestamp extractor, or with "
                "an exception handler that checks every record: place expressions first, or after "
                "repartition()"
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
    """Return the first step if Spark can compute it before Python receives the rows."""
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
    """Return the frames of a native chain: one for all exits whose rows no expression changes, and one after
    each expression."""
    passing, deeper = list(exits), []
    wanted = [(number, False) for number in first]
    while wanted:
        number, keyed = wanted.pop(0)
        step = program.steps[number]
        # Tables, and the steps after them, have no rows without a key.
        keyed = keyed or isinstance(step.operation, ToTable)
        there = _with_keys(rows) if keyed else rows
        if isinstance(step.operation, Split):
            deeper += _native_split(there, program, step)
        elif _has_expression(step):
            deeper += _native(_apply(there, step), program, step.after, step.exits)
        else:
            passing += [replace(each, needs_key=each.needs_key or keyed) for each in step.exits]
            wanted += [(each, keyed) for each in step.after]
    return [*([_emitted(rows, passing)] if passing else []), *deeper]


def _with_keys(rows: NativeRows) -> NativeRows:
    return replace(rows, frame=rows.frame.filter(F.col("key").isNotNull()))


def _native_split(rows: NativeRows, program: Program, split: Step) -> list[DataFrame]:
    """Return the frames of branches: a branch has the rows that match its predicate and no earlier one."""
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


def _emitted(rows: NativeRows, exits: Sequence[Exit]) -> DataFrame:
    """Emit rows at all exits in one pass: a union would make Spark compute the input once for each."""
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
    """Return the columns of side outputs, which are written to the partition of their task."""
    added = {"exit": F.lit(SIDE_OUTPUT), "target": F.col("target"), "target_partition": F.col("partition")}
    return [added.get(name, F.col(name)).alias(name) for name in OUTPUT_COLUMNS]


def _columns(rows: NativeRows, leaving: Exit) -> list[Column]:
    key = _converted(F.col("key"), rows.key_serde, leaving.key_serde, leaving.name, "keys")
    if leaving.key_suffix:
        key = F.concat(key, F.lit(leaving.key_suffix))
    if leaving.presence_only:
        value = F.when(F.col("value").isNotNull(), F.lit(b""))
    elif leaving.any_form:
        value = F.col("value")
    else:
        value = _converted(F.col("value"), rows.value_serde, leaving.value_serde, leaving.name, "values")
    partition = F.col("partition") if leaving.keeps_partition else F.lit(None).cast("int")
    added = {
        "exit": F.lit(leaving.number),
        "key": key,
        "value": value,
        "target": F.lit(leaving.topic).cast("string"),
        "target_partition": partition,
    }
    return [added.get(name, F.col(name)).alias(name) for name in OUTPUT_COLUMNS]


def _converted(column: Column, given: Any, wanted: Any, name: str, kind: str) -> Column:
    """Convert the bytes of one serde to those of another."""
    if wanted is None or same_bytes(given, wanted):
        return column
    return native.encoded(
        native.decoded(column, given, f"the {kind} of {name}"), wanted, f"the {kind} of {name}"
    )


def _union(frame: DataFrame, frames: Sequence[DataFrame]) -> DataFrame:
    if not frames:
        nothing = {"exit": F.lit(0), "target": F.lit(None).cast("string")}
        nothing["target_partition"] = F.lit(None).cast("int")
        empty = frame.filter(F.lit(False))
        return empty.select(*(nothing.get(name, F.col(name)).alias(name) for name in OUTPUT_COLUMNS))
    whole = frames[0]
    for each in frames[1:]:
        whole = whole.union(each)
    return whole
