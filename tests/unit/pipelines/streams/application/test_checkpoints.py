"""A checkpoint of another operator is refused with a sentence that says what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from moldau.pipelines.streams.application.checkpoints import check_checkpoints
from moldau.pipelines.streams.application.settings import StreamsSettings
from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from moldau.pipelines.streams.dsl.parameters import Consumed
from moldau.pipelines.streams.dsl.windows import TimeWindows
from moldau.pipelines.streams.errors import StreamsException
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
    """The same number for another operator."""
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
    ("changed", "says"),
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
def test_another_operator_does_not_go_on_from_a_checkpoint(
    tmp_path: Path, changed: Callable[[StreamsBuilder], None], says: str
) -> None:
    started(tmp_path, counting("a"))
    with pytest.raises(StreamsException, match=says):
        started(tmp_path, changed)
    started(tmp_path, counting("a"))


def test_the_same_operator_goes_on_also_with_one_topic_more(tmp_path: Path) -> None:
    started(tmp_path, counting("a"))
    started(tmp_path, counting(["a", "b"]))


def test_what_has_no_checkpoint_any_more_begins_anew(tmp_path: Path) -> None:
    started(tmp_path, counting("a"))
    Path(tmp_path, "app", "KSTREAM-AGGREGATE-0000000002").rmdir()
    started(tmp_path, counting("b"))


def test_a_damaged_note_says_which_file_it_is(tmp_path: Path) -> None:
    started(tmp_path, counting("a"))
    Path(tmp_path, "app", "stages.json").write_text("{")
    with pytest.raises(StreamsException, match=r"stages\.json is damaged"):
        started(tmp_path, counting("a"))
