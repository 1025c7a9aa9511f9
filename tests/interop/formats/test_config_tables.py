"""The config tables and the parser of properties files, compared with Kafka's classes."""

from __future__ import annotations

import base64
import random
from collections import defaultdict

import pytest

from moldau.config.broker.definitions import BROKER_CONFIGS, DYNAMIC_BROKER_CONFIGS, observability
from moldau.config.client_metrics import CLIENT_METRICS_CONFIGS
from moldau.config.definition import ConfigKey, Required
from moldau.config.group import GROUP_CONFIG_SYNONYMS, GROUP_CONFIGS
from moldau.config.properties import PropertiesError, format_properties, parse_properties
from moldau.config.topic import TOPIC_CONFIG_SYNONYMS, TOPIC_CONFIGS
from tests.interop.java_oracle import ask_java

pytestmark = pytest.mark.interop

TABLES = {
    "broker": BROKER_CONFIGS,
    "dynamic": DYNAMIC_BROKER_CONFIGS,
    "topic": TOPIC_CONFIGS,
    "group": GROUP_CONFIGS,
    "client-metrics": CLIENT_METRICS_CONFIGS,
}
#: Configs that Apache Kafka does not have.
OURS = {key.name for key in observability.CONFIGS}


def row(key: ConfigKey) -> list[str]:
    text = key.default_text
    default = "(required)" if isinstance(key.default, Required) else "null" if text is None else f"={text}"
    allowed = "" if key.valid is None else str(key.valid)
    return [key.name, key.type.name, default, allowed, str(key.internal).lower(), key.update.value]


def test_config_tables_equal_kafkas() -> None:
    theirs = defaultdict(list)
    for table, *fields in ask_java("ConfigTables"):
        theirs[table].append(fields)
    for table, keys in TABLES.items():
        shared = [
            key for key in keys.values() if key.name not in OURS and not key.name.startswith("confluent.")
        ]
        assert [row(key) for key in shared] == theirs[table], table
    synonyms = sorted([name, each.name] for name, names in TOPIC_CONFIG_SYNONYMS.items() for each in names)
    assert synonyms == sorted(theirs["topic-synonym"])
    assert sorted(map(list, GROUP_CONFIG_SYNONYMS.items())) == sorted(theirs["group-synonym"])


def random_file(rng: random.Random) -> bytes:
    pieces = ["a", "b.c", "é", "=", ":", " ", "\t", "\f", "\\", "\n", "\r\n", "#", "!", "\\u00e9", "\\t", "x"]
    # Java sometimes reads a lone backslash at the end of a file as an empty key; Moldau ignores it.
    return ("".join(rng.choices(pieces, k=rng.randrange(1, 40))) + "\nend=1").encode("latin-1")


def readable(data: bytes) -> bool:
    try:
        parse_properties(data.decode("latin-1"))
    except PropertiesError:
        return False
    return True


def test_properties_files_are_parsed_like_java() -> None:
    rng = random.Random(4)
    files = [data for data in (random_file(rng) for _ in range(3000)) if readable(data)]
    files.append(format_properties({"é😀": " a=b", "x y": "#\\"}, "c", 0).encode("ascii"))
    answers = ask_java("JavaProperties", (base64.b64encode(data).decode() for data in files))
    assert len(answers) == len(files)
    for data, (_, answer) in zip(files, answers, strict=True):
        theirs = {decoded(key): decoded(value) for key, value in (pair.split("=") for pair in answer.split())}
        assert parse_properties(data.decode("latin-1")) == theirs, data


def decoded(text: str) -> str:
    return base64.urlsafe_b64decode(text + "==").decode()
