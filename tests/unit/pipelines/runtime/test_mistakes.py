"""Mistakes in the user's files: told with their place, and nobody else's trouble."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from moldau.pipelines.runtime.definition import BadDefinition
from moldau.pipelines.runtime.host import Hosted
from moldau.pipelines.runtime.loading import load
from moldau.pipelines.runtime.python_pipeline import Context, Pipeline
from moldau.pipelines.runtime.restarts import Policy
from moldau.pipelines.runtime.state import Status


def hosted(error: Exception) -> Hosted:
    def function() -> Any:
        raise error

    return Hosted(Pipeline("mine", function), Status("mine"), Context("", ""), Policy(tries=2))


@pytest.mark.parametrize(
    "error", [ModuleNotFoundError("no pandas"), ZeroDivisionError(), NameError("x"), AssertionError("y")]
)
def test_a_pipeline_whose_function_fails_is_tried_again_and_given_up(error: Exception) -> None:
    pipeline = hosted(error)
    pipeline.tick(object(), 1.0)  # type: ignore[arg-type]
    assert pipeline.status.state == "waiting"
    pipeline.tick(object(), 100.0)  # type: ignore[arg-type]
    assert pipeline.status.state == "failed"


def test_a_driver_without_its_jvm_is_of_no_use() -> None:
    with pytest.raises(Py4JNetworkError):
        hosted(Py4JNetworkError("gone")).tick(object(), 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\nif x\n", r"mistaken.py: SyntaxError: .*line 2"),
        ("import os\nimport no_such_module\n", r"mistaken.py:2: ModuleNotFoundError: .*no_such_module"),
        ("\n\nprint(unknown)\n", r"mistaken.py:3: NameError: .*unknown"),
    ],
)
def test_a_file_with_a_mistake_says_where(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "mistaken.py"
    file.write_text(text)
    with pytest.raises(BadDefinition, match=told):
        load([file])


def test_what_never_ends_is_not_run_where_somebody_waits_for_the_end(tmp_path: Path) -> None:
    (tmp_path / "words.sql").write_text("SHOW STREAMS;")
    (tmp_path / "words.py").write_text(
        "from moldau.pipelines.streams import KafkaStreams, StreamsBuilder\n"
        "builder = StreamsBuilder()\n"
        "builder.stream('in').to('out')\n"
        "streams = KafkaStreams(builder.build(), {'application.id': 'a', 'bootstrap.servers': 'a:1'})\n"
    )
    for file in ("words.sql", "words.py"):
        assert len(load([tmp_path / file]).pipelines) == 1
        with pytest.raises(BadDefinition, match=rf"{file}: .* leave --available-now out"):
            load([tmp_path / file], trigger={"availableNow": True})


class Started:
    """What a function gives that has started a query itself."""

    def awaitTermination(self) -> None: ...


@pytest.mark.parametrize("result", [Started(), [Started()], iter([Started()])])
def test_a_query_that_never_ends_is_refused_where_somebody_waits_for_the_end(result: Any) -> None:
    def function() -> Any:
        return result

    endless = Pipeline("mine", function, trigger_of_run={"availableNow": True})
    with pytest.raises(BadDefinition, match=r"mine gives queries .* leave --available-now out"):
        endless.start(object(), Context("", ""))  # type: ignore[arg-type]


@pytest.mark.parametrize("result", [42, "text", None])
def test_what_is_no_query_is_told(result: Any) -> None:
    def function() -> Any:
        return result

    with pytest.raises(BadDefinition, match=f"gives {type(result).__name__}: it should give a frame"):
        Pipeline("mine", function).start(object(), Context("", ""))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a/b", "../up", ""])
def test_a_name_is_one_folder(tmp_path: Path, name: str) -> None:
    file = tmp_path / "named.py"
    file.write_text(
        "from moldau.pipelines.runtime.python_pipeline import Pipeline\n"
        f"mine = Pipeline({name!r}, lambda spark: None)\n"
    )
    with pytest.raises(BadDefinition, match="is no name"):
        load([file])
