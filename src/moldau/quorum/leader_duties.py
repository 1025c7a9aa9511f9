"""What a leader does when the rules have made it one: its epoch's first record, its controller, its writing.

A leader that cannot write gives up, because another node may have room; a quorum of one has no other, and
goes back to what is committed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import Pool
from moldau.protocol.schema import Message
from moldau.quorum.batches import leader_change, voter_records
from moldau.quorum.committed import CommittedMetadata, Waiting
from moldau.quorum.leading import NOT_ACTIVE, Leading
from moldau.quorum.loading import voter_changes
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.turns import Turns
from moldau.storage.disk.disk import LogDirectoryFailed

log = logging.getLogger(__name__)


class LeaderDuties:
    def __init__(
        self,
        turns: Turns,
        leading: Leading,
        metadata_log: MetadataLog,
        committed: CommittedMetadata,
        pool: Pool,
        node_id: int,
    ) -> None:
        self._turns = turns
        self._rules = turns.rules
        self._leading = leading
        self._log = metadata_log
        self._committed = committed
        self._pool = pool
        self._node_id = node_id
        #: The epoch that this node leads in; -1: it does not.
        self._epoch = -1
        self._write_posted = False

    async def follow_role(self) -> bool:
        """Begin or end to lead, if that is so now; whether anything was done."""
        epoch = self._rules.epoch if self._rules.is_leader else -1
        if epoch == self._epoch:
            return False
        if self._epoch >= 0:
            log.info("no longer leading the metadata quorum, now in epoch %d", self._rules.epoch)
            self._leading.end(KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE))
        self._epoch = epoch
        if epoch >= 0:
            await self._begin()
        return True

    async def _begin(self) -> None:
        rules = self._rules
        messages: list[Message] = [leader_change(self._node_id, rules.voters.ids, rules.granting_voters)]
        if (voters := rules.epoch_start_voters) is not None:
            messages += voter_records(rules.kraft_version, voters)
        await self.append_control(messages)

    async def append_control(self, messages: Sequence[Message]) -> None:
        """Append records of the quorum's own, behind what was decided by now."""
        epoch = self._epoch
        await self._write_groups()
        if not self._rules.is_leader or self._rules.epoch != epoch:
            return
        start = self._log.end_offset
        try:
            batch = self._log.append_control(messages, epoch)
            self._leading.skip(len(messages))
            await self._pool.run(self._log.flush)
        except LogDirectoryFailed:
            raise
        except KafkaError as error:
            self._log.cut(start)
            self._refused(error)
            return
        self._committed.appended(Waiting.of(batch))
        self._turns.note_voters(voter_changes(batch.control, batch.header.base_offset))
        self._rules.appended(self._turns.now_ms())

    async def activate(self) -> bool:
        """Make the controller active as soon as the epoch's first record is committed."""
        rules = self._rules
        if self._epoch < 0 or self._leading.is_active or rules.high_watermark <= rules.epoch_start_offset:
            return False
        await self._leading.activate(rules.kraft_version, self._upgrade, self._wake)
        log.info("leading the metadata quorum in epoch %d from offset %d", rules.epoch, self._log.end_offset)
        return True

    def _upgrade(self, kraft_version: int, validate_only: bool) -> None:
        """The controller was asked to make the quorum a dynamic one."""
        self._rules.upgrade_kraft_version(kraft_version, validate_only=validate_only)
        if not validate_only:
            self._turns.post(self._turns.settle)

    # Writing.

    def _wake(self) -> None:
        if not self._write_posted:
            self._write_posted = True
            self._turns.post(self._write_groups)

    async def _write_groups(self) -> None:
        self._write_posted = False
        while self._leading.has_records:
            await self._write_group()
            await self._turns.settle()

    async def _write_group(self) -> None:
        try:
            await self._leading.write_group(self._epoch)
        except LogDirectoryFailed:
            raise
        except KafkaError as error:
            self._refused(error)
            return
        self._rules.appended(self._turns.now_ms())

    def _refused(self, error: KafkaError) -> None:
        """The disk takes nothing just now."""
        if len(self._rules.voters.voters) > 1:
            log.error("this node cannot write the metadata log and gives up leading: %s", error)
            self._leading.end(error)
            self._rules.resign(self._turns.now_ms())
        elif self._leading.is_active:
            self._leading.lose(error)
        else:
            raise error

    async def finish(self) -> None:
        """Decide nothing more, write what was decided, and let another lead."""
        self._leading.refuse(KafkaError(ErrorCode.NOT_CONTROLLER, "The controller is shutting down."))
        await self._write_groups()
        self._rules.resign(self._turns.now_ms())
        await self._turns.settle()
