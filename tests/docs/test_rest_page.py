"""docs/REST.md: its commands run in their order, and its tables are current."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.dev_services import REGISTRY, REST, DevServices
from tests.docs.markdown import blocks, section
from tools.rest import PAGE, with_tables

DOCUMENT = "docs/REST.md"


class Reader(DevServices):
    """Runs the commands of the page; variables of the shell are kept."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._variables: list[str] = []

    def lines(self, heading: str) -> list[str]:
        """Return the output of each command of a section."""
        outputs = []
        for block in blocks(section(DOCUMENT, heading), "sh"):
            for line in self.with_ports(block.text).splitlines():
                if line.startswith("CLUSTER="):
                    self._variables.append(line)
                else:
                    outputs.append(self.shell.run("\n".join([*self._variables, line])))
        return outputs


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """A reader who has run the first command of the page."""
    reader = Reader(tmp_path)
    with reader.started(blocks(section(DOCUMENT, "Start it"), "sh")[0].text.strip(), REGISTRY, REST):
        yield reader


def test_the_commands_of_the_page(reader: Reader) -> None:
    _, produced, created, _, read, _ = reader.lines("Produce and consume (v2)")
    assert json.loads(produced)["offsets"][0]["offset"] == 0
    assert json.loads(created)["instance_id"] == "one"
    assert json.loads(read)[0]["value"] == {"page": "/"}

    topic, _, config = reader.lines("Administer (v3)")
    assert json.loads(topic)["topic_name"] == "payments"
    assert json.loads(config)["value"] == "86400000"

    several, avro = reader.lines("Produce as a stream (v3)")
    assert [json.loads(line)["offset"] for line in several.splitlines()] == [0, 1]
    assert json.loads(avro)["value"]["subject"] == "payments-value"

    everything, one, texts, first, committed, rest = reader.lines("Read as a stream (v3)")
    records = [json.loads(line) for line in everything.splitlines()]
    assert [each["value"]["data"]["amount"] for each in records] == [3, 4, 5]
    assert [each["value"]["type"] for each in records] == ["JSON", "JSON", "AVRO"]
    assert records[2]["headers"] == [{"name": "source", "value": "d2Vi"}]
    assert json.loads(one)["offset"] == 1
    assert len(texts.splitlines()) == 3
    assert [json.loads(line)["offset"] for line in first.splitlines()] == [0, 1]
    assert committed == ""
    assert json.loads(rest)["offset"] == 2


def test_the_tables_are_current() -> None:
    page = PAGE.read_text()
    assert page == with_tables(page), "run: python -m tools.rest"
