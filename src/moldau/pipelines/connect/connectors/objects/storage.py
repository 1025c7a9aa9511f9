"""Stores as file systems of `pyarrow`, and complete files in them.

A file appears at once with its whole content: object stores do so, and in a folder it is renamed into its
place. Writing it again with the same name replaces it.
"""

from __future__ import annotations

import os
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import pyarrow.fs as arrow_fs

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
)
from moldau.pipelines.connect.data.errors import RetriableError

_HIGH, _MEDIUM = Importance.HIGH, Importance.MEDIUM
#: Files whose names begin so are being written.
TEMPORARY: Final = ".tmp-"


#: Bytes at the beginning and at the end that tell whether a file was replaced.
_SAMPLE_BYTES: Final = 64 << 10


class StoredFile(NamedTuple):
    path: str
    size: int
    #: Nanoseconds since the epoch.
    modified: int


@dataclass(frozen=True, slots=True)
class Storage:
    """A store: its file system, and the bucket or folder below which all paths are."""

    files: Any
    root: str
    is_local: bool = False

    def write(self, path: str, data: bytes) -> None:
        """Store a whole file; an existing one is replaced."""
        target = f"{self.root}/{path}"
        with _available(path):
            if not self.is_local:
                with self.files.open_output_stream(target) as stream:
                    stream.write(data)
                return
            folder = Path(target).parent
            folder.mkdir(parents=True, exist_ok=True)
            temporary = folder / f"{TEMPORARY}{uuid.uuid4().hex}"
            try:
                with temporary.open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)

    @contextmanager
    def reading(self, path: str) -> Iterator[Any]:
        """Open a file for reading."""
        with _available(path), self.files.open_input_file(f"{self.root}/{path}") as file:
            yield file

    def listed(self, folder: str) -> list[StoredFile]:
        """Return all files below a folder, sorted by path; those being written are left out."""
        base = f"{self.root}/{folder}".rstrip("/")
        with _available(folder):
            selector = arrow_fs.FileSelector(base, allow_not_found=True, recursive=True)
            found = self.files.get_file_info(selector)
        return sorted(
            self._described(each)
            for each in found
            if each.type == arrow_fs.FileType.File and not each.base_name.startswith((TEMPORARY, "_"))
        )

    def found(self, path: str) -> StoredFile | None:
        """Return a file as it is now; None if there is none."""
        with _available(path):
            info = self.files.get_file_info(f"{self.root}/{path}")
        return self._described(info) if info.type == arrow_fs.FileType.File else None

    def _described(self, info: Any) -> StoredFile:
        return StoredFile(info.path.removeprefix(self.root).lstrip("/"), info.size, info.mtime_ns or 0)

    def fingerprint(self, path: str, size: int) -> str:
        """Return a value that changes if the first bytes of a file, up to this size, are replaced."""
        with self.reading(path) as file:
            checksum = zlib.crc32(file.read(min(size, _SAMPLE_BYTES)))
            if size > _SAMPLE_BYTES:
                file.seek(max(_SAMPLE_BYTES, size - _SAMPLE_BYTES))
                checksum = zlib.crc32(file.read(size - file.tell()), checksum)
        return f"{size}:{checksum:08x}"

    def delete(self, path: str) -> None:
        with _available(path):
            self.files.delete_file(f"{self.root}/{path}")

    def move(self, path: str, target: str) -> None:
        with _available(path):
            if self.is_local:
                Path(self.root, target).parent.mkdir(parents=True, exist_ok=True)
            self.files.move(f"{self.root}/{path}", f"{self.root}/{target}")


