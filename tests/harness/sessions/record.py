"""Record a session: `python -m tests.harness.sessions.record NAME --about TEXT -- COMMAND ...`.

A new broker is started behind a proxy, and the command is run with `{}` in its arguments replaced by the
proxy's address; several commands are separated by `--`. It is stored in `tests/data/sessions/NAME`, where
`tests/integration/clients/test_recorded_sessions.py` finds it. The broker is Apache Kafka
(`KAFKA_LIBS`), or Moldau
with `--broker moldau`. Without arguments all stored sessions are recorded again.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster, free_port, java_command, kafka_libs
from tests.harness.sessions.sessions import FOLDER, SUFFIX, Event, RecordingProxy, Session

ADDRESS = "{}"
#: The standard input of commands.
LINES = "".join(f"key-{n}:value {n}\n" for n in range(50)).encode()


def record(name: str, client: str, commands: Sequence[Sequence[str]], broker: str = "apache") -> None:
    port = free_port()
    config = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    node = ApacheCluster(config=config) if broker == "apache" else Cluster(config=config)
    with node:
        events = asyncio.run(_record(port, node.port, commands))
    about = {"client": client, "broker": broker, "commands": [_shown(command) for command in commands]}
    Session(about, events).write(FOLDER / f"{name}{SUFFIX}")


def _shown(command: Sequence[str]) -> str:
    """Return the command without machine-specific paths."""
    words = list(command)
    if "-cp" in words:
        words = ["java", *words[words.index("-cp") + 2 :]]
    return " ".join([Path(words[0]).name, *words[1:]])


async def _record(port: int, broker_port: int, commands: Sequence[Sequence[str]]) -> list[Event]:
    async with RecordingProxy(port, broker_port) as proxy:
        for command in commands:
            words = [word.replace(ADDRESS, f"127.0.0.1:{port}") for word in command]
            process = await asyncio.create_subprocess_exec(
                *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            output, errors = await asyncio.wait_for(process.communicate(LINES), 120)
            if process.returncode:
                raise SystemExit(f"{words} failed: {(output + errors).decode(errors='replace')[-3000:]}")
        return proxy.events


def kcat_commands() -> Iterator[list[str]]:
    for codec in ("none", "gzip", "snappy", "lz4"):
        topic = f"kcat-{codec}"
        yield ["kcat", "-b", ADDRESS, "-P", "-t", topic, "-p", "0", "-z", codec, "-K:"]
        yield ["kcat", "-b", ADDRESS, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e"]
    yield ["kcat", "-b", ADDRESS, "-P", "-t", "kcat-none", "-p", "0", "-X", "enable.idempotence=true"]
    yield ["kcat", "-b", ADDRESS, "-L"]
    yield ["kcat", "-b", ADDRESS, "-Q", "-t", "kcat-none:0:-1", "-t", "kcat-none:0:-2"]


def java_commands() -> Iterator[list[str]]:
    def tool(main: str, *arguments: str) -> list[str]:
        return java_command(kafka_libs(), main, "--bootstrap-server", ADDRESS, *arguments)

    topics, configs = "org.apache.kafka.tools.TopicCommand", "kafka.admin.ConfigCommand"
    topic = ["--topic", "orders"]
    yield tool(topics, "--create", *topic, "--partitions", "2", "--config", "retention.ms=-1")
    yield tool(topics, "--describe")
    keyed = ["--property", "parse.key=true", "--property", "key.separator=:"]
    for codec in ("none", "zstd", "lz4"):
        yield tool("org.apache.kafka.tools.ConsoleProducer", *topic, *keyed, "--compression-codec", codec)
    for partition in ("0", "1"):
        reading = [*topic, "--partition", partition, "--offset", "earliest", "--timeout-ms", "2000"]
        yield tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *reading)
    entity = ["--entity-type", "topics", "--entity-name", "orders"]
    yield tool(configs, "--alter", *entity, "--add-config", "flush.ms=1000")
    yield tool(configs, "--describe", *entity)
    yield tool("org.apache.kafka.tools.GetOffsetShell", *topic)
    yield tool(topics, "--alter", *topic, "--partitions", "3")
    yield tool(topics, "--delete", *topic)


def go_commands() -> Iterator[list[str]]:
    from tests.interop.clients.test_franz_go import program

    checks = [
        "nulls-and-empties",
        "codec-zstd",
        "log-append-time",
        "create-describe-delete",
        "refused-topics",
    ]
    checks += [
        "add-partitions",
        "configs",
        "delete-records",
        "offsets-by-time",
        "inside-a-batch",
        "producers",
    ]
    yield [str(program()), ADDRESS, *checks]


def kept() -> Iterator[tuple[str, str, list[list[str]]]]:
    """Return name, client with version, and commands of the stored sessions."""
    said = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True).stdout
    version = next(line for line in said.splitlines() if "Version" in line)
    yield "kcat", f"kcat {version.strip()}", list(kcat_commands())
    yield "java", "Apache Kafka's Java client and tools 4.3.0", list(java_commands())
    module = (Path(__file__).parents[2] / "interop" / "go" / "go.mod").read_text()
    versions = [line.split("//")[0].strip() for line in module.splitlines() if "twmb/" in line]
    yield "franz-go", ", ".join(versions), list(go_commands())


def main(arguments: list[str]) -> None:
    if not arguments:
        for name, client, commands in kept():
            record(name, client, commands)
        return
    words, *commands = _split(arguments)
    parser = argparse.ArgumentParser(prog="python -m tests.harness.sessions.record", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--about", help="the client's name and version", required=True)
    parser.add_argument("--broker", choices=("apache", "moldau"), default="apache")
    given = parser.parse_args(words)
    record(given.name, given.about, commands, given.broker)


def _split(arguments: list[str]) -> list[list[str]]:
    """Split arguments at `--`."""
    parts: list[list[str]] = [[]]
    for word in arguments:
        if word == "--":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


if __name__ == "__main__":
    main(sys.argv[1:])
