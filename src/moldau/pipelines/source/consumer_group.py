"""Commit the progress of a query to a consumer group, so that lag tools show pipelines.

The source never reads the group: a query continues from its checkpoint. So the group has no members, its
offsets may be slightly out of date, and a failure here never stops a query. Spark commits a batch with the
next one; the offset from which Spark continues says the same earlier, and also at the end of a query.

The group is named after the query. Spark passes neither name nor id of the query to a Python reader, but
tasks find both in their context. So each task is given the path of a folder, and the first task on the
driver's machine (in local mode all are) writes the name there. On other machines the folder does not exist
and nothing is written: there a query should have the option `groupId`.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
import time
from pathlib import Path

from pyspark import TaskContext

from moldau.base.errors import KafkaError
from moldau.client.admin.client import AdminClient
from moldau.pipelines.source.offsets import Positions
from moldau.pipelines.source.options import SourceOptions

logger = logging.getLogger(__name__)

_TIMEOUT_S = 5.0
#: No commit is attempted for this long after a failure.
_RETRY_S = 30.0
_MAX_NAME_LENGTH = 200
_FILE = "query"


class GroupProgress:
    """Commits offsets to the consumer group of a query."""

    def __init__(self, options: SourceOptions, admin: AdminClient) -> None:
        self._options = options
        self._admin = admin.client
        self._names = QueryNameFolder() if options.group_id is None else None
        self._committed: Positions = {}
        self._not_before = 0.0
        #: Whether tasks were planned that could have stored the name of their query.
        self.planned = False

    @property
    def folder(self) -> str | None:
        """The folder in which tasks store the name of the query."""
        return None if self._names is None else self._names.folder

    async def commit(self, positions: Positions) -> None:
        """Commit these positions unless they are committed already."""
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
        if self._names is not None:
            self._names.close()

    def _group(self) -> str | None:
        if self._names is None:
            return self._options.group_id
        name = self._names.name()
        if name is None and not self.planned:
            return None
        prefix = self._options.group_id_prefix
        if name is None:
            name, prefix = str(self._options.subscription), prefix or "moldau"
        return (name if prefix is None else f"{prefix}-{name}")[:_MAX_NAME_LENGTH]

    def _failed(self, group: str, error: Exception) -> None:
        self._not_before = time.monotonic() + _RETRY_S
        logger.warning(
            "The progress of the query could not be committed to group %s: %s. The query continues. If "
            "consumers use this group, set the option groupId to another name.",
            group,
            str(error) or "request timed out",
        )


class QueryNameFolder:
    """The folder in which a task stores the name of its query; the driver's side."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="moldau-query-")

    def name(self) -> str | None:
        """Return the name of the query, or its id if it has none; None until a task has stored it."""
        try:
            return (Path(self.folder) / _FILE).read_text() or None
        except FileNotFoundError:
            return None

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def store_query_name(folder: str) -> None:
    """Store the name of this task's query, unless another task has; the task's side."""
    context = TaskContext.get()
    if context is None:
        return
    home = Path(folder)
    try:
        if home.is_dir() and not (home / _FILE).exists():
            unfinished = home / f"{_FILE}-{context.taskAttemptId()}"
            unfinished.write_text(_query_name(context))
            unfinished.rename(home / _FILE)
    except OSError:
        return  # The query has ended, or tasks run as another user.


def _query_name(context: TaskContext) -> str:
    # The description of a streaming job begins with the name of the query, which may be empty.
    description = context.getLocalProperty("spark.job.description") or ""
    query_id = context.getLocalProperty("sql.streaming.queryId") or ""
    name = description.split("\n", 1)[0].strip() if f"id = {query_id}" in description else ""
    return name or query_id
