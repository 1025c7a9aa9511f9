"""Prometheus' text format 0.0.4 and OpenMetrics 1.0, from the samples of one scrape.

Every family of the table is present with HELP and TYPE; one without samples whose total is known is 0. A node
without the broker role leaves out the families of brokers, so that `count()` of one counts brokers.
Collectors append finished lines: formatting a sample must not cost more than its value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from moldau.metrics.family import Family

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
#: Characters of a label value that are escaped in both formats.
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_HELP_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n"})

Value = int | float


class Scrape:
    """The samples of one scrape, by family."""

    def __init__(self, families: Iterable[Family], *, is_broker: bool = True) -> None:
        self._is_broker = is_broker
        self._lines: dict[Family, list[str]] = {family: [] for family in families}

    def add_family(self, family: Family) -> None:
        """Add a family that is not in the table: of metrics that clients push."""
        self._lines.setdefault(family, [])

    def lines(self, family: Family) -> list[str]:
        """Return the list to which finished lines of a family are appended."""
        return self._lines[family]

    def add(self, family: Family, value: Value, *label_values: object) -> None:
        """Add a sample with values for all labels, or for none of them."""
        labels = labels_text(family.labels, label_values) if label_values else ""
        self._lines[family].append(f"{family.name}{labels} {number_text(value)}")

    def add_summary(
        self,
        family: Family,
        quantiles: Iterable[tuple[float, float]],
        total: Value,
        count: int,
        *label_values: object,
    ) -> None:
        lines, name = self._lines[family], family.name
        labels = labels_text(family.labels, label_values)
        inner = labels[1:-1] + "," if labels else ""
        for quantile, value in quantiles:
            lines.append(f'{name}{{{inner}quantile="{quantile}"}} {number_text(value)}')
        lines.append(f"{name}_sum{labels} {number_text(total)}")
        lines.append(f"{name}_count{labels} {count}")

    def rendered(self, *, open_metrics: bool) -> Iterator[str]:
        """Return the text in parts, one for each family."""
        for family, lines in self._lines.items():
            if family.is_of_broker and not self._is_broker:
                continue
            name = family.name.removesuffix("_total") if open_metrics else family.name
            text = family.help.translate(_HELP_ESCAPES)
            header = f"# HELP {name} {text}\n# TYPE {name} {family.kind.value}\n"
            if not lines and family.has_total:
                lines = [f"{family.name} 0"]
            yield header + "\n".join(lines) + "\n" if lines else header
        if open_metrics:
            yield "# EOF\n"


def escaped(value: object) -> str:
    return str(value).translate(_ESCAPES)


def labels_text(names: Iterable[str], values: Iterable[object]) -> str:
    """Return labels as in a sample, with braces; empty without labels."""
    inner = ",".join(f'{name}="{escaped(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{inner}}}" if inner else ""


def number_text(value: Value) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    return repr(value)


def wants_open_metrics(accept: str) -> bool:
    """Return whether an `Accept` header prefers OpenMetrics to the text format."""
    weights = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for entry in accept.split(","):
        media_type, *parameters = (part.strip() for part in entry.split(";"))
        if media_type.lower() in weights:
            weights[media_type.lower()] = max(weights[media_type.lower()], _weight(parameters))
    return weights["application/openmetrics-text"] > weights["text/plain"]


def _weight(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
