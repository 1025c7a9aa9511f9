"""The table of pages and actions: method, path, role, handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from moldau.console.login.roles import Role
from moldau.console.pages import (
    acls,
    brokers,
    connectors,
    groups,
    overview,
    pipelines,
    quotas,
    resets,
    schemas,
    sql,
    topic,
    topics,
    users,
)
from moldau.console.pages.messages import browsing, files, record, writing
from moldau.console.web.call import Call

Handler = Callable[[Call], Awaitable[Any]]


class Action(NamedTuple):
    """A page, or an action, with the role it needs.

    `audited`: the fields whose values are in the audit log; never passwords, contents of records, or values
    that may be secrets. `service`: it changes a service that knows no users of the cluster.
    """

    method: str
    path: str
    role: Role
    handler: Handler
    audited: tuple[str, ...] = ()
    service: bool = False


VIEWER, EDITOR, ADMIN = Role
_ACL: Final = ("principal", "permission", "operation", "resource_type", "pattern", "resource_name", "host")

ROUTES: Final[tuple[Action, ...]] = (
    Action("GET", "/", VIEWER, overview.overview),
    Action("GET", "/events", VIEWER, overview.events),
    Action("GET", "/topics", VIEWER, topics.topics),
    Action("POST", "/topics", EDITOR, topics.create_topic, ("name", "partitions", "replication", "settings")),
    Action("GET", "/topics/{topic}", VIEWER, browsing.messages),
    Action("GET", "/topics/{topic}/messages", VIEWER, browsing.messages),
    Action("POST", "/topics/{topic}/messages", EDITOR, writing.send, ("partition", "schema", "tombstone")),
    Action("GET", "/topics/{topic}/messages/search", VIEWER, browsing.search),
    Action("GET", "/topics/{topic}/messages/follow", VIEWER, browsing.follow),
    Action("GET", "/topics/{topic}/messages/export", VIEWER, files.export),
    Action("POST", "/topics/{topic}/messages/import", EDITOR, files.import_records),
    Action("GET", "/topics/{topic}/messages/{partition}/{offset}", VIEWER, record.message),
    Action("GET", "/topics/{topic}/partitions", VIEWER, topic.partitions),
    Action("POST", "/topics/{topic}/partitions", EDITOR, topics.add_partitions, ("count",)),
    Action("GET", "/topics/{topic}/configuration", VIEWER, topic.configuration),
    Action(
        "POST", "/topics/{topic}/configuration", EDITOR, topic.edit_configuration, ("name", "value", "reset")
    ),
    Action("GET", "/topics/{topic}/groups", VIEWER, topic.groups),
    Action("POST", "/topics/{topic}/delete", ADMIN, topics.delete_topic),
    Action("GET", "/groups", VIEWER, groups.groups),
    Action("GET", "/groups/{group}", VIEWER, groups.group),
    Action("POST", "/groups/{group}/delete", ADMIN, groups.delete_group),
    Action("POST", "/groups/{group}/reset", EDITOR, resets.reset, ("to", "offset", "time", "shift", "topic")),
    Action("POST", "/groups/{group}/reset/preview", VIEWER, resets.preview),
    Action("GET", "/brokers", VIEWER, brokers.brokers),
    Action("GET", "/brokers/{broker}", VIEWER, brokers.broker),
    Action("POST", "/brokers/{broker}", ADMIN, brokers.edit_broker, ("name", "reset")),
    Action("GET", "/acls", VIEWER, acls.acls),
    Action("POST", "/acls", ADMIN, acls.create_acl, _ACL),
    Action("POST", "/acls/delete", ADMIN, acls.delete_acl, _ACL),
    Action("GET", "/users", VIEWER, users.users),
    Action("POST", "/users", ADMIN, users.save_user, ("user", "mechanism", "iterations")),
    Action("POST", "/users/{user}/delete", ADMIN, users.delete_user),
    Action("GET", "/quotas", VIEWER, quotas.quotas),
    Action("POST", "/quotas", ADMIN, quotas.save_quota, ("user", "client-id", "ip", "key", "value")),
    Action("POST", "/quotas/delete", ADMIN, quotas.delete_quota, ("user", "client-id", "ip", "key")),
    Action("GET", "/schemas", VIEWER, schemas.schemas),
    Action("POST", "/schemas", EDITOR, schemas.register, ("subject", "type"), service=True),
    Action("GET", "/schemas/{subject}", VIEWER, schemas.schema),
    Action("POST", "/schemas/{subject}/check", VIEWER, schemas.check),
    Action(
        "POST",
        "/schemas/{subject}/compatibility",
        EDITOR,
        schemas.set_compatibility,
        ("level",),
        service=True,
    ),
    Action("POST", "/schemas/{subject}/delete", ADMIN, schemas.delete_subject, service=True),
    Action("GET", "/connectors", VIEWER, connectors.connectors),
    Action("POST", "/connectors", EDITOR, connectors.create, ("name", "class"), service=True),
    Action("GET", "/connector-plugins", VIEWER, connectors.plugin_form),
    Action("POST", "/connector-plugins/validate", EDITOR, connectors.validate, service=True),
    Action("GET", "/connectors/{connector}", VIEWER, connectors.connector),
    Action("POST", "/connectors/{connector}", EDITOR, connectors.configure, service=True),
    Action("POST", "/connectors/{connector}/delete", ADMIN, connectors.delete, service=True),
    Action("POST", "/connectors/{connector}/{action}", EDITOR, connectors.control, service=True),
    Action("GET", "/pipelines", VIEWER, pipelines.pipelines),
    Action("GET", "/pipelines/{pipeline}", VIEWER, pipelines.pipeline),
    Action("POST", "/pipelines/{pipeline}/stop", EDITOR, pipelines.stop_pipeline, service=True),
    Action("GET", "/sql", VIEWER, sql.sql),
    Action("POST", "/sql", EDITOR, sql.begin, ("statements",)),
    Action("GET", "/sql/{run}", EDITOR, sql.results),
)
