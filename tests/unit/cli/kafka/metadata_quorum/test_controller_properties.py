"""kafka-metadata-quorum add-controller: the voter that a properties file describes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode
from moldau.base.ids import format_uuid
from moldau.cli.kafka.metadata_quorum import command
from moldau.cli.kafka.metadata_quorum.controller_properties import controller_of
from moldau.cli.shared.tool import ToolError
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from tests.harness.wire.fake_broker import FakeBroker
from tests.unit.metadata.builders import uid


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker(
        {
            ApiKey.ADD_RAFT_VOTER: lambda _: AddRaftVoterResponse(
                error_code=ErrorCode.DUPLICATE_VOTER, error_message="is there already"
            ),
            ApiKey.REMOVE_RAFT_VOTER: lambda _: RemoveRaftVoterResponse(error_message=None),
        }
    ) as fake:
        yield fake


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, str]:
    """The settings of a formatted controller."""
    (tmp_path / "meta.properties").write_text(
        f"version=1\nnode.id=4\ncluster.id=x\ndirectory.id={format_uuid(uid(44))}\n"
    )
    return {
        "node.id": "4",
        "process.roles": "controller",
        "listeners": "CONTROLLER://:9093,OTHER://h:1",
        "controller.listener.names": "controller",
        "log.dirs": str(tmp_path),
    }


def test_voters_are_added_and_removed(
    broker: FakeBroker, properties: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "controller.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    argv = ["--bootstrap-server", broker.bootstrap, "--command-config", str(file), "add-controller"]
    assert command.main([*argv, "--dry-run"]) == 0
    directory = format_uuid(uid(44))
    assert capsys.readouterr().out == (
        f"DRY RUN of adding controller 4 with directory id {directory} and endpoints: "
        "CONTROLLER://localhost:9093\n"
    )
    assert command.main(argv) == 1
    assert capsys.readouterr().err == "is there already\n"
    sent = broker.requests[-1]
    assert isinstance(sent, AddRaftVoterRequest)
    assert (sent.cluster_id, sent.voter_id, sent.voter_directory_id) == (None, 4, uid(44))
    remove = ["remove-controller", "-i", "4", "-d", directory]
    assert command.main(["--bootstrap-server", broker.bootstrap, *remove]) == 0
    assert capsys.readouterr().out == f"Removed  KRaft controller 4 with directory id {directory}\n"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node.id": None}, "node.id not found in configuration file"),
        ({"node.id": "x"}, "node.id is not a number"),
        ({"node.id": "-1"}, "node.id was negative in configuration file"),
        ({"process.roles": "broker"}, "process.roles did not contain 'controller'"),
        ({"log.dirs": None}, "Neither metadata.log.dir nor log.dirs were found"),
        ({"log.dirs": "/nowhere"}, "Unable to read meta.properties from /nowhere"),
        ({"controller.listener.names": None}, "controller.listener.names was not found"),
        ({"controller.listener.names": "X"}, "Cannot find information about controller listener name: X"),
        ({"listeners": "nonsense"}, "listeners has the entry 'nonsense'"),
    ],
)
def test_invalid_controller_properties_are_rejected(
    properties: dict[str, str], changes: dict[str, str | None], message: str
) -> None:
    changed = {name: value for name, value in {**properties, **changes}.items() if value is not None}
    with pytest.raises(ToolError, match=re.escape(message)):
        controller_of(changed)


def test_advertised_listeners_take_precedence(properties: dict[str, str]) -> None:
    found = controller_of({**properties, "advertised.listeners": "CONTROLLER://[::1]:5"})
    assert [str(listener) for listener in found.listeners] == ["CONTROLLER://[::1]:5"]
