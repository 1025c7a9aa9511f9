"""Every setting a broker or controller knows, by name; one module per theme.

`BROKER_CONFIGS` are the names of `server.properties`. `DYNAMIC_BROKER_CONFIGS` exist only while a cluster
runs: they are set with AlterConfigs and never in a file.
"""

from __future__ import annotations

from moldau.config.broker.definitions import (
    groups,
    log,
    network,
    node,
    observability,
    remote_log,
    replication,
    sasl,
    schema_validation,
    security,
    share_groups,
    transactions,
)
from moldau.config.definition import ConfigKey, UpdateMode, table

BROKER_CONFIGS: dict[str, ConfigKey] = table(
    node.CONFIGS,
    network.CONFIGS,
    log.CONFIGS,
    replication.CONFIGS,
    groups.CONFIGS,
    share_groups.CONFIGS,
    transactions.CONFIGS,
    remote_log.CONFIGS,
    security.CONFIGS,
    sasl.CONFIGS,
    schema_validation.CONFIGS,
    observability.CONFIGS,
)
DYNAMIC_BROKER_CONFIGS: dict[str, ConfigKey] = table(replication.DYNAMIC_CONFIGS)

#: Configs that may change while a broker runs.
CHANGEABLE = frozenset(
    [name for name, key in BROKER_CONFIGS.items() if key.update is not UpdateMode.READ_ONLY]
    + list(DYNAMIC_BROKER_CONFIGS)
)
#: Configs that may only change for one broker, never as a default of the cluster.
PER_BROKER_ONLY = frozenset(
    name for name, key in BROKER_CONFIGS.items() if key.update is UpdateMode.PER_BROKER
)
