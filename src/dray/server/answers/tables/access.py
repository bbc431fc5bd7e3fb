"""Columns for who may do what: bindings of roles, requests for certificates."""

from __future__ import annotations

from typing import Any

from dray.server.answers.tables.columns import AGE, NAME, NONE, Column, human_duration, text


def _subjects(kind: str) -> Any:
    def read(binding: Any) -> str:
        found = [subject for subject in binding.subjects if subject.kind == kind]
        return ", ".join(f"{each.namespace}/{each.name}" if each.namespace else each.name for each in found)

    return read


def _condition(request: Any) -> str:
    decided = [condition.type for condition in request.status.conditions if condition.type != "Failed"]
    words = decided[-1:] or ["Pending"]
    words += ["Failed"] if any(condition.type == "Failed" for condition in request.status.conditions) else []
    return ",".join([*words, "Issued"] if request.status.certificate else words)


def _requested(request: Any) -> str:
    seconds = request.spec.expiration_seconds
    return NONE if seconds is None else human_duration(seconds)


_BINDING = (
    NAME,
    text("Role", lambda b: f"{b.role_ref.kind}/{b.role_ref.name}", description="What its subjects may do."),
    AGE,
    text("Users", _subjects("User"), wide=True, description="Users that have the role."),
    text("Groups", _subjects("Group"), wide=True, description="Groups that have the role."),
    text("ServiceAccounts", _subjects("ServiceAccount"), wide=True, description="Service accounts that have the role."),
)

COLUMNS: dict[str, tuple[Column, ...]] = {
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "CertificateSigningRequest": (
        NAME,
        AGE,
        text("SignerName", lambda r: r.spec.signer_name or NONE, description="Who is to sign."),
        text("Requestor", lambda r: r.spec.username, description="Who asked."),
        text("RequestedDuration", _requested, description="For how long."),
        text("Condition", _condition, description="What was decided, and whether it was signed."),
    ),
    "ClusterTrustBundle": (
        NAME,
        text("SignerName", lambda b: b.spec.signer_name or NONE, description="Whose certificates it vouches for."),
    ),
    "PodCertificateRequest": (
        NAME,
        text("PodName", lambda r: r.spec.pod_name, description="The pod that it is for."),
        text("ServiceAccountName", lambda r: r.spec.service_account_name, description="As whom the pod acts."),
        text("NodeName", lambda r: r.spec.node_name, description="Where the pod runs."),
        text("SignerName", lambda r: r.spec.signer_name, description="Who is to sign."),
        text(
            "State", lambda r: r.status.conditions[-1].type if r.status.conditions else "Pending", description="State."
        ),
    ),
}
