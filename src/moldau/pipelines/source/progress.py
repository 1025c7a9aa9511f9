"""A query's progress as a consumer group, so that every tool that shows lag shows pipelines.

The group is never read from: the checkpoint says where a query goes on. So it has no members, what it says
may be a moment old, and no failure here stops a query. What Spark calls a commit comes with the next batch;
the offset from which Spark wants to go on says the same at once, and also at the end of a query.
"""

from __future__ import annotations

import asyncio
import logging
import time

from moldau.base.errors import KafkaError
from moldau.client.admin.client import AdminClient
from moldau.pipelines.source.offsets import Positions
from moldau.pipelines.source.options import SourceOptions
from moldau.pipelines.source.query_name import NameBox

_log = logging.getLogger(__name__)

_TIMEOUT_S = 5.0
#: After a failure the cluster is left alone with this for a while.
_PAUSE_S = 30.0
_LONGEST_NAME = 200


class Progress:
    def __init__(self, options: SourceOptions, admin: AdminClient) -> None:
        self._options = options
        self._admin = admin.client
        self._box = NameBox() if options.group_id is None else None
        self._committed: Positions = {}
        self._not_before = 0.0
        #: Whether tasks were planned that could have told their query's name.
        self.planned = False

    @property
    def folder(self) -> str | None:
        """For the tasks, see `query_name`."""
        return None if self._box is None else self._box.folder

    async def commit(self, positions: Positions) -> None:
        """Show these positions, unless they are shown already."""
        if positions == self._committed or not positions or time.monotonic() < self._not_before:
            return
        group = self._group()
        if group is None:
            return
        try:
            results = await asyncio.wait_for(self._admin.alter_group_offsets(group, positions), _TIMEOUT_S)
        except (KafkaError, TimeoutError) as error:
            self._failed(group, error)
            return
        failure = next((error for error in results.values() if error is not None), None)
        if failure is None:
            self._committed = dict(positions)
        else:
            self._failed(group, failure)

    def close(self) -> None:
        if self._box is not None:
            self._box.close()

    def _group(self) -> str | None:
        if self._box is None:
            return self._options.group_id
        name = self._box.name()
        if name is None and not self.planned:
            return None
        prefix = self._options.group_id_prefix
        if name is None:
            name, prefix = str(self._options.subscription), prefix or "moldau"
        return (name if prefix is None else f"{prefix}-{name}")[:_LONGEST_NAME]

    def _failed(self, group: str, error: Exception) -> None:
        self._not_before = time.monotonic() + _PAUSE_S
        reason = str(error) or "no answer in time"
        _log.warning(
            "The progress of the query could not be shown as group %s: %s. The query itself goes on; is the "
            "group used by consumers? Then set the option groupId to another name.",
            group,
            reason,
        )
