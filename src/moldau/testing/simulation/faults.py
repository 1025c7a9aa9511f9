"""What goes wrong on a simulated drive, and when: operations that fail, power that goes.

A `Fault` fails operations of some kinds on paths that match a pattern, for ever or a number of times. The
kinds are those of `Operation`; a failing sync drops what it should have written, as Linux does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase


class PowerLost(BaseException):
    """The machine is off: whoever was in the middle of something is no more.

    Not an `Exception`, because nobody can handle it.
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


#: Those that change something, and after which power may be lost.
CHANGING = frozenset(Operation) - {Operation.OPEN, Operation.READ}


@dataclass(slots=True)
class Fault:
    """`pattern` is matched against the whole path, `*` being anything; `times` counts down, -1: for ever."""

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
