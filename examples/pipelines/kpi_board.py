"""A KPI board: sales and revenue of shops by minute, computed by SQL and shown in the terminal.

    python examples/pipelines/kpi_board.py
    python examples/pipelines/kpi_board.py --bootstrap-server localhost:9092 --follow

The statements in `kpi_board.sql` aggregate sales, which are JSON, into a table by minute and shop. The board
queries the table and prints it; with `--follow` it does so until Ctrl-C.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from common import create_topics, parser, place, send, some_hours_ago, wait_for
from rich.console import Console
from rich.table import Table

from moldau import pipelines
from moldau.pipelines.sql import SqlEngine

SHOPS = ("Prague", "Dresden", "Hamburg")
_START = some_hours_ago()
SALES = [
    (SHOPS[number % 3], {"shop": SHOPS[number % 3], "amount": 5.0 + number % 7}, _START + 2000 * number)
    for number in range(60)
]
BOARD = "SELECT shop, minute, sales, revenue, best FROM kpis;"


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--follow", action="store_true", help="run until Ctrl-C")
    chosen = options.parse_args()
    with place(chosen) as where:
        if create_topics(where.bootstrap_servers, "sales"):
            send(where.bootstrap_servers, "sales", SALES)
        spark = pipelines.session("kpi-board")
        with SqlEngine(spark, where.bootstrap_servers, state_dir=where.folder / "sql") as engine:
            for result in engine.execute(Path(__file__).with_suffix(".sql").read_text()):
                print(result.text)
            wait_for("all sales on the board", lambda: sum(row[2] for row in board(engine)) >= len(SALES))
            draw(board(engine))
            while chosen.follow:
                time.sleep(5)
                draw(board(engine))
        spark.stop()
    return 0


def board(engine: SqlEngine) -> list[Any]:
    [result] = engine.execute(BOARD)
    return sorted(result.rows, key=lambda row: (row[1], row[0]))


def draw(rows: list[Any]) -> None:
    table = Table(title="Sales")
    for heading in ("shop", "minute", "sales", "revenue", "best"):
        table.add_column(heading, justify="left" if heading in ("shop", "minute") else "right")
    for row in rows:
        table.add_row(*map(str, row))
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
