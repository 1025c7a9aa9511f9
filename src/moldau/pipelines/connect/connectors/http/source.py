"""The HTTP source: polls an API and writes the entries of its answers.

The next request is made of the offset, by the template `${offset}`: a number that counts the entries, a field
of the last entry, or the cursor of the next page. Offsets are stored with the records, so a restart continues
there; within a page, the number of entries that were read is part of the offset.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    NonEmptyString,
    Range,
    ValidString,
)
from moldau.pipelines.connect.connectors.http import client as requests
from moldau.pipelines.connect.connectors.http.client import Client, Unavailable
from moldau.pipelines.connect.connectors.http.pointers import at_pointer, check_pointer
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.sdk import ExactlyOnceSupport, SourceConnector, SourceContext, SourceTask

logger = logging.getLogger(__name__)

URL: Final = "url"
ENTITIES: Final = "entity.names"
TOPIC: Final = "topic.name.pattern"
METHOD: Final = "http.request.method"
HEADERS, HEADER_SEPARATOR = "http.request.headers", "http.request.headers.separator"
PARAMETERS, PARAMETER_SEPARATOR = "http.request.parameters", "http.request.parameters.separator"
BODY: Final = "http.request.body"
MODE: Final = "http.offset.mode"
SIMPLE, CHAINING, CURSOR, SNAPSHOT = (
    *("SIMPLE_INCREMENTING", "CHAINING", "CURSOR_PAGINATION", "SNAPSHOT_PAGINATION"),
)
INITIAL: Final = "http.initial.offset"
OFFSET_POINTER: Final = "http.offset.json.pointer"
DATA_POINTER: Final = "http.response.data.json.pointer"
NEXT_POINTER: Final = "http.next.page.json.pointer"
INTERVAL: Final = "request.interval.ms"
_OFFSET, _READ = "offset", "read"


def _definition() -> ConfigDef:
    high, medium, low, text = Importance.HIGH, Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition = ConfigDef()
    definition.define(
        URL,
        text,
        NO_DEFAULT,
        high,
        "URL of the requests; ${entityName} and ${offset} are replaced.",
        validator=NonEmptyString(),
    )
    definition.define(ENTITIES, ConfigType.LIST, "default", high, "Names for ${entityName}, read in turn.")
    definition.define(
        TOPIC,
        text,
        "${entityName}",
        high,
        "Topic; ${entityName} is replaced.",
        validator=NonEmptyString(),
    )
    definition.define(
        METHOD,
        text,
        "GET",
        high,
        "Method: GET or POST.",
        validator=ValidString(("GET", "POST"), ignore_case=True),
    )
    definition.define(HEADERS, text, "", medium, "Headers of the requests: Name: value, with separators.")
    definition.define(HEADER_SEPARATOR, text, "|", low, "Text between the headers.")
    definition.define(
        PARAMETERS,
        text,
        "",
        medium,
        "Parameters of the query: name=value, with separators. ${offset} is replaced.",
    )
    definition.define(PARAMETER_SEPARATOR, text, "&", low, "Text between the parameters.")
    definition.define(
        BODY, text, "", medium, "Body of the requests; ${entityName} and ${offset} are replaced."
    )
    _define_offsets(definition)
    return requests.define_requests(definition)


def _define_offsets(definition: ConfigDef) -> None:
    high, medium, text = Importance.HIGH, Importance.MEDIUM, ConfigType.STRING
    definition.define(
        MODE,
        text,
        SIMPLE,
        high,
        "What ${offset} is: SIMPLE_INCREMENTING: the initial offset plus the number of entries that were "
        "read; CHAINING: a field of the last entry; CURSOR_PAGINATION: the cursor of the next page in the "
        "answer, the last page is requested again for further entries; SNAPSHOT_PAGINATION: the same, but "
        "after the last page all pages are read again.",
        validator=ValidString((SIMPLE, CHAINING, CURSOR, SNAPSHOT), ignore_case=True),
    )
    definition.define(INITIAL, text, "", medium, "The first ${offset}.")
    definition.define(
        OFFSET_POINTER, text, "", medium, "JSON pointer in an entry to its offset, for CHAINING: /id."
    )
    definition.define(
        DATA_POINTER,
        text,
        "",
        medium,
        "JSON pointer in the answer to the entries, an array or one value; by default the whole answer.",
    )
    definition.define(
        NEXT_POINTER, text, "", medium, "JSON pointer in the answer to the cursor of the next page: /next."
    )
    definition.define(
        INTERVAL,
        ConfigType.LONG,
        15_000,
        high,
        "Milliseconds between requests; further pages are requested at once.",
        validator=Range(1),
    )


class HttpSourceConnector(SourceConnector):
    config = _definition()

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        requests.check_requests(values)
        mode = str(values[MODE].value).upper()
        if mode == CHAINING and not values[OFFSET_POINTER].value:
            values[OFFSET_POINTER].errors.append("Required with http.offset.mode CHAINING.")
        if mode in (CURSOR, SNAPSHOT) and not values[NEXT_POINTER].value:
            values[NEXT_POINTER].errors.append(f"Required with http.offset.mode {mode}.")
        initial = values[INITIAL].value
        if mode == SIMPLE and initial and not initial.lstrip("-").isdecimal():
            values[INITIAL].errors.append("Must be a number with http.offset.mode SIMPLE_INCREMENTING.")
        url = values[URL]
        if url.value and not str(url.value).startswith(("http://", "https://")):
            url.errors.append("The URL must begin with http:// or https://.")
        for name in (OFFSET_POINTER, DATA_POINTER, NEXT_POINTER):
            _collect(values[name], lambda name=name: check_pointer(name, values[name].value or ""))
        separator = values[HEADER_SEPARATOR].value
        _collect(values[HEADERS], lambda: requests.parse_headers(HEADERS, values[HEADERS].value, separator))
        return values

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        entities = self.config.parse(self.properties)[ENTITIES]
        groups = [entities[first::max_tasks] for first in range(min(max_tasks, len(entities)))]
        return [{**self.properties, ENTITIES: ",".join(each)} for each in groups]

    def task(self) -> SourceTask:
        return HttpSourceTask(self.config)

    def exactly_once_support(self, properties: Mapping[str, str]) -> ExactlyOnceSupport:
        is_snapshot = properties.get(MODE, SIMPLE).upper() == SNAPSHOT
        return ExactlyOnceSupport.UNSUPPORTED if is_snapshot else ExactlyOnceSupport.SUPPORTED


def _collect(value: ConfigValue, check: Any) -> None:
    try:
        check()
    except ConfigError as error:
        value.errors.append(str(error))


class _Entity:
    """The position in one entity's answers."""

    def __init__(self, name: str, stored: Mapping[str, Any] | None, initial: str) -> None:
        self.name = name
        self.partition = {"entityName": name}
        found = stored or {}
        self.offset = str(found.get(_OFFSET, initial))
        #: Entries of the current page that were read.
        self.read = int(found.get(_READ) or 0)
        self.due = 0.0


