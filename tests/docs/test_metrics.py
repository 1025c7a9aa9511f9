"""docs/METRICS.md is current; dashboard, alert rules and docs/OPERATIONS.md name metrics that are served."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from moldau.lag.serving.metrics import FAMILIES as LAG_FAMILIES
from moldau.metrics.catalog.table import FAMILIES
from moldau.metrics.family import Family, Kind
from tools.metrics import PAGE, page

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "moldau.json"
RULES = ROOT / "deploy" / "prometheus" / "moldau-alerts.yml"
OPERATIONS = ROOT / "docs" / "OPERATIONS.md"
NAME = re.compile(r"\b(?:kafka|moldau|process)_[a-z0-9_]+\b")
NOT_METRICS = {"kafka_exporter"}


def served_names() -> set[str]:
    """Return the names that nodes and `moldau lag --serve` serve."""
    names = {family.name for family in (*FAMILIES, *LAG_FAMILIES)}
    for family in FAMILIES:
        if family.kind is Kind.SUMMARY:
            names |= {f"{family.name}_sum", f"{family.name}_count"}
    return names


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run: python -m tools.metrics"


def test_names_are_unique() -> None:
    """A name that nodes and `moldau lag --serve` share is declared once."""
    names = [family.name for family in {id(family): family for family in (*FAMILIES, *LAG_FAMILIES)}.values()]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_help_is_a_sentence(family: Family) -> None:
    text = family.help
    assert text[0].isupper() or text[0].isdigit()
    assert text.endswith(".")


@pytest.mark.parametrize("file", [DASHBOARD, RULES, OPERATIONS], ids=lambda file: file.name)
def test_only_served_metrics_are_named(file: Path) -> None:
    named = set(NAME.findall(file.read_text()))
    assert len(named) > 10
    assert named - served_names() - NOT_METRICS == set()


def test_every_alert_is_explained() -> None:
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    explained = re.findall(r"^### (\w+)$", OPERATIONS.read_text(), re.MULTILINE)
    assert len(alerts) > 10
    assert explained == alerts


def test_the_dashboard_has_titles_and_queries() -> None:
    board = json.loads(DASHBOARD.read_text())
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len(panels) > 15
    assert len({panel["title"] for panel in panels}) == len(panels)
    assert all(target["expr"] for panel in panels for target in panel["targets"])
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
