"""docs/REGISTRY.md: its commands run in their order, its files are valid, and its tables are current."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from moldau.base.clock import SystemClock
from moldau.client import AdminClient, NewTopic, Producer
from moldau.config.properties import parse_properties
from moldau.http.server import HttpServer
from moldau.http.settings import HttpSettings
from moldau.registry.wiring import SchemaRegistry, create_service
from tests.docs.dev_services import REGISTRY, DevServices
from tests.docs.markdown import ROOT, blocks, section
from tests.harness.security.certificates import Certificates
from tools.registry import PAGE, settings, with_tables

DOCUMENT = "docs/REGISTRY.md"


class Reader(DevServices):
    """Runs the commands of the page with other ports."""

    def answers(self, heading: str) -> list[Any]:
        """Return the JSON that each command of a section prints."""
        commands = "".join(block.text for block in blocks(section(DOCUMENT, heading), "sh"))
        return [json.loads(self.shell.run(line)) for line in self.with_ports(commands).splitlines()]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """A reader who has run the first command of the page."""
    reader = Reader(tmp_path)
    with reader.started(blocks(section(DOCUMENT, "Start it"), "sh")[0].text.strip(), REGISTRY):
        yield reader


def test_the_commands_of_the_page(reader: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    registered, latest, by_id, customer, invoice, users = reader.answers("Register and read a schema")
    assert (registered["id"], registered["version"]) == (1, 1)
    assert latest["schema"] == by_id["schema"]
    assert users == [invoice["id"]] and customer["id"] != invoice["id"]
    refused, accepted, config, deleted = reader.answers("Change a schema")
    assert refused["error_code"] == 40901 and "amount" in refused["message"]
    assert accepted["version"] == 2
    assert (config["compatibility"], deleted) == ("FULL_TRANSITIVE", 1)
    [code] = blocks(section(DOCUMENT, "Serialize records"), "python")
    exec(compile(reader.with_ports(code.text), "REGISTRY.md", "exec"), {})
    assert capsys.readouterr().out.startswith("b'\\x00\\x00\\x00\\x00\\x01")
    mode, moved, writable = reader.answers("Move schemas with their ids")
    assert (mode["mode"], moved["id"], moved["version"]) == ("IMPORT", 4711, 3)
    assert writable["mode"] == "READWRITE"


def test_the_broker_validates_schemas_with_the_registry_that_is_started_with_it(reader: Reader) -> None:
    validated = NewTopic("checked", 1, configs={"confluent.value.schema.validation": "true"})
    with AdminClient(f"localhost:{reader.broker}") as admin:
        assert admin.create_topics([validated])["checked"] is None
    with Producer({"bootstrap.servers": f"localhost:{reader.broker}"}) as producer:
        refused = producer.send("checked", b"\0\0\0\0\7unknown").exception(10)
    assert refused is not None and "INVALID_RECORD" in str(refused)


def test_the_properties_of_the_page_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificates = Certificates(tmp_path)
    (tmp_path / "users").write_text("admin: secret,admin\n")
    (tmp_path / "jaas").write_text(
        "SchemaRegistry-Props {\n  org.eclipse.jetty.jaas.spi.PropertyFileLoginModule required\n"
        f'  file="{tmp_path}/users";\n}};\n'
    )
    monkeypatch.setenv("SCHEMA_REGISTRY_OPTS", f"-Djava.security.auth.login.config={tmp_path}/jaas")
    text = "".join(
        block.text
        for heading in ("Secure it", "Limit what users may do")
        for block in blocks(section(DOCUMENT, heading), "properties")
    )
    text = text.replace("/etc/registry/server.pem", str(certificates.server))
    properties = parse_properties(text.replace("/etc/registry/ca.pem", str(certificates.ca)))
    assert len(properties) == 15
    create_service(properties, "1.0")
    HttpServer(HttpSettings.from_properties(properties, default_port=0), SystemClock())


class Recording(Mapping[str, str]):
    """Properties that record which of them are read."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.read.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


#: Names of older releases, which the page does not show.
OLDER = {"avro.compatibility.level", "port"}


def test_every_setting_that_the_registry_reads_is_on_the_page() -> None:
    properties = Recording({"kafkastore.bootstrap.servers": "localhost:9092"})
    SchemaRegistry(properties, SystemClock(), "1.0")
    HttpSettings.from_properties(properties, default_port=0)
    documented = settings()
    assert sorted(name for name in properties.read - OLDER if f"`{name}`" not in documented) == []


def test_the_tables_are_current() -> None:
    page = PAGE.read_text()
    assert PAGE == ROOT / DOCUMENT
    assert page == with_tables(page), "run: python -m tools.registry"
