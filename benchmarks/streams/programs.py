"""The programs of `StreamsPrograms.java` in the streams API: `python -m benchmarks.streams.programs`.

Arguments: bootstrap servers, application id, state directory, program, prefix of the topics. `stateless` is
written with Spark expressions, everything else with Python functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks.streams.session import started
from moldau.pipelines.streams import (
    Consumed,
    Grouped,
    Joined,
    JoinWindows,
    KafkaStreams,
    Materialized,
    Produced,
    Serdes,
    StreamJoined,
    StreamsBuilder,
    TimeWindows,
)

_MINUTE_MS, _NEAR_MS = 60_000, 10_000
_IN = Consumed.with_("string", "string")
_OUT = Produced.with_("string", "string")
_COUNTS = Produced.with_("string", "long")
_GROUPED = Grouped.with_("string", "string")
_TOTALS = Materialized.with_("string", "long")


def stateless(builder: StreamsBuilder, prefix: str) -> None:
    chosen = builder.stream(f"{prefix}-in", _IN).filter("cast(split(value, ',')[1] as bigint) >= 50")
    pairs = chosen.map_values(
        "named_struct('item', split(value, ',')[0], 'amount', cast(split(value, ',')[1] as bigint) * 2)"
    )
    pairs.select_key("value.item").map_values("cast(value.amount as string)").to(f"{prefix}-out", _OUT)


def words(builder: StreamsBuilder, prefix: str) -> None:
    lines = builder.stream(f"{prefix}-in", _IN).flat_map_values(str.split)
    counts = lines.group_by(lambda _, word: word, _GROUPED).count(materialized=_TOTALS)
    counts.to_stream().to(f"{prefix}-out", _COUNTS)


def windows(builder: StreamsBuilder, prefix: str) -> None:
    grouped = builder.stream(f"{prefix}-in", _IN).group_by_key(_GROUPED)
    minutes = grouped.windowed_by(TimeWindows.of_size_and_grace(_MINUTE_MS, _MINUTE_MS))
    counts = minutes.count(materialized=_TOTALS).to_stream()
    counts.to(f"{prefix}-out", Produced.with_(Serdes.time_windowed("string", _MINUTE_MS), "long"))


def streams(builder: StreamsBuilder, prefix: str) -> None:
    left, right = builder.stream(f"{prefix}-in", _IN), builder.stream(f"{prefix}-other", _IN)
    near = JoinWindows.of_time_difference_and_grace(_NEAR_MS, _MINUTE_MS)
    pairs = left.join(right, _together, near, StreamJoined("string", "string", "string"))
    pairs.to(f"{prefix}-out", _OUT)


def lookup(builder: StreamsBuilder, prefix: str) -> None:
    rows = builder.table(f"{prefix}-other", _IN)
    joined = Joined(key_serde="string", value_serde="string", other_value_serde="string")
    found = builder.stream(f"{prefix}-in", _IN).join(rows, _together, joined=joined)
    found.to(f"{prefix}-out", _OUT)


def totals(builder: StreamsBuilder, prefix: str) -> None:
    grouped = builder.table(f"{prefix}-in", _IN).group_by(_owner, Grouped.with_("string", "long"))
    sums = grouped.aggregate(int, _add, _subtract, materialized=_TOTALS)
    sums.to_stream().to(f"{prefix}-out", _COUNTS)


def _together(left: str, right: str) -> str:
    return f"{left}+{right}"


def _owner(_: str, value: str) -> tuple[str, int]:
    owner, amount = value.split(",")
    return owner, int(amount)


def _add(_: str, amount: int, total: int) -> int:
    return total + amount


def _subtract(_: str, amount: int, total: int) -> int:
    return total - amount


PROGRAMS: dict[str, Callable[[StreamsBuilder, str], None]] = {
    each.__name__: each for each in (stateless, words, windows, streams, lookup, totals)
}


def main() -> int:
    servers, application, folder, program, prefix = sys.argv[1:]
    builder = StreamsBuilder()
    PROGRAMS[program](builder, prefix)
    config = {
        "application.id": application,
        "bootstrap.servers": servers,
        "state.dir": folder,
        "commit.interval.ms": "100",
    }
    with KafkaStreams(builder.build(), config, started(application)) as running:
        running.await_termination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
