"""docs/CONNECT.md: the quick start and the commands work as written, and its settings and plugins exist."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

from moldau.local.ports import ReservedPorts
from moldau.pipelines.connect.config.connector import connector_definition, sink_definition
from moldau.pipelines.connect.config.worker import WorkerSettings
from moldau.pipelines.connect.plugins import Plugins, PluginType
from moldau.testing import Cluster
from moldau.testing.connect import SourceRun
from tests.docs.dev_services import DevServices
from tests.docs.markdown import blocks, section
from tests.docs.shell import Shell
from tests.harness.connect import lines_of
from tests.harness.waiting import eventually

DOCUMENT = "docs/CONNECT.md"
CONNECT = "Connect worker"


def write_files(heading: str, folder: Path, more: str = "") -> None:
    """Write the files of a section; their first line names them."""
    for block in blocks(section(DOCUMENT, heading), "properties"):
        name = block.text.partition("\n")[0].removeprefix("# ").strip()
        (folder / name).write_text(block.text + (more if name == "worker.properties" else ""))


def test_the_quick_start(tmp_path: Path) -> None:
    heading = "The quick start: file to topic to file"
    ports = ReservedPorts("127.0.0.1")
    port = ports.choose()
    ports.release()
    with Cluster() as cluster:
        shell = Shell(tmp_path, int(cluster.bootstrap_servers.rpartition(":")[2]))
        write_files(heading, tmp_path, f"\ntasks.host=threads\nlisteners=http://127.0.0.1:{port}\n")
        worker = tmp_path / "worker.properties"
        worker.write_text(worker.read_text().replace("localhost:9092", cluster.bootstrap_servers))
        (commands,) = blocks(section(DOCUMENT, heading), "sh")
        printf, start = commands.text.strip().splitlines()
        shell.run(printf)
        process = shell.open(start)
        try:
            eventually(lambda: lines_of(tmp_path / "test.sink.txt") == ["foo", "bar"])
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert process.stdout is not None
            process.stdout.close()


def test_the_commands_of_the_worker(tmp_path: Path) -> None:
    services = DevServices(tmp_path)
    first, _, commands = blocks(section(DOCUMENT, "A worker with the REST API"), "sh")
    with services.started(first.text.strip(), CONNECT):
        lines = services.with_ports(commands.text).strip().splitlines()
        created, put, _, stopped, offsets, deleted = lines
        answer = json.loads(services.shell.run(created))
        assert (answer["name"], answer["type"]) == ("visits", "source")
        assert json.loads(services.shell.run(put))["type"] == "sink"
        written = tmp_path / "pageviews.txt"
        eventually(lambda: len(lines_of(written)) > 5)
        assert "site=shop" in written.read_text()
        assert services.shell.run(stopped) == ""
        assert len(eventually(lambda: json.loads(services.shell.run(offsets))["offsets"])) == 2
        assert services.shell.run(deleted) == ""


def test_the_worker_file_of_a_group_is_valid() -> None:
    (block,) = blocks(section(DOCUMENT, "Several workers"), "properties")
    pairs = (line.split("=", 1) for line in block.text.splitlines() if "=" in line)
    settings = WorkerSettings.distributed(dict(pairs))
    assert settings.group is not None
    assert settings.config_topic is not None
    assert settings.config_topic.name == "connect-configs"


def test_named_plugins_and_settings_exist() -> None:
    plugins = {each.name.rpartition(".")[2].partition("$")[0] for each in Plugins().of(*PluginType)}
    text = section(DOCUMENT, "Converters, transformations and predicates")
    named = set(re.findall(r"`([A-Z]\w+)`", text))
    assert named
    assert named <= plugins
    errors = set(re.findall(r"`(errors\.[\w.]+)`", section(DOCUMENT, "Errors")))
    assert errors <= {*connector_definition().keys, *sink_definition().keys}


def test_the_connector_of_the_page() -> None:
    source, *_ = blocks(section(DOCUMENT, "Write a connector"), "python")
    names: dict[str, object] = {"__name__": "my_package"}
    exec(compile(source.text, DOCUMENT, "exec"), names)
    connector = names["Numbers"]
    with SourceRun(connector(), {"topic": "numbers"}) as run:  # type: ignore[operator]
        assert [each.value for each in run.read(2)] == [1, 2]
        run.restart()
        assert run.read(1)[0].value == 3
