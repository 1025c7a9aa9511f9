"""`kafka-storage` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.ids import parse_uuid
from moldau.cli.kafka.storage import main
from tests.unit.config.node_properties import node

CLUSTER = "PyN0qanKStKz_he6AG-KTQ"


@pytest.fixture
def file(tmp_path: Path) -> str:
    properties = node("controller.quorum.voters", log_dirs=f"{tmp_path}/data")
    properties["controller.quorum.bootstrap.servers"] = "localhost:9093"
    path = tmp_path / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return str(path)


def test_random_uuid_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["random-uuid"]) == 0
    output = capsys.readouterr()
    assert len(parse_uuid(output.out.strip())) == 16
    assert output.err == ""


def test_formatted_directories_are_shown_by_info(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", "-c", file]) == 1
    assert capsys.readouterr().out == f"Found problem:\n  {tmp_path}/data does not exist\n\n"
    assert main(["format", "-t", CLUSTER, "-c", file, "--standalone"]) == 0
    output = capsys.readouterr().out
    assert output.endswith(
        f"\nFormatting dynamic metadata voter directory {tmp_path}/data with metadata.version 4.3-IV0.\n"
    )
    assert main(["info", "--config", file]) == 0
    output = capsys.readouterr().out
    assert output.startswith(
        f"Found log directory:\n  {tmp_path}/data\n\nFound metadata: {{cluster.id={CLUSTER}, "
    )
    assert main(["format", "--cluster-id", CLUSTER, "--config", file, "-s", "-g"]) == 0
    assert capsys.readouterr().out == "All of the log directories are already formatted.\n"
    assert main(["format", "-t", CLUSTER, "-c", file, "-s"]) == 1
    assert "is already formatted. Use --ignore-formatted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "you must specify one of the following: --standalone"),
        (["-s", "-r", "5"], "Unknown metadata.version '5'. Supported metadata.version are: 3.3-IV3, "),
        (
            ["-s", "-f", "group.version"],
            "Can't parse feature=level string group.version: equals sign not found.",
        ),
        (["-s", "-f", "group.version=x"], "unable to parse x as a short."),
        (["-s", "-S", "SCRAM-SHA-256=[name=a]"], "You must supply one of 'password' or 'saltedpassword'"),
        (["-s", "-N"], "not allowed with argument --standalone/-s"),
        (["-s", "--bogus"], "bogus is not a recognized option"),
        (["-I", "1@h:1:JEXY6aqzQY-32P5TStzaFg,1@h:2:MvDxzVmcRsaTz33bUuRU6A"], "specified more than once"),
    ],
    ids=str,
)
def test_invalid_format_options_are_rejected(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["format", "-t", CLUSTER, "-c", file, *arguments]) == 1
    output = capsys.readouterr()
    assert message in output.err
    assert "Traceback" not in output.err
    assert output.out == ""
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info"], "the following arguments are required: --config/-c"),
        (["format", "-c", "x"], "the following arguments are required: --cluster-id/-t"),
        (["info", "-c", "nowhere"], "Cannot read the properties file nowhere: No such file or directory."),
        (["bogus"], "invalid choice: 'bogus'"),
        ([], "usage: kafka-storage"),
    ],
    ids=str,
)
def test_invalid_arguments_are_rejected(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 1
    assert message in capsys.readouterr().err


def test_invalid_properties_file_is_reported_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "server.properties"
    path.write_text("process.roles=broker,controller\nnode.id=x\ncontroller.listener.names=C\n")
    assert main(["info", "-c", str(path)]) == 1
    assert (
        capsys.readouterr().err == "Invalid value x for configuration broker.id: Not a number of type INT\n"
    )


def test_version_mapping(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version-mapping", "-r", "3.9"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "metadata.version=21 (3.9)",
        "kraft.version=1",
        "transaction.version=0",
        "group.version=0",
        "eligible.leader.replicas.version=0",
        "share.version=0",
        "streams.version=0",
    ]
    assert main(["version-mapping", "-r", "xx"]) == 1


def test_feature_dependencies(capsys: pytest.CaptureFixture[str]) -> None:
    known = ["-f", "metadata.version=30", "-f", "eligible.leader.replicas.version=1", "-f", "group.version=1"]
    assert main(["feature-dependencies", *known]) == 0
    assert capsys.readouterr().out == (
        "metadata.version=30 (4.3-IV0) has no dependencies.\n"
        "eligible.leader.replicas.version=1 requires:\n    metadata.version=23 (4.0-IV1)\n"
        "group.version=1 has no dependencies.\n"
    )
    for text in ("foo=1", "group.version=9", "metadata.version=99"):
        assert main(["feature-dependencies", "-f", text]) == 1


def test_help_is_printed_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["format", "--help"], ["info", "-h"], ["random-uuid", "-h"]):
        assert main(arguments) == 0
        assert capsys.readouterr().out.startswith("usage: kafka-storage")
