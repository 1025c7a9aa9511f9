"""The tables of `moldau lag`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from moldau.lag.evaluation.rules import Status
from moldau.lag.evaluation.verdicts import GroupLag, LagSnapshot, PartitionLag
from moldau.metrics.end_offsets import Age

#: The width of tables that are not printed to a terminal: as wide as their content.
_UNLIMITED_WIDTH = 10_000
_COLOURS = {Status.OK: "green", Status.WARN: "yellow"}
_UNKNOWN = "-"


def new_console() -> Console:
    terminal = Console(highlight=False)
    return terminal if terminal.is_terminal else Console(highlight=False, width=_UNLIMITED_WIDTH)


def render(snapshot: LagSnapshot, *, partitions: bool) -> RenderableType:
    """Return the table of all groups, or of their partitions, and the reasons below it."""
    groups = list(snapshot.groups.values())
    parts: list[RenderableType] = [_partition_table(groups) if partitions else _group_table(groups)]
    parts += [_reason(each) for each in groups if each.reason]
    parts += [Text(f"{each.group}: {each.error}", style="red") for each in groups if each.error]
    if snapshot.error:
        at = datetime.fromtimestamp(snapshot.time_ms / 1000).strftime("%H:%M:%S")
        parts.append(Text(f"Not current since {at}: {snapshot.error}", style="red"))
    return Group(*parts)


def _group_table(groups: Iterable[GroupLag]) -> Table:
    table = _table(("GROUP", "TYPE", "STATE"), ("MEMBERS", "PARTITIONS", "LAG", "SECONDS"), ("STATUS",))
    for each in groups:
        longest = max((p.age for p in each.partitions if p.age), key=lambda age: age.ms, default=None)
        table.add_row(
            Text(each.group),
            each.type,
            each.state,
            str(each.members),
            str(len(each.partitions)),
            _UNKNOWN if each.total_lag is None else str(each.total_lag),
            _seconds(longest),
            _status(each.status, each.judged, _observed(each)),
        )
    return table


def _partition_table(groups: Iterable[GroupLag]) -> Table:
    numbers = ("PARTITION", "COMMITTED", "END", "LAG", "SECONDS")
    table = _table(("GROUP", "TOPIC"), numbers, ("STATUS", "CLIENT-ID", "HOST"))
    for group in groups:
        for each in group.partitions:
            table.add_row(Text(group.group), Text(each.topic), *_numbers(each), *_owner(each))
    return table


def _numbers(lag: PartitionLag) -> Iterable[str]:
    yield str(lag.partition)
    for number in (lag.committed, lag.end_offset, lag.lag):
        yield _UNKNOWN if number is None else str(number)
    yield _seconds(lag.age)


def _owner(lag: PartitionLag) -> Iterable[Text]:
    yield _status(lag.status, lag.judged, lag.complete)
    yield Text(lag.client_id or _UNKNOWN)
    yield Text(lag.host or _UNKNOWN)


def _table(left: Iterable[str], right: Iterable[str], rest: Iterable[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in left:
        table.add_column(name, overflow="fold")
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    for name in rest:
        table.add_column(name, overflow="fold")
    return table


def _status(status: Status, judged: bool, complete: float) -> Text:
    """The verdict or, before it, how much of the window was observed."""
    if judged:
        return Text(status.name, _COLOURS.get(status, "red"))
    return Text(f"{complete:.0%}" if complete else _UNKNOWN, "dim")


def _observed(group: GroupLag) -> float:
    """The observed fraction of the window, of the partition that was observed for the shortest time."""
    return min((each.complete for each in group.partitions if each.committed is not None), default=0.0)


def _seconds(age: Age | None) -> str:
    if age is None:
        return _UNKNOWN
    text = f"{age.ms / 1000:.1f}"
    return text if age.exact else f">{text}"


def _reason(group: GroupLag) -> Text:
    return Text.assemble(
        (group.status.name, _COLOURS.get(group.status, "red")), f" {group.group}: {group.reason}"
    )
