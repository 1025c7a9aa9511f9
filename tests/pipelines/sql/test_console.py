"""SQL in the web console: statements run with its registry, and name the line of a mistake."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.harness.browser import launched_browser, opened_page, violations
from tests.harness.rest_proxy import Api, service

if TYPE_CHECKING:
    from moldau.testing import Cluster

STATEMENTS = """SET 'auto.offset.reset' = 'earliest';
CREATE STREAM console_orders (id INT KEY, total DOUBLE)
  WITH (topic='console_orders', format='AVRO', partitions=1);
INSERT INTO console_orders VALUES (1, 2.5);
SELECT id, total FROM console_orders EMIT CHANGES LIMIT 1;
SELECT wrong FROM console_orders;
"""


def run(api: Api, statements: str) -> list[tuple[str, object]]:
    """Return the events of a run."""
    answer = api("POST", "/sql", {"statements": statements})
    assert answer.status == 201, answer.body
    text = api.raw("GET", f"/sql/{answer.body['run']}")[1].decode()
    found = []
    for block in text.split("\n\n"):
        if block.startswith("event: "):
            event, _, data = block.removeprefix("event: ").partition("\ndata: ")
            found.append((event, json.loads(data)))
    return found


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_statements_use_the_registry_of_the_console(broker: Cluster, state: None) -> None:
    with service("registry", broker.bootstrap_servers) as (registry, _):
        url = f"http://localhost:{registry}"
        arguments = ["--sql", "--registry", url]
        with service("console", broker.bootstrap_servers, *arguments) as (port, _):
            api = Api(port, {"Accept": "application/json"})
            refused = api("POST", "/sql", {"statements": "RUN SCRIPT '/etc/hostname';"})
            assert refused.status == 400 and "RUN SCRIPT" in refused.body["error"]
            events = run(api, STATEMENTS)
            assert ("row", {"id": 1, "total": 2.5}) in events, events
            said = "\n".join(str(data) for kind, data in events if kind == "message")
            assert "statements.sql, line 6" in said and url not in said
            assert events[-2:] == [("end", 1), ("closed", {})]
            assert "console_orders-value" in [
                each["subject"] for each in api("GET", "/schemas").body["subjects"]
            ]
            show_chart(port)
        masked = ["--sql", "--set", "masking.fields=total"]
        with service("console", broker.bootstrap_servers, *masked) as (port, _):
            refused = Api(port, {"Accept": "application/json"})(
                "POST", "/sql", {"statements": "SHOW TOPICS;"}
            )
            assert refused.status == 403 and "masked" in refused.body["error"]


def show_chart(port: int) -> None:
    """Run a query in a browser, and draw its result."""
    from playwright.sync_api import expect

    with launched_browser() as browser, opened_page(browser, f"http://127.0.0.1:{port}") as page:
        page.goto("/sql")
        values = ", ".join(f"({each}, {each * 1.5})" for each in range(2, 6))
        page.get_by_label("Statements").fill(
            f"SET 'auto.offset.reset' = 'earliest'; INSERT INTO console_orders VALUES {values};"
            "SELECT id, total, FORMAT_TIMESTAMP(FROM_UNIXTIME(ROWTIME), 'yyyy-MM-dd') AS day"
            " FROM console_orders EMIT CHANGES LIMIT 5;"
        )
        page.get_by_role("button", name="Run").click()
        rows = page.get_by_role("table", name="Results").locator("tbody tr")
        expect(rows).to_have_count(5, timeout=90_000)
        expect(page.get_by_role("status")).to_have_text("The statements have run.", timeout=30_000)
        for over in ("rows", "id", "day"):
            for kind in ("lines", "bars", "points"):
                page.get_by_label("Chart of", exact=True).select_option("total")
                page.get_by_label("over", exact=True).select_option(over)
                page.get_by_label("Chart type").select_option(kind)
                expect(page.get_by_role("img", name="Chart of the results").locator("canvas")).to_be_visible()
        assert violations(page) == []
