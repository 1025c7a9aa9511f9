"""ACLs: list, add, remove."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.admin.acls import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from moldau.console.web.call import Call, CopyAs, Done, Page, not_found, paged
from moldau.console.web.commands import admin_script, curl, tool
from moldau.console.web.forms import Form, InvalidField, checked_number

_ALL: Final = AclBindingFilter()
PAGE_SIZE: Final = 200
_HIDDEN: Final = ("UNKNOWN", "ANY", "MATCH")


async def acls(call: Call) -> Page:
    query = call.query("q").strip().lower()
    disabled = None
    rows: list[dict[str, Any]] = []
    try:
        found = await call.view.shared.get("acls", lambda: call.admin.describe_acls(_ALL))
    except KafkaError as error:
        if error.code is not ErrorCode.SECURITY_DISABLED:
            raise
        disabled = "The cluster has no authorizer (authorizer.class.name): every client may do everything."
    else:
        rows = [_row(each) for each in found]
        rows = [each for each in rows if query in " ".join(each.values()).lower()]
        rows.sort(key=lambda row: (row["resource_type"], row["resource_name"], row["principal"]))
    number = checked_number(call.query("page", "1"), "Page", least=1, most=1_000_000)
    chosen, pages = paged(rows, number, PAGE_SIZE)
    data = {
        "acls": chosen,
        "total": len(rows),
        "page": min(number, pages),
        "pages": pages,
        "disabled": disabled,
    }
    extra = {
        "q": call.query("q"),
        "resource_types": _names(ResourceType),
        "patterns": _names(PatternType),
        "operations": _names(AclOperation),
        "permissions": _names(PermissionType),
    }
    copy = CopyAs(
        tool(call, "kafka-acls", "--list"),
        curl(call),
        admin_script(
            call,
            "print(admin.describe_acls(AclBindingFilter()))",
            imports=("from moldau.client.admin.acls import AclBindingFilter",),
        ),
    )
    return Page("acls", "ACLs", data, extra, copy)


async def create_acl(call: Call) -> Done:
    binding = _binding(await call.form())
    error = (await call.admin.create_acls([binding]))[binding]
    call.view.shared.clear()
    if error is not None:
        raise error
    return Done(f"The ACL for {binding.principal} is added.", call.url("acls"), status=201)


async def delete_acl(call: Call) -> Done:
    binding = _binding(await call.form())
    wanted = AclBindingFilter(*binding)
    found = (await call.admin.delete_acls([wanted]))[wanted]
    call.view.shared.clear()
    if isinstance(found, KafkaError):
        raise found
    if not found:
        raise not_found("This ACL")
    return Done(f"The ACL for {binding.principal} is removed.", call.url("acls"))


def _row(binding: AclBinding) -> dict[str, str]:
    return {
        "resource_type": binding.resource_type.name,
        "resource_name": binding.resource_name,
        "pattern": binding.pattern_type.name,
        "principal": binding.principal,
        "host": binding.host,
        "operation": binding.operation.name,
        "permission": binding.permission_type.name,
    }


def _binding(form: Form) -> AclBinding:
    principal = form.text("principal", "Principal")
    if ":" not in principal:
        raise InvalidField("Principal must be TYPE:NAME, such as User:alice.")
    return AclBinding(
        ResourceType[form.choice("resource_type", "Resource type", _names(ResourceType))],
        form.text("resource_name", "Resource name"),
        PatternType[form.choice("pattern", "Pattern", _names(PatternType))],
        principal,
        form.text("host") or "*",
        AclOperation[form.choice("operation", "Operation", _names(AclOperation))],
        PermissionType[form.choice("permission", "Permission", _names(PermissionType))],
    )


def _names(kind: type[IntEnum]) -> tuple[str, ...]:
    return tuple(each.name for each in kind if each.name not in _HIDDEN)
