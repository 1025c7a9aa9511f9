"""The groups of one shard by id, and their look-up with Kafka's errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.group import Group

G = TypeVar("G", bound=Group)


class GroupRegistry:
    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}

    def __iter__(self) -> Iterator[Group]:
        """Iterate over a copy: groups may be added and removed meanwhile."""
        return iter(list(self._groups.values()))

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def find(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def get(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def get_as(self, group_type: type[G], group_id: str, name: str) -> G:
        """Return a group of this type; `name` is the type in error messages."""
        group = self.get(group_id)
        if not isinstance(group, group_type):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {name} group.")
        return group

    def find_as(self, group_type: type[G], group_id: str) -> G | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, group_type) else None

    def put(self, group: Group) -> None:
        self._groups[group.group_id] = group

    def remove(self, group_id: str) -> None:
        self._groups.pop(group_id, None)
