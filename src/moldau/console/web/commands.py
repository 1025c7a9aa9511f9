"""What "copy as" offers: Kafka's tools, curl and Python, with the values of the page quoted for each."""

from __future__ import annotations

import shlex
from typing import Any

from moldau.console.settings import Login
from moldau.console.web.call import Call


def tool(call: Call, name: str, *arguments: str) -> str:
    """Return a command of Kafka's tools."""
    first, *rest = arguments or ("",)
    command = [name]
    if first and not first.startswith("-"):
        command.append(first)
    elif first:
        rest = [first, *rest]
    command += ["--bootstrap-server", _servers(call)]
    if call.view.settings.security.protocol != "PLAINTEXT":
        command += ["--command-config", "client.properties"]
    return " ".join([shlex.quote(each) for each in [*command, *rest]])


def start_command(call: Call, option: str, value: str = "", setting: str = "") -> str:
    """Return the command that starts the console with an option; of a further cluster, with its setting."""
    if call.base and setting:
        return tool(call, "moldau", "console", "--set", f"cluster.{call.view.name}.{setting}={value}")
    return tool(call, "moldau", "console", option, *([value] if value else []))


def curl(call: Call, path: str | None = None, **fields: Any) -> str:
    """Return the curl line of this page, or of an action with its fields."""
    target = page_url(call, path)
    parts = ["curl", "-H", "Accept: application/json"]
    for name, value in fields.items():
        parts += ["--data-urlencode", f"{name}={value}"]
    return " ".join(shlex.quote(each) for each in [*parts, target])


def page_url(call: Call, path: str | None = None) -> str:
    """Return the URL of this page, or of a path of the console."""
    url = call.request.url
    return f"{url.scheme}://{url.netloc}{call.here if path is None else path}"


def json_script(url: str) -> str:
    """Return a Python script that prints the JSON of a URL."""
    return "\n".join(
        [
            "import json",
            "from urllib.request import Request, urlopen",
            "",
            f'request = Request({url!r}, headers={{"Accept": "application/json"}})',
            "with urlopen(request) as answer:",
            "    print(json.load(answer))",
        ]
    )


def sql_script(call: Call, statements: str) -> str:
    configuration = _configuration(call)
    config = f", config={configuration}" if configuration.startswith("{") else ""
    return "\n".join(
        [
            "from moldau import pipelines",
            "from moldau.pipelines.sql import Rows, SqlEngine",
            "",
            f'with SqlEngine(pipelines.session(), "{_servers(call)}"{config}) as sql:',
            f"    for result in sql.execute({statements!r}):",
            "        print(list(result.rows) if isinstance(result, Rows) else result.text)",
        ]
    )


def registry_script(url: str, expression: str) -> str:
    return "\n".join(
        [
            "from moldau.client.registry import RegistryClient",
            "",
            f"with RegistryClient({url!r}) as registry:",
            f"    print({expression})",
        ]
    )


def admin_script(call: Call, *lines: str, imports: tuple[str, ...] = ()) -> str:
    """Return a Python script with an admin client."""
    return "\n".join(
        [
            "from moldau.client.admin import AdminClient",
            *imports,
            "",
            f"with AdminClient({_configuration(call)}) as admin:",
            *(f"    {line}" for line in lines),
        ]
    )


def group_script(call: Call, module: str, function: str, group: str) -> str:
    """Return a Python script that calls a function of the client with a cluster and a group."""
    return "\n".join(
        [
            "import asyncio",
            "",
            "from moldau.client import AsyncAdminClient",
            f"from {module} import {function}",
            "",
            "",
            "async def main() -> None:",
            f"    async with AsyncAdminClient({_configuration(call)}) as admin:",
            f"        print(await {function}(admin.cluster, {group!r}))",
            "",
            "",
            "asyncio.run(main())",
        ]
    )


def records_script(call: Call, topic: str, partitions: str, limit: int, *seek: str) -> str:
    """Return a Python script that reads records without a group; `partitions` is an expression."""
    configuration = _configuration(call)
    given = configuration if configuration.startswith("{") else f'{{"bootstrap.servers": {configuration}}}'
    return "\n".join(
        [
            "from itertools import islice",
            "",
            "from moldau.client import Consumer, TopicPartition",
            "",
            f"with Consumer({given}) as consumer:",
            f"    partitions = [TopicPartition({topic!r}, number) for number in {partitions}]",
            "    consumer.assign(partitions)",
            *(f"    {line}" for line in seek),
            f"    for record in islice(consumer, {limit}):",
            "        print(record.partition, record.offset, record.key, record.value)",
        ]
    )


def _configuration(call: Call) -> str:
    security = call.view.settings.security
    if security.protocol == "PLAINTEXT":
        return f'"{_servers(call)}"'
    return repr(
        {
            "bootstrap.servers": _servers(call),
            "security.protocol": security.protocol,
            "sasl.mechanism": security.mechanism,
            "sasl.username": (call.settings.login is Login.SCRAM and call.user) or "USER",
            "sasl.password": "PASSWORD",
        }
    )


def _servers(call: Call) -> str:
    return ",".join(map(str, call.view.settings.bootstrap))
