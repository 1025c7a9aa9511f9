"""Output formats of `moldau sql`: tables for people, JSON lines and CSV for programs."""

from __future__ import annotations

import base64
import csv
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from moldau.pipelines.sql.results import Message, Result, Rows

OUTPUTS = ("table", "json", "csv")
#: The width of tables that are not printed to a terminal.
_UNLIMITED_WIDTH = 100_000
_NARROWEST = 7
_LIVE_WIDTH = 100


def plain(value: Any) -> Any:
    """Convert a value of Spark to one that JSON can represent."""
    if hasattr(value, "asDict"):
        return {name: plain(one) for name, one in value.asDict().items()}
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, date) or hasattr(value, "isoformat"):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def cell(value: Any) -> str:
    """Return the text of a value in a table."""
    if value is None:
        return "null"
    if isinstance(value, Decimal):
        return str(value)
    simple = plain(value)
    return simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)


def printer(kind: str) -> Callable[[Result], None]:
    return {"table": Tables().show, "json": _json, "csv": _csv}[kind]


def _json(result: Result) -> None:
    if isinstance(result, Message):
        sys.stderr.write(f"{result.text}\n")
        return
    for row in result.rows:
        values = dict(zip(result.columns, (plain(value) for value in row), strict=True))
        print(json.dumps(values, ensure_ascii=False), flush=result.live)


def _csv(result: Result) -> None:
    if isinstance(result, Message):
        sys.stderr.write(f"{result.text}\n")
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(result.columns)
    for row in result.rows:
        writer.writerow(["" if value is None else cell(value) for value in row])
        if result.live:
            sys.stdout.flush()


class Tables:
    """Prints results as tables, which fit the terminal if there is one."""

    def __init__(self, console: Console | None = None) -> None:
        if console is None:
            width = None if sys.stdout.isatty() else _UNLIMITED_WIDTH
            console = Console(width=width, highlight=False, markup=False, emoji=False)
        self._console = console

    def show(self, result: Result) -> None:
        if isinstance(result, Message):
            self._console.print(result.text, soft_wrap=True)
        elif result.live:
            self._live(result)
        else:
            self._at_once(result)

    def _at_once(self, result: Rows) -> None:
        rows = [[cell(value) for value in row] for row in result.rows]
        if result.title:
            self._console.print(result.title, style="bold")
        if not rows:
            self._console.print(f"({', '.join(result.columns)}: no rows)", soft_wrap=True)
        elif len(result.columns) * _NARROWEST > self._console.width:
            self._one_line_per_value(result.columns, rows)
        else:
            self._console.print(_table(result.columns, rows))
        for note in result.notes:
            self._console.print(note, style="dim", soft_wrap=True)

    def _one_line_per_value(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print each value on its own line, for tables with more columns than fit."""
        width = max(map(len, columns))
        for number, row in enumerate(rows, 1):
            self._console.print(f"--- {number}", style="dim")
            for name, value in zip(columns, row, strict=True):
                self._console.print(f"{name:>{width}}  {value}", soft_wrap=True)

    def _live(self, result: Rows) -> None:
        """Print rows as they arrive, in columns of a width chosen before the first one."""
        for note in result.notes:
            self._console.print(note, style="dim", soft_wrap=True)
        available = min(self._console.width, _LIVE_WIDTH * max(1, len(result.columns) // 4))
        share = max(_NARROWEST, available // len(result.columns) - 2)
        widths = [max(len(name), share) for name in result.columns]
        self._console.print(_line(result.columns, widths), style="bold", no_wrap=True)
        self._console.print("─" * (sum(widths) + 2 * len(widths)), no_wrap=True)
        for row in result.rows:
            for line in _lines([cell(value) for value in row], widths):
                self._console.print(line, no_wrap=True)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    numbers = [all(_is_number(row[index]) for row in rows) for index in range(len(columns))]
    for name, number in zip(columns, numbers, strict=True):
        table.add_column(Text(name), justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(value) for value in row))
    return table


def _is_number(text: str) -> bool:
    return text == "null" or text.lstrip("-").replace(".", "", 1).isdigit()


def _line(values: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{value:<{width}}" for value, width in zip(values, widths, strict=True)).rstrip()


def _lines(values: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return the lines of a row; a value longer than its column continues on the next line."""
    parts = [
        [value[at : at + width] for at in range(0, max(len(value), 1), width)]
        for value, width in zip(values, widths, strict=True)
    ]
    height = max(map(len, parts))
    return [_line([part[row] if row < len(part) else "" for part in parts], widths) for row in range(height)]
