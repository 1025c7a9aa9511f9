"""The `uniform` assignor: equal numbers of partitions, and as few moves as possible."""

from __future__ import annotations

from moldau.groups.assignors.spec import Assignment, GroupSpec
from moldau.groups.assignors.uniform_heterogeneous import HeterogeneousAssignment
from moldau.groups.assignors.uniform_homogeneous import assign_homogeneous


def assign(spec: GroupSpec) -> dict[str, Assignment]:
    if not spec.members:
        return {}
    if spec.homogeneous:
        return assign_homogeneous(spec)
    return HeterogeneousAssignment(spec).build()
