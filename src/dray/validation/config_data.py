"""ConfigMap and Secret: keys, sizes, and what an immutable one forbids."""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from dray.api.binary import Base64
from dray.api.field import forbidden, invalid, required, too_long
from dray.api.generated.core import ConfigMap, Secret
from dray.api.times import Time
from dray.validation import check
from dray.validation.context import Context, Errors
from dray.validation.rules import Rules

MAX_BYTES: Final = 1024 * 1024
OPAQUE: Final = "Opaque"
ACCOUNT_TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT_ANNOTATION: Final = "kubernetes.io/service-account.name"
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]++")
_KEY_LENGTH: Final = 253

# Keys that secrets of a type must have.
REQUIRED_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def validate_key(errors: Errors, key: str, path: str) -> None:
    """A key that can also be the name of a file."""
    if len(key) > _KEY_LENGTH or _KEY.fullmatch(key) is None or key == "." or key.startswith(".."):
        errors.append(invalid(path, key, "must be letters, digits, '-', '_' and '.', not starting with '..'"))


def _validate_bytes(errors: Errors, values: dict[str, Base64], path: str) -> int:
    """How many bytes the values hold."""
    for key in values:
        validate_key(errors, key, f"{path}[{key}]")
    return sum(value.size for value in values.values())


def _check_config_map(errors: Errors, new: ConfigMap, old: ConfigMap | None, _ctx: Context) -> None:
    for key in new.data:
        validate_key(errors, key, f"data[{key}]")
        if key in new.binary_data:
            errors.append(invalid(f"data[{key}]", key, "must not be in binaryData too"))
    size = sum(len(value.encode()) for value in new.data.values())
    if size + _validate_bytes(errors, new.binary_data, "binaryData") > MAX_BYTES:
        errors.append(too_long("", MAX_BYTES))
    if old is not None and old.immutable:
        _check_immutable(errors, new.immutable)
        for field, now, before in (("data", new.data, old.data), ("binaryData", new.binary_data, old.binary_data)):
            if now != before:
                errors.append(forbidden(field, "the object is immutable"))


def _check_immutable(errors: Errors, immutable: bool | None) -> None:
    if not immutable:
        errors.append(forbidden("immutable", "an immutable object stays immutable"))


def _default_secret(obj: Secret, _now: Time) -> Secret:
    """`stringData` is for writing only: it goes into `data`."""
    if obj.string_data:
        encoded = {key: Base64.of(value.encode()) for key, value in obj.string_data.items()}
        obj = replace(obj, data={**obj.data, **encoded}, string_data={})
    return obj if obj.type else replace(obj, type=OPAQUE)


def _check_secret(errors: Errors, new: Secret, old: Secret | None, _ctx: Context) -> None:
    if _validate_bytes(errors, new.data, "data") > MAX_BYTES:
        errors.append(too_long("data", MAX_BYTES))
    for key in REQUIRED_KEYS.get(new.type, ()):
        if key not in new.data:
            errors.append(required(f"data[{key}]"))
    if new.type == "kubernetes.io/basic-auth" and not {"username", "password"} & new.data.keys():
        errors.append(required("data[username]"))
        errors.append(required("data[password]"))
    if new.type == ACCOUNT_TYPE and not new.metadata.annotations.get(ACCOUNT_ANNOTATION):
        errors.append(required(f"metadata.annotations[{ACCOUNT_ANNOTATION}]"))
    if old is None:
        return
    check.immutable(errors, "type", new.type, old.type)
    if old.immutable:
        _check_immutable(errors, new.immutable)
        if new.data != old.data:
            errors.append(forbidden("data", "the object is immutable"))


RULES: Final = {
    "ConfigMap": Rules(check=_check_config_map),
    "Secret": Rules(default=_default_secret, check=_check_secret),
}
