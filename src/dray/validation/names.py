"""Name rules for validation: those of `dray.api.names`, memoised, and a few that only validation needs.

Each rule takes a text and returns what is wrong with it, as texts; an empty tuple means that it is fine. The same names
come again and again (a slice repeats its attribute names on every device), so the answers are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from dray.api import names
from dray.api.names import Messages
from dray.api.text_memory import remember_texts

Rule: TypeAlias = Callable[[str], Messages]

_KEPT: Final = 8192
_CONDITION_REASON: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*+(?<![,:]))?")
_ENVIRONMENT: Final = re.compile(r"[ -<>-~]++")
_PORT_NAME: Final = re.compile(r"(?=.*[a-z])(?!.*--)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_PORT_NAME_LENGTH: Final = 15
_HTTP_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]++")
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _memoised(rule: Rule) -> Rule:
    return remember_texts(_KEPT)(rule)


dns_label: Final = _memoised(names.validate_dns1123_label)
dns_1035_label: Final = _memoised(names.validate_dns1035_label)
dns_subdomain: Final = names.validate_dns1123_subdomain
"""Not memoised: most are names of new objects, which nobody has asked about before."""
path_segment: Final = _memoised(names.validate_path_segment_name)
path_segment_prefix: Final = _memoised(names.validate_path_segment_prefix)
label_key: Final = _memoised(names.validate_label_key)
label_value: Final = _memoised(names.validate_label_value)
c_identifier: Final = _memoised(names.validate_c_identifier)


def dns_subdomain_prefix(value: str) -> Messages:
    """What a generateName must be: a subdomain to which more letters can be appended."""
    return dns_subdomain(names.mask_trailing_dash(value))


def dns_label_prefix(value: str) -> Messages:
    """A DNS label to which more letters can be appended."""
    return dns_label(names.mask_trailing_dash(value))


def dns_1035_label_prefix(value: str) -> Messages:
    """A DNS label that starts with a letter, to which more letters can be appended."""
    return dns_1035_label(names.mask_trailing_dash(value))


def condition_reason(value: str) -> Messages:
    """The reason of a condition: one word, possibly with `_,:` inside."""
    if _CONDITION_REASON.fullmatch(value) is None:
        return ("must start with a letter, go on with letters, digits or '_,:' and end with a letter, digit or '_'",)
    return ()


@_memoised
def environment_name(value: str) -> Messages:
    """The name of an environment variable: printable ASCII without `=`."""
    return () if _ENVIRONMENT.fullmatch(value) else ("must be printable ASCII characters other than '='",)


@_memoised
def port_name(value: str) -> Messages:
    """The name of a port of a container, as IANA has them for services."""
    if len(value) > _PORT_NAME_LENGTH or _PORT_NAME.fullmatch(value) is None:
        return ("must be at most 15 lower case letters, digits and single '-', with at least one letter",)
    return ()


def domain_path(value: str) -> Messages:
    """A path with a domain in front, as in `example.com/a/b`."""
    domain, _, path = value.partition("/")
    if not domain or not path:
        return ('must be a domain-prefixed path (such as "acme.io/foo")',)
    wrong = () if _HTTP_PATH.fullmatch(path) else ("must be a path of letters, digits and /_-.~%!$&'()*+,;=:",)
    return (*dns_subdomain(domain), *wrong)


def uuid(value: str) -> Messages:
    """A UUID in its usual lower case form."""
    return () if _UUID.fullmatch(value) else ("must be a lower case UUID in 8-4-4-4-12 form",)


@_memoised
def extended_resource(value: str) -> Messages:
    """The name of an extended resource: `domain/name`, not Kubernetes' own, usable in a quota."""
    found: list[str] = []
    if "/" not in value:
        found.append("must have a domain in front, as in 'example.com/gpu'")
    elif "kubernetes.io/" in value:
        found.append("must not be in the domain kubernetes.io")
    if value.startswith("requests."):
        found.append("must not start with 'requests.'")
    found.extend(label_key(f"requests.{value}"))
    return tuple(found)
