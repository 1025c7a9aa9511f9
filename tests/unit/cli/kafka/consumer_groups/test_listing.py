"""kafka-consumer-groups --list."""

from __future__ import annotations

from tests.unit.cli.kafka.consumer_groups.groups_tool import GroupsTool


def test_groups_are_listed_by_state_and_type(groups: GroupsTool) -> None:
    assert groups.run("--list") == (0, "a-group\nb-group\n", "")
    _, out, _ = groups.run("--list", "--type", "--state", "stable, EMPTY")
    assert [line.rstrip() for line in out.splitlines()] == [
        "GROUP                     TYPE                 STATE",
        "a-group                   Classic              Empty",
        "b-group                   Consumer             Stable",
    ]
    code, _, err = groups.run("--list", "--state", "asleep")
    assert (code, err.startswith("Invalid state list 'asleep'. Valid states are: ")) == (1, True)
    code, _, err = groups.run("--list", "--type", "share")
    assert (code, err.startswith("Invalid types list 'share'. Valid types are: ")) == (1, True)