@contextmanager
def _available(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RetriableError(f"{path or 'The store'} is not available: {error}") from error


@dataclass(frozen=True, slots=True)
class StorageKind:
    """The settings of a kind of store, and how it is opened from them."""

    settings: tuple[tuple[Any, ...], ...]
    open: Callable[[Mapping[str, Any]], Storage]

    def define(self, definition: ConfigDef) -> ConfigDef:
        for name, kind, default, importance, text in self.settings:
            required = {"validator": NonEmptyString()} if default is NO_DEFAULT else {}
            definition.define(name, kind, default, importance, text, **required)
        return definition


def _s3(settings: Mapping[str, Any]) -> Storage:
    secret = settings["aws.secret.access.key"]
    url = urlsplit(settings["store.url"] or "")
    options: dict[str, Any] = {"region": settings["s3.region"]}
    if settings["aws.access.key.id"]:
        options |= {"access_key": settings["aws.access.key.id"], "secret_key": secret and secret.value}
    if settings["s3.role.arn"]:
        options = {"region": settings["s3.region"], "role_arn": settings["s3.role.arn"]}
    if url.netloc:
        options |= {"endpoint_override": url.netloc, "scheme": url.scheme}
    return Storage(arrow_fs.S3FileSystem(**options), settings["s3.bucket.name"])


def _gcs(settings: Mapping[str, Any]) -> Storage:
    url = urlsplit(settings["store.url"] or "")
    options: dict[str, Any] = {"anonymous": settings["gcs.anonymous"]}
    if url.netloc:
        options |= {"endpoint_override": url.netloc, "scheme": url.scheme}
    return Storage(arrow_fs.GcsFileSystem(**options), settings["gcs.bucket.name"])


def _azure(settings: Mapping[str, Any]) -> Storage:
    key, url = settings["azblob.account.key"], urlsplit(settings["store.url"] or "")
    options: dict[str, Any] = {"account_key": key.value} if key is not None else {}
    if url.netloc:
        options |= {"blob_storage_authority": url.netloc, "blob_storage_scheme": url.scheme}
    files = arrow_fs.AzureFileSystem(settings["azblob.account.name"], **options)
    return Storage(files, settings["azblob.container.name"])


def _folder(settings: Mapping[str, Any]) -> Storage:
    root = str(Path(settings["directory"]).absolute())
    return Storage(arrow_fs.LocalFileSystem(), root, is_local=True)


_URL: Final = ("store.url", ConfigType.STRING, None, _MEDIUM, "URL of a compatible service, such as MinIO.")
S3: Final = StorageKind(
    (
        ("s3.bucket.name", ConfigType.STRING, NO_DEFAULT, _HIGH, "Bucket."),
        ("s3.region", ConfigType.STRING, "us-west-2", _MEDIUM, "Region of the bucket."),
        _URL,
        (
            "aws.access.key.id",
            ConfigType.STRING,
            None,
            _MEDIUM,
            "Access key; by default the environment, AWS' configuration files or the machine's role decide.",
        ),
        ("aws.secret.access.key", ConfigType.PASSWORD, None, _MEDIUM, "Secret of the access key."),
        ("s3.role.arn", ConfigType.STRING, None, Importance.LOW, "Role to assume in place of a key."),
    ),
    _s3,
)
GCS: Final = StorageKind(
    (
        ("gcs.bucket.name", ConfigType.STRING, NO_DEFAULT, _HIGH, "Bucket."),
        ("gcs.anonymous", ConfigType.BOOLEAN, False, Importance.LOW, "Do not authenticate."),
        _URL,
    ),
    _gcs,
)
AZURE: Final = StorageKind(
    (
        ("azblob.account.name", ConfigType.STRING, NO_DEFAULT, _HIGH, "Storage account."),
        (
            "azblob.account.key",
            ConfigType.PASSWORD,
            None,
            _MEDIUM,
            "Key of the account; by default the environment or the machine's identity decides.",
        ),
        ("azblob.container.name", ConfigType.STRING, NO_DEFAULT, _HIGH, "Container."),
        _URL,
    ),
    _azure,
)
FOLDER: Final = StorageKind(
    (("directory", ConfigType.STRING, NO_DEFAULT, _HIGH, "Folder. All workers need the same one."),), _folder
)
