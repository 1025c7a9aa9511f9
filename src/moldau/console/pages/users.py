"""Users with SCRAM credentials: list, add or change, delete."""

from __future__ import annotations

from typing import Any, Final

from moldau.base.errors import KafkaError
from moldau.client.admin.scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from moldau.console.web.call import Call, CopyAs, Done, Page, not_found
from moldau.console.web.commands import admin_script, curl, tool
from moldau.console.web.forms import confirm_name

_ITERATIONS: Final = 4096
_MECHANISMS: Final = tuple(each.mechanism_name for each in ScramMechanism)


async def users(call: Call) -> Page:
    found = await call.view.shared.get("users", call.admin.describe_user_scram_credentials)
    rows: list[dict[str, Any]] = [
        {
            "user": name,
            "mechanisms": []
            if isinstance(each, KafkaError)
            else [
                {"mechanism": info.mechanism.mechanism_name, "iterations": info.iterations}
                for info in each.credential_infos
            ],
        }
        for name, each in sorted(found.items())
    ]
    copy = CopyAs(
        tool(call, "kafka-configs", "--describe", "--entity-type", "users"),
        curl(call),
        admin_script(call, "print(admin.describe_user_scram_credentials())"),
    )
    return Page("users", "Users", {"users": rows}, {"mechanisms": _MECHANISMS}, copy)


async def save_user(call: Call) -> Done:
    form = await call.form()
    user = form.text("user", "User")
    mechanism = ScramMechanism.from_mechanism_name(form.choice("mechanism", "Mechanism", _MECHANISMS))
    iterations = form.number("iterations", "Iterations", least=4096, most=16_384, default=_ITERATIONS)
    info = ScramCredentialInfo(mechanism, iterations)
    await _alter(call, UserScramCredentialUpsertion(user, info, form.get("password", "")))
    return Done(f"User {user} is saved.", call.url("users"), status=201)


async def delete_user(call: Call) -> Done:
    user = call.path("user")
    confirm_name(await call.form(), "user", user)
    found = (await call.admin.describe_user_scram_credentials([user])).get(user)
    if found is None:
        raise not_found(f"User {user}")
    if isinstance(found, KafkaError):
        raise found
    for info in found.credential_infos:
        await _alter(call, UserScramCredentialDeletion(user, info.mechanism))
    return Done(f"User {user} is deleted.", call.url("users"))


async def _alter(call: Call, alteration: UserScramCredentialAlteration) -> None:
    error = (await call.admin.alter_user_scram_credentials([alteration]))[alteration.user]
    call.view.shared.clear()
    if error is not None:
        raise error
