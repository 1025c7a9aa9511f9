"""A stage resumes only from a checkpoint of the same operator, windows and topics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from moldau.pipelines.streams.application.checkpoints import check_checkpoints
from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from moldau.pipelines.streams.dsl.parameters import Consumed
from moldau.pipelines.streams.dsl.windows import TimeWindows
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.settings import StreamsSettings
from moldau.pipelines.streams.topology.stages import stages

TEXT = Consumed.with_("string", "string")


def counting(topics: str | Sequence[str], minutes: int | None = None) -> Callable[[StreamsBuilder], None]:
    def write(builder: StreamsBuilder) -> None:
        grouped = builder.stream(topics, TEXT).group_by_key()
        if minutes is None:
            grouped.count()
        else:
            grouped.windowed_by(TimeWindows.of_size_with_no_grace(minutes * 60_000)).count()

    return write


def reducing(builder: StreamsBuilder) -> None:
    """Another operator with the same name."""
    builder.stream("a", TEXT).group_by_key().reduce(max, name="KSTREAM-AGGREGATE-0000000002")


def started(folder: Path, write: Callable[[StreamsBuilder], None]) -> None:
    builder = StreamsBuilder()
    write(builder)
    config = {"application.id": "app", "bootstrap.servers": "nowhere:1", "state.dir": str(folder)}
    planner = Planner(StreamsSettings.of(config), {})
    made = stages(builder.build().nodes)
    check_checkpoints(made, planner)
    for stage in made:
        Path(planner.settings.checkpoint(stage.name)).mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            counting("b"),
            r"by Aggregate \(count\) over a, but KSTREAM-AGGREGATE-0000000002 is now Aggregate .* over b",
        ),
        (counting("a", 5), r"is now Aggregate \(count\) in TimeWindows\(size_ms=300000"),
        (
            lambda builder: builder.stream("a", TEXT).process(object, name="KSTREAM-AGGREGATE-0000000002"),
            "now Process",
        ),
        (reducing, r"now Aggregate \(reduce\) over a"),
    ],
)
def test_checkpoint_of_another_operator_is_rejected(
    tmp_path: Path, changed: Callable[[StreamsBuilder], None], message: str
) -> None:
    started(tmp_path, counting("a"))
    with pytest.raises(StreamsException, match=message):
        started(tmp_path, changed)
    started(tmp_path, counting("a"))


def test_operator_with_an_additional_topic_resumes_from_its_checkpoint(tmp_path: Path) -> None:
    started(tmp_path, counting("a"))
    started(tmp_path, counting(["a", "b"]))


def test_changed_operator_without_a_checkpoint_starts_over(tmp_path: Path) -> None:
    started(tmp_path, counting("a"))
    Path(tmp_path, "app", "KSTREAM-AGGREGATE-0000000002").rmdir()
    started(tmp_path, counting("b"))


def test_corrupt_stages_file_is_named_in_the_error(tmp_path: Path) -> None:
    started(tmp_path, counting("a"))
    Path(tmp_path, "app", "stages.json").write_text("{")
    with pytest.raises(StreamsException, match=r"stages\.json is corrupt"):
        started(tmp_path, counting("a"))
