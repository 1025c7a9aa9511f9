"""The chain of a connector: its transformations in order, each with its predicate.

`transforms=a,b` names the steps, `transforms.a.type` their classes, and `transforms.a.predicate` (inverted by
`transforms.a.negate`) a predicate of `predicates=p`, `predicates.p.type`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.pipelines.connect.config.definition import ConfigType, parse_type
from moldau.pipelines.connect.data.errors import ConfigError
from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.transforms.catalog import PREDICATES, TRANSFORMATIONS
from moldau.pipelines.connect.transforms.interface import Predicate, Transformation

_OWN_SETTINGS = frozenset({"type", "predicate", "negate"})


@dataclass(frozen=True, slots=True)
class Stage:
    """One transformation, applied to the records that its predicate selects."""

    java_class: str
    transformation: Transformation
    predicate: Predicate | None = None
    negate: bool = False

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if self.predicate is None or self.predicate.test(record) is not self.negate:
            return self.transformation.apply(record)
        return record


@dataclass(frozen=True, slots=True)
class TransformationChain:
    stages: tuple[Stage, ...]

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the record after all steps, or None if one has dropped it."""
        current: ConnectRecord | None = record
        for stage in self.stages:
            if current is None:
                break
            current = stage.apply(current)
        return current

    def close(self) -> None:
        for stage in self.stages:
            stage.transformation.close()
            if stage.predicate is not None:
                stage.predicate.close()


def chain_of(
    config: Mapping[str, Any],
    transformations: Mapping[str, Callable[[], Transformation]] = TRANSFORMATIONS,
    predicates: Mapping[str, Callable[[], Predicate]] = PREDICATES,
) -> TransformationChain:
    """Build the chain of a connector's configuration; ConfigError names the setting that is wrong."""
    tests = {
        alias: _configured(config, "predicates", alias, predicates)
        for alias in _aliases(config, "predicates")
    }
    stages = (
        _stage(config, alias, _configured(config, "transforms", alias, transformations), tests)
        for alias in _aliases(config, "transforms")
    )
    return TransformationChain(tuple(stages))


def _aliases(config: Mapping[str, Any], setting: str) -> list[str]:
    aliases = parse_type(setting, config.get(setting), ConfigType.LIST) or []
    if len(set(aliases)) != len(aliases):
        raise ConfigError.invalid(setting, aliases, "Duplicate alias provided.")
    return list(aliases)


def _stage(
    config: Mapping[str, Any], alias: str, transformation: Transformation, predicates: Mapping[str, Predicate]
) -> Stage:
    prefix = f"transforms.{alias}."
    name = config.get(f"{prefix}predicate")
    negate = parse_type(f"{prefix}negate", config.get(f"{prefix}negate", False), ConfigType.BOOLEAN)
    if name is not None and name not in predicates:
        raise ConfigError.invalid(f"{prefix}predicate", name, "No such predicate in the setting predicates")
    if name is None and f"{prefix}negate" in config:
        raise ConfigError(f"{prefix}negate has no effect without {prefix}predicate")
    predicate = None if name is None else predicates[name]
    return Stage(str(config[f"{prefix}type"]), transformation, predicate, bool(negate))


def _configured(
    config: Mapping[str, Any], kind: str, alias: str, known: Mapping[str, Callable[[], Any]]
) -> Any:
    """Create the plugin of an alias and give it the settings below its prefix."""
    prefix = f"{kind}.{alias}."
    name = config.get(f"{prefix}type")
    if name is None:
        raise ConfigError(f'Missing required configuration "{prefix}type" which has no default value.')
    if name not in known:
        raise ConfigError.invalid(f"{prefix}type", name, f"Class {name} could not be found.")
    plugin = known[name]()
    skipped = len(prefix)
    own = {key[skipped:]: value for key, value in config.items() if key.startswith(prefix)}
    plugin.configure({key: value for key, value in own.items() if key not in _OWN_SETTINGS})
    return plugin
