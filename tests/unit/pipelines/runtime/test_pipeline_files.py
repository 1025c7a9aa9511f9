"""Errors in pipeline files name their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.pipelines.runtime.definition import BadDefinition
from moldau.pipelines.runtime.pipeline_files import load


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\nif x\n", r"broken.py: SyntaxError: .*line 2"),
        ("import os\nimport no_such_module\n", r"broken.py:2: ModuleNotFoundError: .*no_such_module"),
        ("\n\nprint(unknown)\n", r"broken.py:3: NameError: .*unknown"),
    ],
)
def test_error_names_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "broken.py"
    file.write_text(text)
    with pytest.raises(BadDefinition, match=message):
        load([file])


def test_available_now_is_refused_for_sql_and_streams(tmp_path: Path) -> None:
    (tmp_path / "words.sql").write_text("SHOW STREAMS;")
    (tmp_path / "words.py").write_text(
        "from moldau.pipelines.streams import KafkaStreams, StreamsBuilder\n"
        "builder = StreamsBuilder()\n"
        "builder.stream('in').to('out')\n"
        "streams = KafkaStreams(builder.build(), {'application.id': 'a', 'bootstrap.servers': 'a:1'})\n"
    )
    for file in ("words.sql", "words.py"):
        assert len(load([tmp_path / file]).pipelines) == 1
        with pytest.raises(BadDefinition, match=rf"{file}: .* omit --available-now"):
            load([tmp_path / file], trigger={"availableNow": True})


@pytest.mark.parametrize("name", ["a/b", "../up", ""])
def test_name_must_be_valid_as_a_folder(tmp_path: Path, name: str) -> None:
    file = tmp_path / "named.py"
    file.write_text(
        "from moldau.pipelines.runtime.python_pipeline import Pipeline\n"
        f"mine = Pipeline({name!r}, lambda spark: None)\n"
    )
    with pytest.raises(BadDefinition, match="is not a valid name"):
        load([file])
