"""kafka-consumer-groups --delete."""

from __future__ import annotations

from tests.unit.cli.kafka.consumer_groups.groups_tool import GroupsTool


def test_deleted_and_failed_groups_are_reported(groups: GroupsTool) -> None:
    code, out, _ = groups.run("--delete", "--group", "busy", "--group", "idle", "--group", "gone")
    errors = "org.apache.kafka.common.errors"
    assert (code, out.splitlines()) == (
        0,
        [
            "",
            "Error: Deletion of some consumer groups failed:",
            f"* Group 'busy' could not be deleted due to: {errors}.GroupNotEmptyException: "
            "The group is not empty.",
            f"* Group 'gone' could not be deleted due to: {errors}.GroupIdNotFoundException: "
            "The group id does not exist.",
            "",
            "These consumer groups were deleted successfully: 'idle'",
        ],
    )
    _, out, _ = groups.run("--delete", "--group", "idle")
    assert out == "Deletion of requested consumer groups ('idle') was successful.\n"
