"""The README's commands and code run: the five-minute tour, the tests, the properties file."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import moldau
from tests.docs.dev_services import REGISTRY, REST, DevServices
from tests.docs.markdown import ROOT, blocks, section
from tests.docs.shell import ADDRESS, Shell
from tests.harness.apache.node import free_port
from tests.harness.nodes.properties_file import Operator
from tests.harness.pytest_run import run_pytest
from tests.harness.waiting import eventually

TOUR = blocks(section("README.md", "A five-minute tour"))


class Tour:
    """Runs the blocks of the five-minute tour one after the other."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self._rest = iter(TOUR)
        self.outputs: list[str] = []

    def block(self, language: str) -> str:
        found = next(self._rest)
        assert found.language == language
        return found.text

    def lines(self) -> list[str]:
        return [self.shell.run(line) for line in self.block("sh").splitlines()]


@pytest.fixture
def tour(tmp_path: Path) -> Iterator[Tour]:
    """The tour after its first block, with the broker that the README's command started."""
    port = free_port()
    tour = Tour(Shell(tmp_path, port))
    assert tour.block("sh").splitlines() == ["pip install .", "moldau dev"]
    shown = tour.block("text").replace(ADDRESS, tour.shell.address)
    broker = tour.shell.open(f"moldau dev --port {port}")
    assert broker.stdout is not None
    try:
        seen = "".join(broker.stdout.readline() for _ in shown.splitlines())
        assert seen == re.sub(r"/home/you/moldau(?=/data)", str(tmp_path), shown)
        yield tour
    finally:
        broker.send_signal(signal.SIGINT)
        assert broker.wait(30) == 0
        broker.stdout.close()
    assert (tmp_path / "data" / "orders-0").is_dir()


def test_five_minute_tour(tour: Tour) -> None:
    created, described = tour.lines()
    assert created == "Created topic orders.\n"
    assert "PartitionCount: 3" in described

    _, consumed, offsets = tour.lines()
    assert sorted(consumed.splitlines()) == ["alice\tbook", "alice\tchair", "dave\tlamp"]
    assert consumed.index("book") < consumed.index("chair")
    assert offsets == tour.block("text")

    consumed, described = tour.lines()
    assert len(consumed.splitlines()) == 2
    rows = [line.split() for line in described.splitlines() if line.startswith("shop ")]
    assert sum(int(row[3]) for row in rows if row[3] != "-") == 2

    altered, described = tour.lines()
    assert altered == "Completed updating config for topic orders.\n"
    assert "cleanup.policy=compact" in described

    (tour.shell.folder / "tour.py").write_text(tour.block("python").replace(ADDRESS, tour.shell.address))
    printed = tour.shell.run(f"{sys.executable} tour.py").splitlines()
    assert printed[-1].endswith("b'carol' b'desk'")
    assert len(printed) <= 4

    assert "`moldau doctor localhost:9092`" in section("README.md", "A five-minute tour")
    assert "Clients on this machine can use this cluster." in tour.shell.run(f"moldau doctor {ADDRESS}")


def test_version_equals_that_of_the_package() -> None:
    assert f"Moldau {moldau.__version__} is ready." in TOUR[1].text
    assert f'version = "{moldau.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## {moldau.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_examples_of_tests_pass(tmp_path: Path) -> None:
    """The examples are those of the README and docs/TESTING.md; `run_pipeline` is the reader's code."""
    texts = [section("README.md", "In your tests"), (ROOT / "docs" / "TESTING.md").read_text()]
    examples = [block.text for text in texts for block in blocks(text, "python")]
    assert len(examples) >= 3
    for number, example in enumerate(examples):
        own_code = "def run_pipeline(bootstrap_servers): assert bootstrap_servers\n"
        (tmp_path / f"test_example_{number}.py").write_text(own_code + example)
    done = run_pytest(tmp_path, "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    [passed] = re.findall(r"(\d+) passed", done.stdout)
    # A test of several protocols counts as often as it runs.
    assert int(passed) >= sum(text.count("def test_") for text in examples)


def test_schemas_and_http(tmp_path: Path) -> None:
    command, code, produce = blocks(section("README.md", "Schemas and HTTP"))
    services = DevServices(tmp_path)
    with services.started(command.text.strip(), REGISTRY, REST):
        (tmp_path / "schemas.py").write_text(services.with_ports(code.text))
        assert services.shell.run(f"{sys.executable} schemas.py") == "1\n"
        answer = json.loads(services.shell.run(services.with_ports(produce.text)))
        assert [offset["offset"] for offset in answer["offsets"]] == [0]


def test_node_with_a_properties_file(tmp_path: Path) -> None:
    [commands] = blocks(section("README.md", "With your own properties file"), "sh")
    formatting, start, stop = commands.text.splitlines()
    operator = Operator(tmp_path)
    shell = Shell(tmp_path, operator.port)
    assert "Formatting" in shell.run(formatting)
    node = shell.open(start)
    assert node.stdout is not None
    try:
        eventually(operator.ready, what="the port is open")
        # Stop only this node: others may run on this machine.
        shell.run(f"{stop} --node-id {operator.node_id}")
        assert "is ready" in node.stdout.read()
        assert node.wait(30) == 0
    finally:
        node.stdout.close()
        operator.stop()


def test_links_in_documents_name_existing_files() -> None:
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} names {target}"
