"""docs/METRICS.md is current; dashboard, alert rules and docs/OPERATIONS.md name metrics that are served."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from moldau.lag.serving.metrics import FAMILIES as LAG_FAMILIES
from moldau.metrics.catalog.table import FAMILIES
from moldau.metrics.family import Family, Kind
from tools.metrics import PAGE, page

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "moldau.json"
RULES = ROOT / "deploy" / "prometheus" / "moldau-alerts.yml"
RULES_TEST = RULES.with_name("moldau-alerts-test.yml")
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


def test_every_alert_has_a_test_that_it_fires_and_one_that_it_does_not() -> None:
    fires, silent = set(), set()
    for test in yaml.safe_load(RULES_TEST.read_text())["tests"]:
        clusters = set(re.findall(r'cluster="(\w+)"', str(test["input_series"])))
        for case in test["alert_rule_test"]:
            expected = case.get("exp_alerts", [])
            assert all(each["exp_labels"]["cluster"] == "bad" for each in expected)
            (fires if expected else silent).add(case["alertname"])
        assert clusters == {"good", "bad"}
    assert fires == silent == set(re.findall(r"- alert: (\w+)", RULES.read_text()))


def test_the_dashboard_has_titles_and_queries() -> None:
    board = json.loads(DASHBOARD.read_text())
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len(panels) > 15
    assert len({panel["title"] for panel in panels}) == len(panels)
    assert all(target["expr"] for panel in panels for target in panel["targets"])
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
