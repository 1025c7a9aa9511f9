"""Text formats of metadata."""

from __future__ import annotations

from moldau.cli.kafka.metadata_shell.formats import provenance_text, token_text
from moldau.protocol.stored.metadata import (
    DelegationTokenRecord,
)


def test_provenance_and_delegation_tokens() -> None:
    assert provenance_text(1, 2, 1000) == "offset 1, epoch 2, time 1970-01-01T00:00:01Z[UTC]"
    token = DelegationTokenRecord(
        owner="User:a", requester="User:b", renewers=["User:c"], token_id="t", issue_timestamp=1
    )
    assert token_text(token) == (
        "DelegationTokenDatatokenId=t(owner=User:a(tokenRequester=User:b(renewers=User:c, issueTimestamp=1, "
        "maxTimestamp=0), expiryTimestamp=0"
    )
