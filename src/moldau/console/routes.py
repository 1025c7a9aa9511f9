"""The table of pages and actions: method, path, handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

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

ROUTES: Final[tuple[tuple[str, str, Handler], ...]] = (
    ("GET", "/", overview.overview),
    ("GET", "/events", overview.events),
    ("GET", "/topics", topics.topics),
    ("POST", "/topics", topics.create_topic),
    ("GET", "/topics/{topic}", browsing.messages),
    ("GET", "/topics/{topic}/messages", browsing.messages),
    ("POST", "/topics/{topic}/messages", writing.send),
    ("GET", "/topics/{topic}/messages/search", browsing.search),
    ("GET", "/topics/{topic}/messages/follow", browsing.follow),
    ("GET", "/topics/{topic}/messages/export", files.export),
    ("POST", "/topics/{topic}/messages/import", files.import_records),
    ("GET", "/topics/{topic}/messages/{partition}/{offset}", record.message),
    ("GET", "/topics/{topic}/partitions", topic.partitions),
    ("POST", "/topics/{topic}/partitions", topics.add_partitions),
    ("GET", "/topics/{topic}/configuration", topic.configuration),
    ("POST", "/topics/{topic}/configuration", topic.edit_configuration),
    ("GET", "/topics/{topic}/groups", topic.groups),
    ("POST", "/topics/{topic}/delete", topics.delete_topic),
    ("GET", "/groups", groups.groups),
    ("GET", "/groups/{group}", groups.group),
    ("POST", "/groups/{group}/delete", groups.delete_group),
    ("POST", "/groups/{group}/reset", resets.reset),
    ("POST", "/groups/{group}/reset/preview", resets.preview),
    ("GET", "/brokers", brokers.brokers),
    ("GET", "/brokers/{broker}", brokers.broker),
    ("POST", "/brokers/{broker}", brokers.edit_broker),
    ("GET", "/acls", acls.acls),
    ("POST", "/acls", acls.create_acl),
    ("POST", "/acls/delete", acls.delete_acl),
    ("GET", "/users", users.users),
    ("POST", "/users", users.save_user),
    ("POST", "/users/{user}/delete", users.delete_user),
    ("GET", "/quotas", quotas.quotas),
    ("POST", "/quotas", quotas.save_quota),
    ("POST", "/quotas/delete", quotas.delete_quota),
    ("GET", "/schemas", schemas.schemas),
    ("POST", "/schemas", schemas.register),
    ("GET", "/schemas/{subject}", schemas.schema),
    ("POST", "/schemas/{subject}/check", schemas.check),
    ("POST", "/schemas/{subject}/compatibility", schemas.set_compatibility),
    ("POST", "/schemas/{subject}/delete", schemas.delete_subject),
    ("GET", "/connectors", connectors.connectors),
    ("POST", "/connectors", connectors.create),
    ("GET", "/connectors/plugin", connectors.plugin_form),
    ("POST", "/connectors/validate", connectors.validate),
    ("GET", "/connectors/{connector}", connectors.connector),
    ("POST", "/connectors/{connector}", connectors.configure),
    ("POST", "/connectors/{connector}/delete", connectors.delete),
    ("POST", "/connectors/{connector}/{action}", connectors.control),
    ("GET", "/pipelines", pipelines.pipelines),
    ("GET", "/pipelines/{pipeline}", pipelines.pipeline),
    ("POST", "/pipelines/{pipeline}/stop", pipelines.stop_pipeline),
    ("GET", "/sql", sql.sql),
    ("POST", "/sql", sql.begin),
    ("GET", "/sql/{run}", sql.results),
)

#: Actions that change nothing, so that a read-only console offers them.
HARMLESS: Final[frozenset[Handler]] = frozenset({resets.preview, schemas.check, connectors.validate})
