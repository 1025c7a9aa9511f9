"""The input records of the scenes in `scenes`: always the same, and none of them late.

Streams end with a record an hour later, which closes every window. Where windows emit final results it is a
few seconds later, because Kafka Streams drops expired windows without emitting them. Tables that a stream
looks up are filled before it; tables that are joined change alternately. No two records of a scene have the
same timestamp, so that their order is the same for every reader.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from tests.harness.streams.scenes import SCENES

BEGIN_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
RECORDS = 40
KEYS = "abcd"
#: Scenes whose records are slightly out of order, within the grace period of their windows.
OUT_OF_ORDER = ("tumbling", "hopping", "sliding", "session", "session-aggregate")
#: Scenes that write a table: only the last value of each key is compared.
TABLE_SCENES = frozenset(
    {"count", "count-unnamed", "group-by", "select-key-count", "reduce", "aggregate", "tumbling", "hopping"}
    | {"sliding", "session", "session-aggregate", "suppress-window", "suppress-time", "table-join"}
    | {"table-left-join", "table-outer-join", "table-map-values", "table-filter", "to-table", "table-count"}
    | {"table-reduce", "table-aggregate", "cogroup", "cogroup-rekeyed", "cogroup-tumbling"}
    | {"cogroup-sliding", "cogroup-session", "foreign-join", "foreign-left-join", "foreign-join-counted"}
    | {
        "nulls-table",
        "nulls-count",
        "nulls-rekeyed",
        "disordered-table",
        "suppress-session",
        "table-transform",
    }
)


class Input(NamedTuple):
    topic: str
    key: str | None
    value: str | None
    timestamp: int


def inputs(scene: str) -> list[Input]:
    """Return the records in the order in which they are sent: by timestamp, except in `OUT_OF_ORDER`."""
    random = Random(scene)
    if scene == "disordered-table":
        return _shuffled(random, _updates(random, [f"{scene}-in"]))
    if scene.startswith("nulls-"):
        return _nulls(random, scene)
    if scene.startswith(("table-lookup", "global")):
        return _table(random, f"{scene}-table", scene) + _stream(random, [f"{scene}-in"], 10_000)
    if scene.startswith(("table-", "foreign-")):
        sides = ("left", "right") if "join" in scene else ("in",)
        return _updates(random, [f"{scene}-{side}" for side in sides])
    if scene == "emit-final":
        return _stream(random, [f"{scene}-in"], closed_after_ms=5000)
    two = scene.startswith(("stream-", "cogroup")) or scene == "merge"
    sent = _stream(random, [f"{scene}-{side}" for side in (("left", "right") if two else ("in",))])
    return _shuffled(random, sent) if scene in OUT_OF_ORDER else sent


def all_inputs() -> list[Input]:
    return [record for scene in SCENES for record in inputs(scene)]


def topics(scene: str) -> list[str]:
    return sorted({record.topic for record in inputs(scene)})


def _stream(
    random: Random, names: list[str], after_ms: int = 0, closed_after_ms: int = HOUR_MS
) -> list[Input]:
    now, sent = BEGIN_MS + after_ms, []
    for _ in range(RECORDS):
        now += random.randint(20, 500)
        sent.append(Input(random.choice(names), random.choice(KEYS), f"v{random.randint(0, 20)}", now))
    closing = [Input(name, "end", "v1", now + closed_after_ms + place) for place, name in enumerate(names)]
    return sent + closing


def _nulls(random: Random, scene: str) -> list[Input]:
    """Return records of which some have no key or no value."""
    if scene in ("nulls-lookup", "nulls-global"):
        table = _table(random, f"{scene}-table", scene.removeprefix("nulls-"))
        return table + _without(random, _stream(random, [f"{scene}-in"], 10_000))
    if scene == "nulls-table":
        return _without(random, _updates(random, [f"{scene}-in"]))
    sides = ("left", "right") if scene == "nulls-streams" else ("in",)
    return _without(random, _stream(random, [f"{scene}-{side}" for side in sides]))


def _without(random: Random, sent: list[Input]) -> list[Input]:
    def missing(record: Input) -> Input:
        chance = 1 if record.key == "end" else random.random()
        if chance < 0.2:
            return record._replace(key=None)
        return record._replace(value=None) if chance < 0.4 else record

    return [missing(record) for record in sent]


def _shuffled(random: Random, sent: list[Input]) -> list[Input]:
    """Delay each record by up to 300 ms."""
    return sorted(sent, key=lambda record: record.timestamp + random.randint(0, 300))


def _table(random: Random, name: str, scene: str) -> list[Input]:
    """Return the rows of a table, keyed by the stream's keys, their upper case, or its values."""
    keys = [f"v{each}" for each in range(0, 21, 2)] if scene.startswith("global") else list(KEYS)
    if scene.endswith("rekeyed"):
        keys = [key.upper() for key in keys]
    found = [*keys[1:], *keys[1:3], keys[-1]]
    values = [f"v{random.randint(0, 20)}" for _ in found]
    rows: list[tuple[str, str | None]] = [*zip(found, values, strict=True), (keys[-1], None)]
    return [Input(name, key, value, BEGIN_MS + place) for place, (key, value) in enumerate(rows)]


def _updates(random: Random, names: list[str]) -> list[Input]:
    """Return updates of tables; about every fifth deletes its key."""
    now, sent = BEGIN_MS, []
    for _ in range(RECORDS):
        now += random.randint(20, 500)
        value = None if random.random() < 0.2 else f"v{random.randint(0, 20)}"
        sent.append(Input(random.choice(names), random.choice(KEYS), value, now))
    return sent
