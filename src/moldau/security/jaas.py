"""JAAS entries: login modules and their options, as Java reads them.

An entry names a login module class, a control flag and options:
`org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b" user_a="b";`.
The config `sasl.jaas.config` holds entries alone. A JAAS file, named by the JVM property
`java.security.auth.login.config`, holds sections: `KafkaServer { entry... };`.

Java reads both with `java.io.StreamTokenizer`, and so does this module. A word consists of letters, digits,
`.`, `-`, `_` and `$`. Other text is quoted with `"` or `'` and may contain C's escapes. `//`, `/*` and a lone
`/` start a comment. An unquoted number is not text, so `port=9092` is refused. Values are secrets: they
appear in no message and no `repr`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from moldau.config.definition import ConfigError

LOGIN_CONFIG_PROPERTY: Final = "java.security.auth.login.config"
SERVER_SECTION: Final = "KafkaServer"
CLIENT_SECTION: Final = "KafkaClient"
FLAGS: Final = ("required", "requisite", "sufficient", "optional")

_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_DIGITS = "0123456789"
_OCTAL = "01234567"
#: The end of the text, where Java reads -1.
_END = ""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One entry: the class of a login module, its control flag and its options."""

    name: str
    flag: str
    options: Mapping[str, str] = field(repr=False)


class _Kind(Enum):
    TEXT = "text"
    SYMBOL = "symbol"
    NUMBER = "number"
    END = "end"


@dataclass(frozen=True, slots=True)
class _Token:
    kind: _Kind
    text: str = field(repr=False)
    line: int

    def is_symbol(self, symbol: str) -> bool:
        return self.kind is _Kind.SYMBOL and self.text == symbol


def parse_entries(text: str) -> tuple[LoginModule, ...]:
    """Parse the value of `sasl.jaas.config`; `ConfigError` with Kafka's message if it is invalid."""
    tokens = _tokens(text, stars_are_words=False)
    modules = []
    while (token := next(tokens)).kind is not _Kind.END:
        modules.append(_entry(token, tokens))
    if not modules:
        raise ConfigError("Login module not specified in JAAS config")
    return tuple(modules)


def parse_file(text: str, properties: Mapping[str, str]) -> dict[str, tuple[LoginModule, ...]]:
    """Parse a JAAS file into its sections; `${name}` in values stands for a JVM property."""
    tokens = _tokens(text, stars_are_words=True)
    sections: dict[str, tuple[LoginModule, ...]] = {}
    while (token := next(tokens)).kind is not _Kind.END:
        if token.kind is not _Kind.TEXT:
            raise ConfigError(f"JAAS file, line {token.line}: expected the name of a section")
        if token.text in sections:
            raise ConfigError(f"JAAS file, line {token.line}: section {token.text!r} appears twice")
        _expect(tokens, "{")
        sections[token.text] = tuple(_section_entries(tokens, properties))
        _expect(tokens, ";")
    return sections


def _section_entries(tokens: Iterator[_Token], properties: Mapping[str, str]) -> Iterator[LoginModule]:
    while not (token := next(tokens)).is_symbol("}"):
        if token.kind is _Kind.END:
            raise ConfigError("JAAS file: a section is not closed with '};'")
        module = _entry(token, tokens)
        options = {key: _expand(value, properties) for key, value in module.options.items()}
        yield LoginModule(module.name, module.flag, options)


def _expect(tokens: Iterator[_Token], symbol: str) -> None:
    token = next(tokens)
    if not token.is_symbol(symbol):
        raise ConfigError(f"JAAS file, line {token.line}: expected '{symbol}'")


def _expand(value: str, properties: Mapping[str, str]) -> str:
    """Replace `${name}` by JVM properties; `${/}` is the separator of paths."""
    parts, position = [], 0
    while (start := value.find("${", position)) >= 0 and (end := value.find("}", start)) >= 0:
        name = value[start + 2 : end]
        if name != "/" and name not in properties:
            raise ConfigError(f"JAAS file: the JVM property {name!r} in '${{{name}}}' is not set")
        parts += [value[position:start], "/" if name == "/" else properties[name]]
        position = end + 1
    return "".join([*parts, value[position:]])


def _entry(first: _Token, tokens: Iterator[_Token]) -> LoginModule:
    if first.kind is not _Kind.TEXT or not first.text:
        raise ConfigError("Login module not specified in JAAS config")
    flag = _flag(next(tokens))
    options: dict[str, str] = {}
    while not (token := next(tokens)).is_symbol(";"):
        if token.kind is _Kind.END:
            raise ConfigError("JAAS config entry not terminated by semi-colon")
        if token.kind is not _Kind.TEXT or not next(tokens).is_symbol("="):
            raise _no_option(list(options))
        value = next(tokens)
        if value.kind is not _Kind.TEXT:
            raise ConfigError(
                f"Value not specified for key '{token.text[:64]}' in JAAS config: "
                "quote values that are not plain words"
            )
        options[token.text] = value.text
    return LoginModule(first.text, flag, options)


def _flag(token: _Token) -> str:
    if token.kind is _Kind.END:
        raise ConfigError("Login module control flag not specified in JAAS config")
    if token.kind is not _Kind.TEXT:
        raise ConfigError("Login module control flag is not available in the JAAS config")
    if token.text.lower() not in FLAGS:
        raise ConfigError("Invalid login module control flag in JAAS config: use one of " + ", ".join(FLAGS))
    return token.text.lower()


