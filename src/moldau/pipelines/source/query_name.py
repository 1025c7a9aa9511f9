"""How the reader on the driver learns the name of its query.

Spark tells a Python reader neither the query's name nor its id; tasks find both in their context. So a
folder is named in every task, and the first task that runs on the driver's machine (in local mode all do)
writes there which query it belongs to. On other machines the folder does not exist and nothing is written:
there a query should be given a `groupId`.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from pyspark import TaskContext

_FILE = "query"


class NameBox:
    """The driver's side."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="moldau-query-")

    def name(self) -> str | None:
        """The query's name, or its id if it has none; None as long as no task has told it."""
        try:
            return (Path(self.folder) / _FILE).read_text() or None
        except FileNotFoundError:
            return None

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def tell(folder: str) -> None:
    """The task's side: say which query this is, once."""
    context = TaskContext.get()
    if context is None:
        return
    home = Path(folder)
    try:
        if home.is_dir() and not (home / _FILE).exists():
            unfinished = home / f"{_FILE}-{context.taskAttemptId()}"
            unfinished.write_text(_name(context))
            unfinished.rename(home / _FILE)
    except OSError:
        return  # The query has ended meanwhile, or another user's tasks may not write there.


def _name(context: TaskContext) -> str:
    # The description of a streaming job begins with a line for the query's name, which may be empty.
    description = context.getLocalProperty("spark.job.description") or ""
    query_id = context.getLocalProperty("sql.streaming.queryId") or ""
    name = description.split("\n", 1)[0].strip() if f"id = {query_id}" in description else ""
    return name or query_id
