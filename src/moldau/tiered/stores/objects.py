"""A store in object storage: S3 and S3-compatible services, Google Cloud Storage, Azure. Needs the extra
`tiered`.

A segment is two objects, because every request costs time and money:

    <prefix>/<topic>-<topic id>/<partition>/<start offset, 20 digits>-<segment id>.log
    <prefix>/<topic>-<topic id>/<partition>/<start offset, 20 digits>-<segment id>.indexes

| config | default | meaning |
|---|---|---|
| `url` | required | `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///…` or `memory:///` |
| `store.<option>` | | an option of obstore, such as `store.region`, `store.endpoint`, `store.access_key_id` |
| `client.<option>` | | an option of its HTTP client, for example `client.timeout` |
| `part.bytes` | 8 MiB | the size of the parts of an upload, at least 5 MiB |
| `retry.timeout.ms` | 30000 | how long a request is repeated after errors of the service |

Credentials that are not set come from the environment, as with the tools of the provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from moldau.base.ids import TopicId, format_uuid, parse_uuid
from moldau.tiered.state.segments import PartitionId, RemoteSegment
from moldau.tiered.stores.interface import (
    RemoteSegmentMissing,
    RemoteStoreError,
    SegmentIndexes,
    SegmentSource,
    StoredSegment,
)

_LOG = "log"
_INDEXES = "indexes"
_KEY = re.compile(r"(.+)-([\w-]{22})/(\d+)/(\d{20})-([\w-]{22})\.(?:log|indexes)")
_PART_BYTES = 8 * 1024 * 1024
#: The limits of S3.
_MIN_PART_BYTES = 5 * 1024 * 1024
_MAX_PART_BYTES = 5 * 1024 * 1024 * 1024
_RETRY_TIMEOUT_MS = 30_000
_MAX_RETRY_MS = 3_600_000
_MAX_RETRIES = 10


class ObjectStore:
    def __init__(self, configs: Mapping[str, str]) -> None:
        try:
            import obstore
            from obstore.exceptions import BaseError
            from obstore.store import from_url
        except ImportError as error:
            raise ValueError(
                "object storage needs the extra `tiered`: pip install 'moldau[tiered]'"
            ) from error
        url = configs.get("url")
        if not url:
            raise ValueError("the URL of the remote store is not set: set rsm.config.url")
        retry_ms = _integer(configs, "retry.timeout.ms", _RETRY_TIMEOUT_MS, 0, _MAX_RETRY_MS)
        self._obstore: Any = obstore
        self._errors: tuple[type[Exception], ...] = (BaseError, OSError)
        self._part_bytes = _integer(configs, "part.bytes", _PART_BYTES, _MIN_PART_BYTES, _MAX_PART_BYTES)
        try:
            open_store: Any = from_url
            self._store: Any = open_store(
                url,
                config=_with_prefix(configs, "store."),
                client_options=_with_prefix(configs, "client."),
                retry_config={
                    "max_retries": _MAX_RETRIES,
                    "retry_timeout": timedelta(milliseconds=retry_ms),
                },
            )
        except BaseError as error:
            raise ValueError(f"the remote store at {url} cannot be used: {error}") from error

    def copy(self, segment: RemoteSegment, source: SegmentSource) -> None:
        try:
            self._put(_key(segment, _INDEXES), source.indexes().pack())
            self._put(_key(segment, _LOG), source.pieces())
            found = self._obstore.head(self._store, _key(segment, _LOG))["size"]
        except self._errors as error:
            raise RemoteStoreError(f"cannot copy {segment}: {error}") from error
        if found != source.size:
            raise RemoteStoreError(f"cannot copy {segment}: the store has {found} of {source.size} bytes")

    def _put(self, key: str, data: Any) -> None:
        self._obstore.put(self._store, key, data, chunk_size=self._part_bytes)

    def read(self, segment: RemoteSegment, position: int, size: int) -> bytes:
        end = min(position + size, segment.size)
        if end <= position:
            return b""
        try:
            found = self._obstore.get_range(self._store, _key(segment, _LOG), start=position, end=end)
        except FileNotFoundError as error:
            raise RemoteSegmentMissing(f"{segment} is not in the remote store") from error
        except self._errors as error:
            raise RemoteStoreError(f"cannot read {segment}: {error}") from error
        return bytes(found)

    def read_indexes(self, segment: RemoteSegment) -> SegmentIndexes:
        try:
            data = self._obstore.get(self._store, _key(segment, _INDEXES)).bytes()
        except FileNotFoundError as error:
            raise RemoteSegmentMissing(f"{segment} is not in the remote store") from error
        except self._errors as error:
            raise RemoteStoreError(f"cannot read the indexes of {segment}: {error}") from error
        return SegmentIndexes.unpack(bytes(data))

    def delete(self, segment: RemoteSegment) -> None:
        for kind in (_LOG, _INDEXES):
            try:
                self._obstore.delete(self._store, _key(segment, kind))
            except FileNotFoundError:
                continue
            except self._errors as error:
                raise RemoteStoreError(f"cannot delete {segment}: {error}") from error

    def segments(self) -> Iterator[StoredSegment]:
        last: StoredSegment | None = None
        try:
            for objects in self._obstore.list(self._store):
                for item in objects:
                    parts = _KEY.fullmatch(item["path"])
                    if parts is None:
                        continue
                    partition_id = PartitionId(parts[1], TopicId(parse_uuid(parts[2])), int(parts[3]))
                    found = StoredSegment(partition_id, parse_uuid(parts[5]), int(parts[4]))
                    if found != last:
                        yield found
                    last = found
        except self._errors as error:
            raise RemoteStoreError(f"cannot list the remote store: {error}") from error

    def close(self) -> None:
        return None


def _key(segment: RemoteSegment, kind: str) -> str:
    topic, topic_id, partition = segment.partition_id
    name = f"{segment.start_offset:020d}-{format_uuid(segment.id)}.{kind}"
    return f"{topic}-{format_uuid(topic_id)}/{partition}/{name}"


def _integer(configs: Mapping[str, str], name: str, default: int, least: int, largest: int) -> int:
    text = configs.get(name, str(default)).strip()
    try:
        value = int(text)
    except ValueError:
        raise ValueError(f"{name}={text} is not a number") from None
    if not least <= value <= largest:
        raise ValueError(f"{name}={text} must be between {least} and {largest}")
    return value


def _with_prefix(configs: Mapping[str, str], prefix: str) -> dict[str, str] | None:
    found = {name.removeprefix(prefix): text for name, text in configs.items() if name.startswith(prefix)}
    return found or None
