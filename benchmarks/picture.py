"""The picture in `docs/`: an SVG with a pair of bars, values and ratio for each chosen figure.

The longer bar of a pair has the full width, so a pair shows its ratio independently of the unit. Colours
follow the reader's light or dark colour scheme.
"""

from __future__ import annotations

from html import escape

from benchmarks.report import Compared, number
from benchmarks.workloads import CPU, IDLE, LOADED, READY, RECORDS, REQUESTS, latency_name

_MORE = (
    ("produce 100 B, records/s", f"produce 100 B, acks=all: {RECORDS}"),
    ("produce 1 KiB, records/s", f"produce 1 KiB, acks=all: {RECORDS}"),
    ("produce 1 KiB, 20 conn., records/s", f"produce 1 KiB, 20 connections: {RECORDS}"),
    ("one record a request, 20 conn., requests/s", f"one record a request, 20 connections: {REQUESTS}"),
    ("consume 100 B, records/s", f"consume 100 B: {RECORDS}"),
    ("consume 1 KiB, records/s", f"consume 1 KiB: {RECORDS}"),
)
_LESS = (
    ("broker CPU, produce 1 KiB, s per million", f"produce 1 KiB, acks=all: {CPU}"),
    ("broker CPU, consume 1 KiB, s per million", f"consume 1 KiB: {CPU}"),
    ("latency end to end, p50, ms", latency_name("p50")),
    ("latency end to end, p99, ms", latency_name("p99")),
    ("format to first acknowledged record, s", READY),
    ("memory idle, MB", IDLE),
    ("memory under load, MB", LOADED),
)
_WIDTH = 920
_LABELS = 330
_BARS = 350
_ROW = 40
_STYLE = """\
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
.title { font-size: 17px; font-weight: 600 } .group { font-weight: 600 } .soft { fill: #59636e }
.ratio { font-weight: 600 } .card { fill: #ffffff; stroke: #d1d9e0 }
.moldau { fill: #1f7a8c } .apache { fill: #b8c4cc }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .soft { fill: #9198a1 } .card { fill: #0d1117; stroke: #3d444d }
  .moldau { fill: #3fb5c9 } .apache { fill: #5b6873 }
}"""


def svg(figures: dict[str, Compared], subtitle: str) -> str:
    """Return the SVG; figures of both brokers are required."""
    body = [
        _text(24, 36, "Moldau beside Apache Kafka 4.3", "title"),
        _text(24, 58, subtitle, "soft"),
        f'<rect class="moldau" x="{_LABELS}" y="72" width="12" height="12" rx="2"/>',
        _text(_LABELS + 18, 83, "Moldau"),
        f'<rect class="apache" x="{_LABELS + 90}" y="72" width="12" height="12" rx="2"/>',
        _text(_LABELS + 108, 83, "Apache Kafka"),
        _text(_WIDTH - 24, 83, "Moldau / Apache", "soft", "end"),
    ]
    top = 116
    for title, rows in (("More is better", _MORE), ("Less is better", _LESS)):
        body.append(_text(24, top, title, "group"))
        top += 18
        for label, name in rows:
            body += _pair(top, label, figures[name])
            top += _ROW
        top += 26
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}" '
        f'height="{top}" role="img" aria-label="Moldau beside Apache Kafka: speed, CPU, latency, memory">\n'
        f"<style>{_STYLE}</style>\n"
        f'<rect class="card" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{top - 1}" rx="8"/>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _pair(top: int, label: str, figure: Compared) -> list[str]:
    theirs = figure.apache or 0.0
    longest = max(figure.moldau, theirs) or 1.0
    parts = [_text(_LABELS - 14, top + 19, label, anchor="end")]
    for y, name, value in ((top, "moldau", figure.moldau), (top + 15, "apache", theirs)):
        width = max(2.0, value / longest * _BARS)
        parts.append(f'<rect class="{name}" x="{_LABELS}" y="{y}" width="{width:.1f}" height="13" rx="2"/>')
        parts.append(_text(_LABELS + width + 8, y + 11, number(value), "soft"))
    ratio = figure.ratio or 0.0
    shown = f"× {ratio:.2f}" if ratio >= 0.095 else f"× {ratio:.3f}"
    parts.append(_text(_WIDTH - 24, top + 19, shown, "ratio", "end"))
    return parts


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'
