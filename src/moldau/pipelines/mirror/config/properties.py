"""Reading mm2.properties: clusters, flows, and the checks before anything starts.

    clusters = us, eu
    us.bootstrap.servers = us1:9092
    eu.bootstrap.servers = eu1:9092
    us->eu.enabled = true
    us->eu.topics = orders, payments.*

Every name must be known, because a misspelled setting of a mirror shows only when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from moldau.base.errors import KafkaError
from moldau.client.wire.settings import ClientSettings
from moldau.config.providers import is_provider_setting, resolved
from moldau.pipelines.mirror.config import clients
from moldau.pipelines.mirror.config.clients import client_properties, is_client_setting, unprefixed
from moldau.pipelines.mirror.config.definitions import (
    CONVERTERS,
    SETTINGS,
    TRANSFORMATIONS,
    WITHOUT_EFFECT,
    WORKER_SETTINGS,
    MirrorConfigError,
)
from moldau.pipelines.mirror.config.flow import Flow
from moldau.pipelines.mirror.config.loops import check_loops

_BYTES = "ByteArrayConverter"


@dataclass(frozen=True, slots=True)
class MirrorConfig:
    #: Enabled flows.
    flows: tuple[Flow, ...]
    #: Pairs of clusters with heartbeats: source and target alias, in flows that need not be enabled.
    heartbeats: tuple[Flow, ...]
    clusters: tuple[str, ...]
    warnings: tuple[str, ...]

    def flow(self, name: str) -> Flow:
        """Return an enabled flow by its name, `source->target`."""
        found = [flow for flow in self.flows if str(flow) == name.replace(" ", "")]
        if not found:
            known = ", ".join(map(str, self.flows)) or "none"
            raise MirrorConfigError(f"No enabled flow {name}; enabled flows: {known}")
        return found[0]


def read_config(properties: Mapping[str, str], targets: Sequence[str] = ()) -> MirrorConfig:
    """Parse and check properties; with `targets`, only flows to these clusters are returned."""
    reader = _Reader(resolved(properties, MirrorConfigError, strict=True))
    for alias in targets:
        if alias not in reader.aliases:
            raise MirrorConfigError(
                f"--clusters names {alias}, but clusters has only: {', '.join(reader.aliases)}"
            )
    wanted = [each for each in reader.flows() if not targets or each.target in targets]
    flows = tuple(_with_opposite(flow, reader.flows()) for flow in wanted if flow["enabled"])
    beating = tuple(flow for flow in wanted if flow["emit.heartbeats.enabled"])
    if not flows:
        raise MirrorConfigError(
            "No flow is enabled; set source->target.enabled=true with two aliases of clusters: "
            + ", ".join(reader.aliases)
        )
    warnings = reader.warnings + check_loops(flows)
    return MirrorConfig(flows, beating, reader.aliases, tuple(warnings))


class _Reader:
    """Sorts properties by scope: all flows, one cluster, one flow."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.aliases = _aliases(properties)
        self.warnings: list[str] = []
        self._common: dict[str, str] = {}
        self._clusters: dict[str, dict[str, str]] = {alias: {} for alias in self.aliases}
        self._flows: dict[tuple[str, str], dict[str, str]] = {
            (source, target): {} for source in self.aliases for target in self.aliases if source != target
        }
        for name, value in properties.items():
            if name != "clusters" and not is_provider_setting(name):
                self._sort(name, value)
        for alias, settings in self._clusters.items():
            if not settings.get("bootstrap.servers") and "bootstrap.servers" not in self._common:
                raise MirrorConfigError(f"{alias}.bootstrap.servers is missing")

    def flows(self) -> list[Flow]:
        return [self._flow(*pair) for pair in self._flows]

    def _flow(self, source: str, target: str) -> Flow:
        own = self._flows[source, target]
        worker = {n: v for n, v in self._clusters[target].items() if n in WORKER_SETTINGS}
        given = {**self._common, **worker, **own}
        layers = [[self._common, self._clusters[alias], own] for alias in (source, target)]
        return Flow(
            source,
            target,
            {name: _parsed(name, given, f"{source}->{target}") for name in SETTINGS},
            _checked(source, client_properties(list(layers[0]), ("admin", "consumer"))),
            _checked(target, client_properties(list(layers[1]), ("admin", "producer"))),
        )

    def _sort(self, name: str, value: str) -> None:
        scope, rest = self._scope(name)
        self._check_name(name, rest, value, self._allowed(scope))
        scope[rest] = value

    def _scope(self, name: str) -> tuple[dict[str, str], str]:
        """Return where a setting belongs, and its name there."""
        head, arrow, tail = name.partition("->")
        if arrow:
            for (source, target), scope in self._flows.items():
                if head.strip() == source and tail.startswith(f"{target}."):
                    return scope, tail[len(target) + 1 :]
            raise MirrorConfigError(
                f"{name}: flows are written source->target.setting with two of the clusters "
                f"{', '.join(self.aliases)}"
            )
        for alias, scope in self._clusters.items():
            if name.startswith(f"{alias}."):
                return scope, name[len(alias) + 1 :]
        return self._common, name

    def _allowed(self, scope: dict[str, str]) -> Iterable[str]:
        if any(scope is cluster for cluster in self._clusters.values()):
            return WORKER_SETTINGS
        return SETTINGS

    def _check_name(self, full: str, name: str, value: str, allowed: Iterable[str]) -> None:
        if name in CONVERTERS or name.startswith(tuple(f"{each}." for each in CONVERTERS)):
            if name in CONVERTERS and value.rpartition(".")[2] != _BYTES:
                raise MirrorConfigError(f"{full}: records are copied as bytes; only {_BYTES} is supported")
            return
        if name in TRANSFORMATIONS or name.startswith(tuple(f"{each}." for each in TRANSFORMATIONS)):
            raise MirrorConfigError(f"{full}: records are copied as they are, without transformations")
        if name in allowed:
            return
        if name in WITHOUT_EFFECT or (is_client_setting(name) and unprefixed(name) in clients.WITHOUT_EFFECT):
            self.warnings.append(f"{full} has no effect")
        elif not is_client_setting(name):
            raise MirrorConfigError(_unknown(full, name, [*allowed, *clients.KNOWN], self.aliases))


