"""Offsets that are no positions: the sink of pipelines commits the number of a batch, with these metadata."""

from __future__ import annotations

import re
from typing import Final

_MARKER: Final = re.compile(r'\{"rows":\d+,"run":"[^"]*","write":"[^"]*"\}')


def is_marker(metadata: str | None) -> bool:
    """Return whether an offset is the number of a batch that a pipeline has written, not a position."""
    return metadata is not None and _MARKER.fullmatch(metadata) is not None
