"""Whose share of something a user's doings are on."""

from __future__ import annotations

from typing import Final

SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"
_OF_CONTROL_PLANE: Final = f"{SERVICE_ACCOUNT_PREFIX}kube-system:"


def tenant(user: str) -> str:
    """All ServiceAccounts of a namespace are one: whoever may make one of them may make many.

    Those of the control plane are one each.
    """
    if not user.startswith(SERVICE_ACCOUNT_PREFIX) or user.startswith(_OF_CONTROL_PLANE):
        return user
    return user[: user.find(":", len(SERVICE_ACCOUNT_PREFIX))]