def _aliases(properties: Mapping[str, str]) -> tuple[str, ...]:
    aliases = tuple(
        dict.fromkeys(a for each in properties.get("clusters", "").split(",") if (a := each.strip()))
    )
    if len(aliases) < 2:
        raise MirrorConfigError("clusters must name at least two clusters: clusters = us, eu")
    for alias in aliases:
        if "->" in alias or not all(letter.isalnum() or letter in "._-" for letter in alias):
            raise MirrorConfigError(f"clusters: {alias!r} may contain letters, digits, '.', '_' and '-' only")
    return aliases


def _unknown(full: str, name: str, known: list[str], aliases: Sequence[str]) -> str:
    first, _, rest = name.partition(".")
    near = get_close_matches(first, aliases, n=1, cutoff=0.5)
    if near and is_client_setting(rest):
        return f"Unknown setting {full}; did you mean {near[0]}.{rest}? clusters has {', '.join(aliases)}"
    near = get_close_matches(name, known, n=1, cutoff=0.75)
    if near:
        return f"Unknown setting {full}; did you mean {full[: len(full) - len(name)]}{near[0]}?"
    return f"Unknown setting {full}"


def _parsed(name: str, given: Mapping[str, str], flow: str) -> Any:
    setting = SETTINGS[name]
    text = given.get(name, setting.default)
    try:
        return setting.parse(text)
    except ValueError as error:
        raise MirrorConfigError(f"Invalid value {text!r} of {name} in {flow}: {error}") from error


def _checked(alias: str, properties: dict[str, str]) -> dict[str, str]:
    """Return the properties; raise if the addresses, timeouts or security settings are invalid."""
    try:
        ClientSettings.from_properties(properties)
    except KafkaError as error:
        raise MirrorConfigError(f"Cluster {alias}: {error}") from error
    for name, allowed in (
        ("isolation.level", ("read_committed", "read_uncommitted")),
        ("auto.offset.reset", ("earliest", "latest")),
    ):
        if properties.get(name, allowed[0]) not in allowed:
            raise MirrorConfigError(f"Cluster {alias}: {name} must be one of {', '.join(allowed)}")
    return properties


def _with_opposite(flow: Flow, flows: Iterable[Flow]) -> Flow:
    """Return the flow with the topics of the opposite flow, if both keep the names of topics."""
    _check_combinations(flow)
    for other in flows:
        opposite = (other.source, other.target) == (flow.target, flow.source)
        if opposite and other["enabled"] and other.policy.is_identity and flow.policy.is_identity:
            return replace(flow, opposite_topics=other.topics)
    return flow


def _check_combinations(flow: Flow) -> None:
    _ = flow.topics, flow.groups
    if flow.exactly_once and not flow.read_committed:
        raise MirrorConfigError(
            f"{flow}: exactly.once.source.support=enabled needs consumer.isolation.level=read_committed"
        )
    if flow["sync.group.offsets.enabled"] and not flow["emit.checkpoints.enabled"]:
        raise MirrorConfigError(f"{flow}: sync.group.offsets.enabled needs emit.checkpoints.enabled=true")