class HttpSourceTask(SourceTask):
    def __init__(self, definition: ConfigDef) -> None:
        self._definition = definition
        self._client: Client | None = None

    def start(self, context: SourceContext) -> None:
        self._config = config = self._definition.parse(context.config)
        self._context = context
        self._mode: str = config[MODE].upper()
        self._client = Client(config, context.wait)
        self._headers = requests.parse_headers(HEADERS, config[HEADERS], config[HEADER_SEPARATOR])
        initial = config[INITIAL] or ("0" if self._mode == SIMPLE else "")
        self._initial = initial
        self._entities = [
            _Entity(each, context.offset({"entityName": each}), initial) for each in config[ENTITIES]
        ]

    def poll(self) -> Sequence[SourceRecord]:
        entity = min(self._entities, key=lambda each: each.due)
        left_s = entity.due - time.monotonic()
        if left_s > 0 and (self._context.wait(min(left_s, 1.0)) or left_s > 1.0):
            return ()
        try:
            answer = self._request(entity)
        except Unavailable as error:
            # An unavailable server does not fail the task; the request is retried.
            logger.warning("No answer for %s: %s", entity.name, error)
            entity.due = time.monotonic() + self._config[INTERVAL] / 1000
            return ()
        entries = at_pointer(answer, self._config[DATA_POINTER])
        if entries is None:
            entries = []
        if not isinstance(entries, list):
            entries = [entries]
        records, is_more = self._records(entity, answer, entries)
        if not is_more:
            entity.due = time.monotonic() + self._config[INTERVAL] / 1000
        return records

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()

    def _request(self, entity: _Entity) -> Any:
        if self._client is None:
            raise ConnectError("The task has not started")
        config = self._config
        url = self._filled(config[URL], entity, escape=True)
        pairs = [
            each.partition("=")
            for each in config[PARAMETERS].split(config[PARAMETER_SEPARATOR])
            if each.strip()
        ]
        query = urlencode([(name.strip(), self._filled(value, entity)) for name, _, value in pairs])
        if query:
            url += ("&" if "?" in url else "?") + query
        body = self._filled(config[BODY], entity) if config[BODY] else None
        answer = self._client.request(config[METHOD].upper(), url, self._headers, body)
        if not answer.content:
            return None
        try:
            return json.loads(answer.content)
        except ValueError as error:
            raise ConnectError(f"The answer for {entity.name} is not JSON: {error}") from error

    def _filled(self, text: str, entity: _Entity, *, escape: bool = False) -> str:
        for name, value in (("${entityName}", entity.name), ("${offset}", entity.offset)):
            text = text.replace(name, quote(value, safe="") if escape else value)
        return text

    def _records(self, entity: _Entity, answer: Any, entries: list[Any]) -> tuple[list[SourceRecord], bool]:
        """Return the new entries with offsets, and whether to request more at once."""
        if self._mode == SIMPLE:
            first = int(entity.offset)
            found = [
                self._record(entity, each, {_OFFSET: str(first + index)})
                for index, each in enumerate(entries, start=1)
            ]
            entity.offset = str(first + len(entries))
            return found, bool(entries)
        if self._mode == CHAINING:
            return self._chained(entity, entries), bool(entries)
        return self._paged(entity, answer, entries)

    def _chained(self, entity: _Entity, entries: list[Any]) -> list[SourceRecord]:
        found = []
        for each in entries:
            offset = at_pointer(each, self._config[OFFSET_POINTER])
            if offset is None or isinstance(offset, dict | list):
                raise ConnectError(
                    f"An entry of {entity.name} has no value at {self._config[OFFSET_POINTER]}"
                )
            entity.offset = str(offset)
            found.append(self._record(entity, each, {_OFFSET: entity.offset}))
        return found

    def _paged(self, entity: _Entity, answer: Any, entries: list[Any]) -> tuple[list[SourceRecord], bool]:
        """Return the entries of the page that were not read yet, and go to the next page if there is one."""
        found = [
            self._record(entity, each, {_OFFSET: entity.offset, _READ: index})
            for index, each in enumerate(entries[entity.read :], start=entity.read + 1)
        ]
        entity.read = max(entity.read, len(entries))
        cursor = at_pointer(answer, self._config[NEXT_POINTER])
        if cursor not in (None, "", False) and str(cursor) != entity.offset:
            entity.offset, entity.read = str(cursor), 0
            return found, True
        if self._mode == SNAPSHOT:
            entity.offset, entity.read = self._initial, 0
        return found, False

    def _record(self, entity: _Entity, value: Any, offset: Mapping[str, Any]) -> SourceRecord:
        topic = self._config[TOPIC].replace("${entityName}", entity.name)
        return SourceRecord(topic=topic, value=value, source_partition=entity.partition, source_offset=offset)
