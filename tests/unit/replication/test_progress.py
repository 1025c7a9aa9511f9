from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.replication.progress import PendingCommits


class TestCommits:
    def test_commits_complete_in_order_of_their_offsets(self) -> None:
        commits, told = PendingCommits(), []
        for offset in (30, 10, 20, 10):
            commits.add(offset, lambda code, offset=offset: told.append((offset, code)))
        commits.complete(9, ErrorCode.NONE)
        assert told == []
        commits.complete(25, ErrorCode.NONE)
        assert [offset for offset, _ in told] == [10, 10, 20]
        commits.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert told[-1] == (30, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        commits.complete(100, ErrorCode.NONE)
        assert len(told) == 4
