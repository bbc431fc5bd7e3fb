"""How a pod finds names: its DNS policy and what it adds to it."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from dray.api.field import invalid, required
from dray.api.generated.core import PodDNSConfig, PodSpec
from dray.validation import check
from dray.validation.context import Errors

POLICIES: Final = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
NAMESERVERS: Final = 3
SEARCHES: Final = 32
SEARCH_LETTERS: Final = 2048
_PART: Final = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH: Final = re.compile(rf"{_PART}(\.{_PART})*")
_SEARCH_LENGTH: Final = 253


def validate_dns(errors: Errors, spec: PodSpec, path: str) -> None:
    """The policy, and servers for the one that has none of its own."""
    check.required_one_of(errors, f"{path}.dnsPolicy", spec.dns_policy, POLICIES)
    config = spec.dns_config
    if spec.dns_policy == "None" and config is None:
        errors.append(required(f"{path}.dnsConfig", "needed with dnsPolicy None"))
    elif spec.dns_policy == "None" and config is not None and not config.nameservers:
        errors.append(required(f"{path}.dnsConfig.nameservers", "needed with dnsPolicy None"))
    if config is not None:
        _validate_config(errors, config, f"{path}.dnsConfig")


def _validate_config(errors: Errors, config: PodDNSConfig, path: str) -> None:
    if len(config.nameservers) > NAMESERVERS:
        errors.append(invalid(f"{path}.nameservers", config.nameservers, f"must have at most {NAMESERVERS} entries"))
    for index, server in enumerate(config.nameservers):
        if not is_address(server):
            errors.append(invalid(f"{path}.nameservers[{index}]", server, "must be an IP address"))
    if len(config.searches) > SEARCHES:
        errors.append(invalid(f"{path}.searches", config.searches, f"must have at most {SEARCHES} entries"))
    if len(" ".join(config.searches)) > SEARCH_LETTERS:
        errors.append(invalid(f"{path}.searches", config.searches, f"must have at most {SEARCH_LETTERS} letters"))
    for index, search in enumerate(config.searches):
        name = search.removesuffix(".")
        if search != "." and (len(name) > _SEARCH_LENGTH or _SEARCH.fullmatch(name) is None):
            errors.append(invalid(f"{path}.searches[{index}]", search, "must be a domain such as example.com"))
    for index, option in enumerate(config.options):
        if not option.name:
            errors.append(required(f"{path}.options[{index}]", "must have a name"))


def is_address(text: str) -> bool:
    """Whether a text is an IP address."""
    try:
        return ipaddress.ip_address(text) is not None
    except ValueError:
        return False
