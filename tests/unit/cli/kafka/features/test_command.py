"""kafka-features: updates and invalid arguments."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.base.errors import ErrorCode
from moldau.cli.kafka.features import command
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from moldau.protocol.schema import Message
from tests.harness.wire.fake_broker import FakeBroker


def updated(request: UpdateFeaturesRequest) -> Message:
    if any(update.max_version_level > 30 for update in request.feature_updates):
        return UpdateFeaturesResponse(error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message="too high")
    return UpdateFeaturesResponse(error_message=None)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker(
        {
            ApiKey.UPDATE_FEATURES: updated,
        }
    ) as fake:
        yield fake


def test_features_are_upgraded_downgraded_and_disabled(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--bootstrap-server", broker.bootstrap]
    levels = ["--feature", "b=2", "--feature", "a=1"]
    assert command.main([*argv, "upgrade", *levels]) == 0
    assert capsys.readouterr().out.splitlines() == ["a was upgraded to 1.", "b was upgraded to 2."]
    assert command.main([*argv, "downgrade", "--metadata", "4.0", "--unsafe", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        " `metadata` flag is deprecated and may be removed in a future release.",
        "metadata.version can be downgraded to 25.",
    ]
    sent = broker.requests[-1]
    assert isinstance(sent, UpdateFeaturesRequest)
    assert (sent.validate_only, sent.feature_updates[0].upgrade_type) == (True, 3)
    assert command.main([*argv, "disable", "--feature", "a"]) == 0
    assert capsys.readouterr().out == "a was disabled.\n"
    assert command.main([*argv, "upgrade", "--feature", "a=31"]) == 1
    output = capsys.readouterr()
    assert (output.out, output.err) == (
        "Could not upgrade a to 31. too high\n",
        "1 out of 1 operation(s) failed.\n",
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["upgrade"], "You must specify at least one feature to upgrade"),
        (["disable"], "You must specify at least one feature to disable"),
        (["upgrade", "--feature", "a"], "Can't parse feature=level string a: equals sign not found."),
        (
            ["upgrade", "--feature", "a=x"],
            "feature=level string a=x: unable to parse x as a short.",
        ),
        (["upgrade", "--feature", "a=99999"], "unable to parse 99999 as a short."),
        (["upgrade", "--feature", "a=1", "--feature", "a=2"], "Feature a was specified more than once."),
        (["disable", "--feature", "a", "--feature", "a"], "Feature a was specified more than once."),
        (
            ["upgrade", "--release-version", "4.3", "--feature", "a=1"],
            "Can not specify `release-version` with other feature flags.",
        ),
        (["upgrade", "--release-version", "9"], "Unknown metadata.version '9'. Supported metadata.version"),
        (["describe", "--node-id", "-1"], "Invalid node id -1: must be non-negative."),
        (["feature-dependencies", "--feature", "x=1"], "Unknown feature: x"),
        (
            ["feature-dependencies", "--feature", "group.version=9"],
            "No feature:group.version with feature",
        ),
        (["feature-dependencies", "--feature", "metadata.version=6"], "Unknown metadata.version 6"),
    ],
)
def test_invalid_arguments_are_rejected(
    broker: FakeBroker, argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--bootstrap-server", broker.bootstrap, *argv]) == 1
    assert message in capsys.readouterr().err


def test_bootstrap_address_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["describe"]) == 1
    assert "You must specify either --bootstrap-controller or --bootstrap-server." in capsys.readouterr().err
