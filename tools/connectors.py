"""Write the tables of settings of all connectors into docs/CONNECTORS.md.

A section has a comment for each connector that it documents, `<!-- settings: class name -->`; the table of
the connector's settings follows it, up to `<!-- /settings -->`.
"""

from __future__ import annotations

import re
from pathlib import Path

from moldau.pipelines.connect.config.definition import ConfigKey, ConfigType, convert_to_string
from moldau.pipelines.connect.plugins import Plugins, PluginType

PAGE = Path(__file__).parents[1] / "docs" / "CONNECTORS.md"
_MARKED = re.compile(r"(<!-- settings: (?P<name>\S+) -->\n).*?(<!-- /settings -->)", re.DOTALL)
_HEADER = ["| setting | type | default | meaning |", "|---|---|---|---|"]


def with_tables(page: str) -> str:
    """Return the page with current tables."""
    plugins = Plugins()

    def table(match: re.Match[str]) -> str:
        keys = plugins.connector(match["name"]).config.keys.values()
        rows = [_row(key) for key in keys if not key.internal]
        return "".join([match[1], "\n", "\n".join([*_HEADER, *rows]), "\n\n", match[3]])

    return _MARKED.sub(table, page)


def documented(page: str) -> set[str]:
    """Return the class names of the connectors that the page documents."""
    return {match["name"] for match in _MARKED.finditer(page)}


def known() -> set[str]:
    """Return the class names of all built-in connectors."""
    return {each.name for each in Plugins().of(PluginType.SOURCE, PluginType.SINK)}


def _row(key: ConfigKey) -> str:
    meaning = " ".join(key.documentation.split()).replace("|", "\\|")
    return f"| `{key.name}` | {key.type.value} | {_default(key)} | {meaning} |"


def _default(key: ConfigKey) -> str:
    if not key.has_default:
        return "required"
    if key.default is None or key.type is ConfigType.PASSWORD:
        return ""
    text = convert_to_string(key.default, key.type)
    return f"`{text}`" if text else ""


def main() -> None:
    PAGE.write_text(with_tables(PAGE.read_text()))


if __name__ == "__main__":
    main()
