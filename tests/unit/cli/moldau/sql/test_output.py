"""Results as tables, JSON and CSV."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from rich.console import Console

from moldau.cli.moldau.sql.output import Tables, cell, plain, printer
from moldau.pipelines.sql.results import Message, Rows


def test_values_are_converted_to_text() -> None:
    moment = datetime(2020, 1, 2, 3, 4, 5, 678_000, UTC)
    assert cell(None) == "null"
    assert cell(True) == "true"
    assert cell({"a": [1, None]}) == '{"a": [1, null]}'
    assert cell(b"xy") == "eHk="
    assert cell(Decimal("1.50")) == "1.50"
    assert cell(moment).startswith("2020-01-02T03:04:05.678")
    assert plain({"d": date(2020, 1, 2)}) == {"d": "2020-01-02"}


def shown(result: Rows | Message, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    Tables(console).show(result)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_tables_fit_the_width_of_the_terminal() -> None:
    rows = Rows(["id", "name"], [[1, "ann [x]"], [22, "b" * 30]], notes=["two rows"])
    wide = shown(rows, 80)
    assert "  1   ann [x]" in wide
    assert "two rows" in wide
    assert max(map(len, shown(rows, 20).splitlines())) <= 20
    many = Rows([f"column{number}" for number in range(12)], [list(range(12))])
    assert "column11  11" in shown(many, 40)
    assert "no rows" in shown(Rows(["a"], []), 80)
    assert shown(Message("done"), 80) == "done\n"


def test_live_rows_keep_column_widths_and_fold_long_values() -> None:
    lines = shown(Rows(["id", "text"], iter([[1, "x" * 50], [2, "y"]]), live=True), 40).splitlines()
    assert lines[0].split() == ["id", "text"]
    assert [line.count("x") for line in lines[2:5]] == [18, 18, 14]
    assert lines[5].split() == ["2", "y"]


def test_json_lines_and_csv(capsys: pytest.CaptureFixture[str]) -> None:
    rows = Rows(["id", "v"], [[1, None], [2, {"a": "ü,"}]])
    printer("json")(rows)
    printer("csv")(rows)
    printer("json")(Message("done"))
    written = capsys.readouterr()
    lines = written.out.splitlines()
    assert json.loads(lines[1]) == {"id": 2, "v": {"a": "ü,"}}
    assert lines[2:] == ["id,v", "1,", '2,"{""a"": ""ü,""}"']
    assert written.err == "done\n"
