"""docs/CONNECTORS.md: the tables of settings are current, and its configurations are valid."""

from __future__ import annotations

import json

import pytest

from moldau.pipelines.connect.plugins import Plugins
from tests.docs.markdown import Block, blocks
from tools.connectors import PAGE, documented, known, with_tables


def test_the_tables_are_current() -> None:
    page = PAGE.read_text()
    assert page == with_tables(page), "run: python -m tools.connectors"


def test_the_documented_connectors_exist() -> None:
    assert documented(PAGE.read_text()) <= known()


#: Settings of all connectors, and those that catalogs and stores of tables define themselves.
OTHERS = ("key.converter", "value.converter", "errors.", "tasks.max", "iceberg.", "delta.storage.", "option.")
EXAMPLES = blocks(PAGE.read_text(), "json")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: json.loads(each.text)["connector.class"])
def test_configurations_are_valid(example: Block) -> None:
    config = json.loads(example.text)
    # Stands for the secrets and addresses that a config provider fills in.
    filled = {name: "mongodb://h" if value.endswith("_URI}") else value for name, value in config.items()}
    connector = Plugins().connector(config["connector.class"])
    errors = {name: value.errors for name, value in connector.validate(filled).items() if value.errors}
    assert errors == {}
    unknown = filled.keys() - connector.config.keys.keys() - {"connector.class", "topics"}
    assert {each for each in unknown if not each.startswith(OTHERS)} == set()
