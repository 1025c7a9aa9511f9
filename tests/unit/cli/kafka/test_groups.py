"""kafka-groups: filters and invalid arguments."""

from __future__ import annotations

import argparse

import pytest

from moldau.cli.kafka import groups
from moldau.client.admin.group_types import GroupListing


def choose(*argv: str) -> argparse.Namespace:
    return groups._parser().parse(["--list", *argv])


@pytest.mark.parametrize(
    ("argv", "left"),
    [
        ([], {"classic", "simple", "new", "connect", "share"}),
        (["--consumer"], {"classic", "simple", "new"}),
        (["--share"], {"share"}),
        (["--streams"], set()),
        (["--group-type", "Classic"], {"classic", "simple", "connect"}),
        (["--group-type", "classic", "--protocol", "connect"], {"connect"}),
        (["--protocol", "consumer"], {"classic", "new"}),
    ],
)
def test_filters_select_groups_by_type_and_protocol(argv: list[str], left: set[str]) -> None:
    listed = [
        GroupListing("classic", "consumer", "Stable", "Classic"),
        GroupListing("simple", "", "Empty", "Classic"),
        GroupListing("new", "consumer", "Stable", "Consumer"),
        GroupListing("connect", "connect", "Stable", "Classic"),
        GroupListing("share", "share", "Stable", "Share"),
    ]
    options = choose(*argv)
    assert {group.group_id for group in listed if groups.admitted(group, options)} == left


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "Command must include exactly one action: --list."),
        (["--list", "--group-type", "x"], "--group-type must be a valid group type."),
        (["--list", "--share", "--consumer"], 'can\'t be used with option "[share]"'),
    ],
)
def test_invalid_arguments_are_rejected(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert groups.main(["--bootstrap-server", "127.0.0.1:1", *argv]) == 1
    assert message in capsys.readouterr().err
