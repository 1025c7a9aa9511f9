"""The prompt of `moldau sql`: history, completion, and statements of several lines that a semicolon ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import is_done
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from moldau.pipelines.sql.parse.dialect import is_complete

if TYPE_CHECKING:
    from moldau.pipelines.sql.catalog.catalog import Catalog

PROMPT = "sql> "
_ENDINGS = ("exit", "quit")
_KEYWORDS = """
ADVANCE AND AS BEGINNING BETWEEN BY CASE CHANGES CREATE DELETE DESCRIBE DROP ELSE EMIT END EXISTS
EXPLAIN EXTENDED FINAL FROM FULL FUNCTION FUNCTIONS GRACE GROUP HAVING HOPPING IF IN INNER INSERT
INTO IS JOIN KEY LEFT LIKE LIMIT NOT NULL ON OR OUTER PARTITION PERIOD PRIMARY PRINT PROPERTIES
QUERIES REPLACE RUN SCRIPT SELECT SESSION SET SHOW SIZE STREAM STREAMS TABLE TABLES TERMINATE THEN
TOPIC TOPICS TUMBLING UNSET VALUES WHEN WHERE WINDOW WITH WITHIN PAUSE RESUME BOOLEAN INT BIGINT
DOUBLE DECIMAL VARCHAR BYTES TIMESTAMP DATE TIME ARRAY MAP STRUCT
"""
HELP = """\
CREATE STREAM orders (id INT KEY, total DOUBLE) WITH (topic='orders', format='JSON');
CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR) WITH (topic='users', format='JSON');
CREATE STREAM|TABLE name AS SELECT … FROM … [WINDOW …] [WHERE …] [GROUP BY …];    a persistent query
INSERT INTO orders (id, total) VALUES (1, 9.5);     INSERT INTO orders SELECT …;
SELECT … FROM … EMIT CHANGES [LIMIT n];             a push query: new rows until Ctrl-C
SELECT … FROM … [WHERE …];                          a pull query: the rows that exist now
SHOW STREAMS | TABLES | TOPICS | QUERIES | FUNCTIONS | PROPERTIES;
DESCRIBE name [EXTENDED];  EXPLAIN SELECT …;  DROP STREAM | TABLE name [DELETE TOPIC];
TERMINATE | PAUSE | RESUME query | ALL;
PRINT topic [FROM BEGINNING] [LIMIT n];  SET 'auto.offset.reset'='earliest';  RUN SCRIPT 'file.sql';
help, exit"""


class SqlCompleter(Completer):
    """Completes keywords and the names of streams, tables and columns."""

    def __init__(self, catalog: Callable[[], Catalog | None]) -> None:
        self._catalog = catalog

    def get_completions(self, document: Document, _: CompleteEvent) -> Iterable[Completion]:
        word = document.get_word_before_cursor(WORD=False)
        if not word:
            return
        for name, kind in self._names():
            if name.upper().startswith(word.upper()) and name != word:
                shown = name if kind or not word.islower() else name.lower()
                yield Completion(shown, -len(word), display_meta=kind)

    def _names(self) -> Iterable[tuple[str, str]]:
        catalog = self._catalog()
        found: dict[str, str] = {}
        for source in catalog.sources() if catalog is not None else ():
            found.setdefault(source.name, source.kind.lower())
            for column in source.columns:
                found.setdefault(column.name, f"column of {source.name}")
        yield from sorted(found.items())
        yield from ((keyword, "") for keyword in _KEYWORDS.split())


def is_whole(text: str) -> bool:
    """Return whether a text is a complete statement with its semicolon, or a command of the shell."""
    return not text.strip() or text.strip().lower() in (*_ENDINGS, "help") or is_complete(text)


def ends(text: str) -> bool:
    return text.strip().rstrip(";").strip().lower() in _ENDINGS


def prompt_session(history: Path, catalog: Callable[[], Catalog | None]) -> PromptSession[str]:
    history.parent.mkdir(parents=True, exist_ok=True)
    keys = KeyBindings()

    @keys.add("enter", filter=~is_done)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return PromptSession(
        PROMPT,
        history=FileHistory(str(history)),
        completer=SqlCompleter(catalog),
        complete_while_typing=False,
        multiline=True,
        prompt_continuation="...  ",
        key_bindings=keys,
    )
