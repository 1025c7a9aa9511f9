"""kafka-server-start, kafka-server-stop and `moldau dev` with a properties file like that of Apache Kafka."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.nodes.properties_file import Operator
from tests.harness.tools import ToolRun, run_tool, tool_command
from tests.harness.waiting import eventually


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    someone = Operator(tmp_path)
    yield someone
    someone.stop()


@pytest.fixture
def formatted(operator: Operator) -> Operator:
    assert operator.format().code == 0
    return operator


class TestStart:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_signal_stops_a_formatted_node(self, formatted: Operator, number: signal.Signals) -> None:
        process = formatted.launch("--override", "log.retention.hours=24")
        eventually(formatted.ready, what="the port is open")
        described = run_tool(
            "kafka-configs",
            *("--bootstrap-server", f"localhost:{formatted.port}", "--describe", "--all"),
            *("--entity-type", "brokers", "--entity-name", formatted.node_id),
        )
        assert "log.retention.hours=24 " in described.out
        assert "log.segment.bytes=1073741824 " in described.out
        process.send_signal(number)
        assert process.wait(60) == 0
        assert "Traceback" not in formatted.printed()

    def test_daemon_is_ready_when_the_command_returns(self, formatted: Operator) -> None:
        environment = {**os.environ, "LOG_DIR": str(formatted.folder / "said")}
        done = subprocess.run(
            tool_command("kafka-server-start", "-daemon", str(formatted.file)),
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert formatted.ready()
        assert "is ready" in (formatted.folder / "said" / "kafkaServer.out").read_text()
        assert formatted.stop() == ToolRun(0, "", "")
        eventually(lambda: not formatted.ready(), what="the node has stopped")
        eventually(lambda: formatted.stop().code == 1, what="there is nothing to stop")

    def test_daemon_that_cannot_start_is_reported(self, operator: Operator) -> None:
        done = subprocess.run(
            tool_command("kafka-server-start", "-daemon", str(operator.file)),
            env={**os.environ, "LOG_DIR": str(operator.folder)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1
        assert "kafka-storage" in done.stderr and "kafkaServer.out" in done.stderr

    def test_moldau_server_equals_kafka_server_start(self, formatted: Operator) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "moldau", "server", str(formatted.file)], stdout=subprocess.DEVNULL
        )
        eventually(formatted.ready, what="the port is open")
        assert formatted.stop().code == 0
        assert process.wait(60) == 0

    def test_second_node_with_the_same_file_is_rejected(self, formatted: Operator) -> None:
        process = formatted.launch()
        eventually(formatted.ready, what="the port is open")
        second = run_tool("kafka-server-start", str(formatted.file))
        assert second.code == 1
        assert str(formatted.port) in second.err and "in use" in second.err
        process.terminate()
        assert process.wait(60) == 0


class TestStop:
    def test_only_the_selected_node_is_stopped(self, formatted: Operator, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        other = Operator(tmp_path / "other")
        assert other.format().code == 0
        one, two = formatted.launch(), other.launch()
        eventually(lambda: formatted.ready() and other.ready(), what="both are there")
        assert formatted.stop().code == 0
        assert one.wait(60) == 0
        assert two.poll() is None and other.ready()
        assert other.stop().code == 0
        assert two.wait(60) == 0

    def test_processes_that_resemble_a_node_are_not_stopped(self, formatted: Operator) -> None:
        words = f"kafka-server-start {formatted.file}"
        shell = subprocess.Popen(["sh", "-c", f"sleep 30; : {words}"])
        reader = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)", *words.split()])
        try:
            assert formatted.stop() == ToolRun(1, "", "No kafka server to stop\n")
            time.sleep(0.1)
            assert shell.poll() is None and reader.poll() is None
        finally:
            shell.kill()
            reader.kill()
            shell.wait()
            reader.wait()

    def test_override_of_the_node_id_is_used(self, operator: Operator) -> None:
        mine = operator.node_id
        operator.file.write_text(operator.file.read_text().replace(f"node.id={mine}", "node.id=1"))
        operator.add(f"log.dirs={operator.folder}/mine")
        with_id = operator.file.read_text().replace("node.id=1", f"node.id={mine}")
        (operator.folder / "format.properties").write_text(with_id)
        identity = run_tool("kafka-storage", "random-uuid").out.strip()
        formatting = ("-t", identity, "-c", str(operator.folder / "format.properties"))
        assert run_tool("kafka-storage", "format", "--standalone", *formatting).code == 0
        process = operator.launch("--override", f"node.id={mine}")
        eventually(operator.ready, what="the port is open")
        assert operator.stop().code == 0
        assert process.wait(60) == 0


class TestInvalidArguments:
    def test_usage_is_printed_without_arguments(self) -> None:
        done = run_tool("kafka-server-start")
        assert done.code == 1
        assert "kafka-server-start [-daemon] server.properties [--override property=value]*" in done.err

    @pytest.mark.parametrize("command", ["kafka-server-start", "kafka-server-stop"])
    def test_help_goes_to_standard_output(self, command: str) -> None:
        done = run_tool(command, "--help")
        assert done.code == 0 and command in done.out and done.err == ""

    def test_missing_file_is_reported(self, tmp_path: Path) -> None:
        done = run_tool("kafka-server-start", str(tmp_path / "no.properties"))
        assert done.code == 1
        assert done.err == f"Unable to read file {tmp_path / 'no.properties'}: No such file or directory\n"

    def test_override_without_a_value_is_rejected(self, operator: Operator) -> None:
        assert "'log.retention.hours' is not of the form property=value" in operator.refused(
            "--override", "log.retention.hours"
        )

    def test_unformatted_log_directory_is_rejected(self, operator: Operator) -> None:
        output = operator.refused()
        assert f"{operator.folder}/kraft-combined-logs" in output
        assert "kafka-storage format" in output

    def test_format_requires_the_quorum(self, operator: Operator) -> None:
        identity = run_tool("kafka-storage", "random-uuid").out.strip()
        done = run_tool("kafka-storage", "format", "-t", identity, "-c", str(operator.file))
        assert done.code == 1
        assert "--standalone" in done.out + done.err

    def test_log_directory_of_another_cluster_is_rejected(self, formatted: Operator) -> None:
        second = f"{formatted.folder}/second"
        formatted.file.write_text(
            re.sub("(?m)^log.dirs=.*$", f"log.dirs={second}", formatted.file.read_text())
        )
        assert formatted.format().code == 0
        both = f"log.dirs={formatted.folder}/kraft-combined-logs,{second}"
        output = formatted.refused("--override", both)
        assert "cluster" in output and second in output

    @pytest.mark.parametrize(
        ("setting", "named"),
        [
            ("listeners=SSL://localhost:{port},CONTROLLER://localhost:0", "SSL"),
            ("authorizer.class.name=org.example.OwnAuthorizer", "authorizer.class.name"),
            ("num.partitions=none", "num.partitions"),
            ("log.segment.bytes=10", "log.segment.bytes"),
        ],
    )
    def test_invalid_configs_are_named(self, formatted: Operator, setting: str, named: str) -> None:
        options = [setting.format(port=formatted.port)]
        if named == "SSL":
            options += [
                "inter.broker.listener.name=SSL",
                f"advertised.listeners=SSL://localhost:{formatted.port}",
            ]
        assert named in formatted.refused(*[f"--override={option}" for option in options])

    def test_unknown_config_is_logged_as_a_warning(self, formatted: Operator) -> None:
        formatted.add("log.retention.horus=5")
        process = formatted.launch()
        eventually(formatted.ready, what="the port is open")
        assert re.search(r"WARN.*log\.retention\.horus", formatted.printed())
        process.terminate()
        assert process.wait(60) == 0


class TestDev:
    def dev(self, folder: Path, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "moldau", "dev", *options],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def test_data_survives_a_restart(self, tmp_path: Path) -> None:
        identities = set()
        for _ in range(2):
            process = self.dev(tmp_path, "--port", "0", "--set", "log.retention.horus=5")
            assert process.stdout is not None
            shown = [process.stdout.readline() for _ in range(5)]
            assert shown[0].startswith("Moldau ") and shown[0].endswith("is ready.\n")
            [address] = re.findall(r"bootstrap\.servers +(localhost:\d+)", shown[1])
            assert shown[2].split() == ["data", str(tmp_path / "data")]
            assert "start with --console" in shown[3]
            assert shown[4] == "Press Ctrl-C to stop.\n"
            identities.add(run_tool("kafka-cluster", "cluster-id", "--bootstrap-server", address).out)
            os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=60)
            assert (process.returncode, out) == (0, "Stopped.\n")
            assert "log.retention.horus" in err and "Traceback" not in err
        assert len(identities) == 1

    def test_port_in_use_is_reported_in_one_sentence(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            out, err = (process := self.dev(tmp_path, "--port", str(port))).communicate(timeout=60)
        assert (process.returncode, out) == (1, "")
        assert err.startswith(f"Port {port} is in use.") and err.count("\n") == 1
        assert f"--port {port + 10}" in err

    @pytest.mark.parametrize(
        ("options", "output"),
        [
            (["--set", "num.partitions"], "not of the form"),
            (["--set", "num.partitions=0"], "num.partitions"),
            (["--data", "/dev/null/data"], "Cannot use the data folder /dev/null/data"),
        ],
    )
    def test_invalid_options_are_reported_in_one_sentence(
        self, tmp_path: Path, options: list[str], output: str
    ) -> None:
        out, err = (process := self.dev(tmp_path, "--port", "0", *options)).communicate(timeout=60)
        assert (process.returncode, out) == (1, "")
        assert output in err and "Traceback" not in err
