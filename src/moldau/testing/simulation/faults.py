"""Faults of a simulated drive: failing operations and power loss.

A `Fault` makes operations of some kinds fail on matching paths, for ever or a number of times. The kinds
are those of `Operation`; a failed sync drops the data it should have written, as on Linux.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase


class PowerLost(BaseException):
    """The machine is off: the current operation does not return.

    Not an `Exception`, because no handler may catch it.
    """


class Operation(Enum):
    CREATE = "create"
    OPEN = "open"
    READ = "read"
    WRITE = "write"
    TRUNCATE = "truncate"
    SYNC = "sync"
    SYNC_DIR = "sync_dir"
    RENAME = "rename"
    REMOVE = "remove"
    MAKE_DIR = "mkdir"
    SET_MODIFIED = "utime"


#: Operations that change the drive; power may be lost after each.
CHANGING = frozenset(Operation) - {Operation.OPEN, Operation.READ}


@dataclass(slots=True)
class Fault:
    """`pattern` matches the whole path, with `*` as wildcard; `times` is the number of failures, or -1."""

    error: int
    operations: frozenset[Operation] = CHANGING
    pattern: str = "*"
    times: int = -1

    def hits(self, operation: Operation, path: str) -> bool:
        if self.times == 0 or operation not in self.operations or not fnmatchcase(path, self.pattern):
            return False
        self.times -= 1 if self.times > 0 else 0
        return True


def failure(error: int, path: str) -> OSError:
    return OSError(error, os.strerror(error), path)