def _no_option(before: list[str]) -> ConfigError:
    # The text in question can be a part of a password whose quotes are missing: it is not shown.
    where = f" after option '{before[-1][:64]}'" if before else " after the control flag"
    return ConfigError(
        f'Value not specified for a key{where} in JAAS config: options are key=value or key="value"'
    )


def _tokens(text: str, *, stars_are_words: bool) -> Iterator[_Token]:
    """Yield the tokens of `text`, then END for ever."""
    line, position = 1, 0
    while True:
        start = position
        kind, value, position = _next_token(text, position, "-_$*" if stars_are_words else "-_$")
        line += text.count("\n", start, position)
        yield _Token(kind, value, line)


def _next_token(text: str, position: int, word_symbols: str) -> tuple[_Kind, str, int]:
    while True:
        position = _skip_blanks(text, position)
        character = _at(text, position)
        if character == "/":
            position = _skip_comment(text, position)
        elif not character:
            return _Kind.END, "", position
        elif character in _DIGITS or character in ".-":
            return _number(text, position)
        elif _in_word(character, word_symbols):
            return _word(text, position, word_symbols)
        elif character in "\"'":
            return _quoted(text, position)
        else:
            return _Kind.SYMBOL, character, position + 1


def _at(text: str, position: int) -> str:
    return text[position] if position < len(text) else _END


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] <= " ":
        position += 1
    return position


def _skip_comment(text: str, position: int) -> int:
    if text.startswith("/*", position):
        end = text.find("*/", position + 2)
        return len(text) if end < 0 else end + 2
    while position < len(text) and text[position] not in "\r\n":
        position += 1
    return position


def _number(text: str, position: int) -> tuple[_Kind, str, int]:
    """Read a number; a `-` without digits is a symbol."""
    start = position
    if text[position] == "-":
        position += 1
        following = _at(text, position)
        if not following or following not in "." + _DIGITS:
            return _Kind.SYMBOL, "-", position
    seen_dot = False
    while (character := _at(text, position)) and (
        character in _DIGITS or (character == "." and not seen_dot)
    ):
        seen_dot = seen_dot or character == "."
        position += 1
    return _Kind.NUMBER, text[start:position], position


def _in_word(character: str, symbols: str) -> bool:
    code = ord(character)
    return "a" <= character <= "z" or "A" <= character <= "Z" or code >= 160 or character in symbols


def _word(text: str, position: int, symbols: str) -> tuple[_Kind, str, int]:
    start = position
    while (character := _at(text, position)) and (
        _in_word(character, symbols) or character in _DIGITS or character in ".-"
    ):
        position += 1
    return _Kind.TEXT, text[start:position], position


def _quoted(text: str, position: int) -> tuple[_Kind, str, int]:
    """Read quoted text, which ends at the quote or at the end of the line."""
    quote = text[position]
    position += 1
    parts: list[str] = []
    while (character := _at(text, position)) and character != quote and character not in "\r\n":
        if character == "\\":
            character, position = _escape(text, position + 1)
        else:
            position += 1
        parts.append(character)
    return _Kind.TEXT, "".join(parts), position + 1 if character == quote else position


def _escape(text: str, position: int) -> tuple[str, int]:
    """Read what follows a backslash: octal digits (up to three), a letter of C, or the character itself."""
    character = _at(text, position)
    if not character or character not in _OCTAL:
        return _ESCAPES.get(character, character), position + 1
    end = position + 1
    most = position + (3 if character <= "3" else 2)
    while end < most and (digit := _at(text, end)) and digit in _OCTAL:
        end += 1
    return chr(int(text[position:end], 8)), end


def option(modules: Sequence[LoginModule], key: str, module: str | None = None) -> str | None:
    """Return the first value of an option, of one login module or of any."""
    for entry in modules:
        if (module is None or entry.name == module) and key in entry.options:
            return entry.options[key]
    return None


def server_modules(
    listener: str,
    config: str | None,
    properties: Mapping[str, str],
    files: Mapping[str, Sequence[LoginModule]],
) -> Sequence[LoginModule]:
    """Return the login modules of a listener: from its config, else from the JAAS file's sections.

    `files` are the sections of the JAAS file. The section `<listener>.KafkaServer` is preferred.
    """
    if config is not None:
        return _single(config)
    own = f"{listener.lower()}.{SERVER_SECTION}"
    for section in (own, SERVER_SECTION):
        if section in files:
            return files[section]
    raise _missing(f"'{SERVER_SECTION}' or '{own}'", properties)


def client_modules(
    config: str | None, properties: Mapping[str, str], files: Mapping[str, Sequence[LoginModule]]
) -> Sequence[LoginModule]:
    """Return the login modules of a client: from `sasl.jaas.config`, else from the section `KafkaClient`."""
    if config is not None:
        return _single(config)
    if CLIENT_SECTION in files:
        return files[CLIENT_SECTION]
    raise _missing(f"'{CLIENT_SECTION}'", properties)


def _single(config: str) -> tuple[LoginModule, ...]:
    modules = parse_entries(config)
    if len(modules) != 1:
        raise ConfigError(f"JAAS config property contains {len(modules)} login modules, should be 1 module")
    return modules


def _missing(sections: str, properties: Mapping[str, str]) -> ConfigError:
    file = properties.get(LOGIN_CONFIG_PROPERTY)
    return ConfigError(
        f"Could not find a {sections} entry in the JAAS configuration. "
        f"System property '{LOGIN_CONFIG_PROPERTY}' is {'not set' if file is None else file}"
    )
