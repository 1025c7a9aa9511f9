"""What the tools of groups have in common on the command line."""

from __future__ import annotations

import argparse

import pytest

from moldau.cli.shared.arguments import UsageError
from moldau.cli.shared.groups import check_actions_of, parse_names

STATES = ("Stable", "Dead", "Empty")


def test_names_are_parsed_ignoring_case() -> None:
    assert parse_names("stable,Dead", STATES, "state") == ["Stable", "Dead"]
    assert parse_names(None, STATES, "state") == []
    with pytest.raises(UsageError, match="Valid states are: Stable, Dead, Empty"):
        parse_names("asleep", STATES, "state")


def test_an_option_without_an_action_that_takes_it_is_refused() -> None:
    allowed = {"state": ["describe", "list"]}
    check_actions_of(argparse.Namespace(state="", describe=False, list=True), allowed)
    with pytest.raises(UsageError, match=r"Option\(s\) \[state\] are unavailable"):
        check_actions_of(argparse.Namespace(state="", describe=False, list=False), allowed)
