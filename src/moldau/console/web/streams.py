"""Server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse


def event(name: str, data: Any) -> str:
    """Format an event; the data is one line of JSON."""
    return f"event: {name}\ndata: {json.dumps(data, default=str)}\n\n"


#: Keeps a connection open that has nothing to say.
COMMENT = ": \n\n"


def stream(events: AsyncIterator[str]) -> StreamingResponse:
    return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-store"})
