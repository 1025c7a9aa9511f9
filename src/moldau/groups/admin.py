"""ListGroups, DescribeGroups and DeleteGroups for the groups of one shard."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.states import ClassicState
from moldau.groups.context import GroupContext, Requester
from moldau.groups.group import Group
from moldau.groups.offsets.removal import OffsetRemoval
from moldau.groups.registry import GroupRegistry
from moldau.protocol.messages.delete_groups import DeletableGroupResult
from moldau.protocol.messages.describe_groups import DescribedGroup
from moldau.protocol.messages.list_groups import ListedGroup
from moldau.statemachine.coordinator_records import CoordinatorRecord, Entry
from moldau.statemachine.decision import Decision

logger = logging.getLogger(__name__)

#: The version from which an unknown group is GROUP_ID_NOT_FOUND; earlier ones get the state Dead (KIP-1043).
_GROUP_NOT_FOUND_SINCE = 6


class GroupAdmin:
    def __init__(self, context: GroupContext, registry: GroupRegistry, removal: OffsetRemoval) -> None:
        self._context = context
        self._registry = registry
        self._removal = removal

    def listed(self, states: Iterable[str], types: Iterable[str]) -> list[ListedGroup]:
        """List the groups with one of these states and types; an empty filter matches all."""
        # Kafka's filter calls the state NotReady of streams groups `not_ready`.
        wanted_states = {each.lower().strip().replace("_", "") for each in states}
        wanted_types = {each.lower() for each in types}
        return [
            group.listed()
            for group in self._registry
            if (not wanted_states or group.state_name.lower() in wanted_states)
            and (not wanted_types or group.type in wanted_types)
        ]

    def describe(self, requester: Requester, group_ids: Sequence[str]) -> list[DescribedGroup]:
        return [self._describe(requester, group_id) for group_id in group_ids]

    def _describe(self, requester: Requester, group_id: str) -> DescribedGroup:
        try:
            group = self._registry.get_as(ClassicGroup, group_id, "classic")
        except KafkaError as error:
            described = DescribedGroup(group_id=group_id, group_state=ClassicState.DEAD.value)
            if requester.api_version >= _GROUP_NOT_FOUND_SINCE:
                described.error_code, described.error_message = error.code, error.message
            return described
        protocol = group.protocol if group.state is ClassicState.STABLE else None
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state_name,
            protocol_type=group.protocol_type or "",
            protocol_data=protocol or "",
            members=[member.described(protocol) for member in group.members.values()],
        )

    def delete(self, group_ids: Sequence[str]) -> Decision[Entry, Sequence[DeletableGroupResult]]:
        """Delete empty groups with their offsets; others get an error."""
        records: list[CoordinatorRecord] = []
        deleted: list[Group] = []
        results = []
        for group_id in dict.fromkeys(group_ids):
            code = ErrorCode.NONE
            try:
                group = self._registry.get(group_id)
                group.check_delete()
                records += [*self._removal.tombstones_of(group_id), *group.tombstones()]
                deleted.append(group)
            except KafkaError as error:
                code = error.code
            results.append(DeletableGroupResult(group_id=group_id, error_code=code))

        def cancel_timers() -> None:
            for group in deleted:
                logger.info("deleted group %s", group.group_id)
                group.cancel_timers(self._context.timers)

        return Decision(records, results, on_appended=cancel_timers)
