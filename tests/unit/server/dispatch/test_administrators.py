"""Requests of everyday APIs that administrators send."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.offset_commit import OffsetCommitRequest
from moldau.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from moldau.server.dispatch.administrators import BY_ADMINISTRATOR
from tests.unit.server.granted import context


def left(*member_ids: str) -> LeaveGroupRequest:
    return LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=each) for each in member_ids])


@pytest.mark.parametrize(
    ("request_", "client_id", "administrative"),
    [
        (WriteTxnMarkersRequest(), "adminclient-1", True),
        (WriteTxnMarkersRequest(), None, True),
        (WriteTxnMarkersRequest(), "broker-3-txn-marker-sender", False),
        (OffsetCommitRequest(group_id="g"), "adminclient-1", True),
        (OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=4, member_id="m"), "c", False),
        # A member of epoch -1 leaves; it commits what it has read before.
        (OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, member_id="m"), "c", False),
        (left("reader-8d0c"), "reader", False),
        (LeaveGroupRequest(group_id="g", member_id="reader-8d0c"), "reader", False),
        (left("reader-8d0c", "writer-11aa"), "reader", True),
        (left("reader-8d0c"), "adminclient-1", True),
        (LeaveGroupRequest(group_id="g", member_id="reader-8d0c"), None, True),
        # A static member is removed by its instance id.
        (left(""), "reader", True),
    ],
)
def test_the_sender_and_the_request_decide(
    request_: Any, client_id: str | None, administrative: bool
) -> None:
    sent = context()._replace(client_id=client_id)
    assert BY_ADMINISTRATOR[request_.API_KEY](sent, request_) is administrative
