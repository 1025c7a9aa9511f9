"""Errors of the registry, with Confluent's codes and messages, which clients match."""

from __future__ import annotations

from typing import Final

from moldau.http.errors import ApiError

INVALID_SCHEMA: Final = 42201


def subject_not_found(subject: str) -> ApiError:
    return ApiError(404, 40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> ApiError:
    return ApiError(404, 40402, f"Version {version} not found.")


def schema_not_found(key: int | str | None = None) -> ApiError:
    return ApiError(404, 40403, "Schema not found" if key is None else f"Schema {key} not found")


def subject_soft_deleted(subject: str) -> ApiError:
    message = f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
    return ApiError(404, 40404, message)


def subject_not_soft_deleted(subject: str) -> ApiError:
    message = f"Subject '{subject}' was not deleted first before being permanently deleted"
    return ApiError(404, 40405, message)


def version_soft_deleted(subject: str, version: int) -> ApiError:
    message = (
        f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
    )
    return ApiError(404, 40406, message)


def version_not_soft_deleted(subject: str, version: int) -> ApiError:
    message = f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    return ApiError(404, 40407, message)


def no_subject_config(subject: str) -> ApiError:
    return ApiError(404, 40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_subject_mode(subject: str) -> ApiError:
    return ApiError(404, 40409, f"Subject '{subject}' does not have subject-level mode configured")


def association_not_found(resource: str) -> ApiError:
    return ApiError(404, 40410, f"Association for '{resource}' not found.")


def incompatible(subject: str, findings: list[str]) -> ApiError:
    start = "Schema being registered is incompatible with an earlier schema for subject"
    return ApiError(409, 40901, f'{start} "{subject}", details: [{", ".join(findings)}]')


def association_exists(association_type: str, resource: str) -> ApiError:
    message = f"An association of type '{association_type}' already exists for resource '{resource}'"
    return ApiError(409, 40903, message)


def subject_associated(subject: str) -> ApiError:
    return ApiError(409, 40904, f"An association already exists for subject '{subject}'")


def subject_strongly_associated(subject: str) -> ApiError:
    return ApiError(409, 40905, f"A strong association already exists for subject '{subject}'")


def no_active_version(subject: str) -> ApiError:
    return ApiError(409, 40907, f"No active (non-deleted) version exists for subject '{subject}'")


def association_frozen(association_type: str, subject: str) -> ApiError:
    message = f"The association of type  '{association_type}' is frozen for subject '{subject}'"
    return ApiError(409, 40908, message)


def invalid_schema(message: str) -> ApiError:
    return ApiError(422, INVALID_SCHEMA, message)


def invalid_version(version: str) -> ApiError:
    allowed = 'Allowed values are between [1, 2^31-1] and the string "latest"'
    return ApiError(422, 42202, f"The specified version '{version}' is not a valid version id. {allowed}")


def invalid_compatibility() -> ApiError:
    levels = "none, backward, forward, full, backward_transitive, forward_transitive, and full_transitive"
    return ApiError(422, 42203, f"Invalid compatibility level. Valid values are {levels}")


def invalid_mode(
    message: str = "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, "
    "IMPORT, and FORWARD.",
) -> ApiError:
    return ApiError(422, 42204, message)


def not_permitted(message: str) -> ApiError:
    return ApiError(422, 42205, message)


def reference_exists(subject: str, version: int) -> ApiError:
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return ApiError(422, 42206, f"One or more references exist to the schema {key}.")


def subject_referenced(subject: str) -> ApiError:
    return ApiError(422, 42206, f"One or more references exist to the schema {subject}.")


def invalid_subject(subject: str) -> ApiError:
    return ApiError(422, 42208, f"The specified subject '{subject}' is not a valid.")


def schema_too_large() -> ApiError:
    return ApiError(422, 42209, "Register operation failed because schema is too large")


def invalid_rule_set(message: str) -> ApiError:
    return ApiError(422, 42210, message)


def context_not_empty(context: str) -> ApiError:
    return ApiError(422, 42211, f"The specified context '{context}' is not empty.")


def invalid_association(name: str, reason: str) -> ApiError:
    return ApiError(
        422, 42212, f"The association specified an invalid value for property: '{name}', detail: {reason}"
    )
