"""MutatingWebhookConfiguration and ValidatingWebhookConfiguration: where webhooks are, and what they hear of."""

from __future__ import annotations

from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from msgspec.structs import replace

from dray.api.field import duplicate, invalid, required
from dray.api.generated.admissionregistration import (
    MutatingWebhook,
    MutatingWebhookConfiguration,
    ServiceReference,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from dray.api.meta import LabelSelector
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.admission_rules import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    default_rules,
    validate_choice,
    validate_conditions,
    validate_rule,
)
from dray.validation.context import Context, Errors
from dray.validation.label_selectors import validate_label_selector
from dray.validation.rules import Rules

SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
"""What new webhooks may have; those that are stored may still have others."""
ANY_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
REVIEW_VERSIONS: Final = ("v1", "v1beta1")
HTTPS: Final = 443
MOST_SECONDS: Final = 30
_FORM: Final = "; desired format: https://host[/path]"

Webhook = TypeVar("Webhook", MutatingWebhook, ValidatingWebhook)
Configuration = TypeVar("Configuration", MutatingWebhookConfiguration, ValidatingWebhookConfiguration)


def _default(obj: Configuration, _now: Time) -> Configuration:
    return replace(obj, webhooks=tuple(_default_webhook(webhook) for webhook in obj.webhooks))


def _default_webhook(webhook: Webhook) -> Webhook:
    changes: dict[str, Any] = {
        "failure_policy": webhook.failure_policy or "Fail",
        "match_policy": webhook.match_policy or "Equivalent",
        "namespace_selector": webhook.namespace_selector or LabelSelector(),
        "object_selector": webhook.object_selector or LabelSelector(),
        "timeout_seconds": 10 if webhook.timeout_seconds is None else webhook.timeout_seconds,
        "rules": default_rules(webhook.rules),
    }
    service = webhook.client_config.service
    if service is not None and service.port is None:
        changes["client_config"] = replace(webhook.client_config, service=replace(service, port=HTTPS))
    if isinstance(webhook, MutatingWebhook):
        changes["reinvocation_policy"] = webhook.reinvocation_policy or "Never"
    return replace(webhook, **changes)


def _check(errors: Errors, new: Configuration, old: Configuration | None, _ctx: Context) -> None:
    before: tuple[Any, ...] = () if old is None else old.webhooks
    had_effects = any(webhook.side_effects not in SIDE_EFFECTS for webhook in before)
    had_versions = all(_is_recognized(webhook.admission_review_versions) for webhook in before)
    same_conditions = [each.match_conditions for each in new.webhooks] == [each.match_conditions for each in before]
    had_own_names = len({webhook.name for webhook in before}) == len(before)
    seen: set[str] = set()
    for index, webhook in enumerate(new.webhooks):
        path = f"webhooks[{index}]"
        _check_webhook(errors, webhook, path, ANY_SIDE_EFFECTS if had_effects else SIDE_EFFECTS)
        if old is None or not same_conditions:
            validate_conditions(errors, webhook.match_conditions, f"{path}.matchConditions")
        _check_versions(errors, webhook.admission_review_versions, f"{path}.admissionReviewVersions", had_versions)
        if webhook.name and webhook.name in seen and had_own_names:
            errors.append(duplicate(f"{path}.name", webhook.name))
        seen.add(webhook.name)


def _check_webhook(
    errors: Errors, webhook: MutatingWebhook | ValidatingWebhook, path: str, side_effects: tuple[str, ...]
) -> None:
    _check_name(errors, webhook.name, f"{path}.name")
    for index, rule in enumerate(webhook.rules):
        validate_rule(errors, rule, f"{path}.rules[{index}]")
    validate_choice(errors, f"{path}.failurePolicy", webhook.failure_policy, FAILURE_POLICIES)
    validate_choice(errors, f"{path}.matchPolicy", webhook.match_policy, MATCH_POLICIES)
    if webhook.side_effects is None:
        errors.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(side_effects)}"))
    validate_choice(errors, f"{path}.sideEffects", webhook.side_effects, side_effects)
    seconds = webhook.timeout_seconds
    if seconds is not None and not 1 <= seconds <= MOST_SECONDS:
        what = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(f"{path}.timeoutSeconds", seconds, what))
    validate_label_selector(errors, webhook.namespace_selector, f"{path}.namespaceSelector")
    validate_label_selector(errors, webhook.object_selector, f"{path}.objectSelector")
    if isinstance(webhook, MutatingWebhook):
        validate_choice(errors, f"{path}.reinvocationPolicy", webhook.reinvocation_policy, REINVOCATION_POLICIES)
    validate_client_config(errors, webhook.client_config, f"{path}.clientConfig")


def _check_name(errors: Errors, name: str, path: str) -> None:
    if not name:
        errors.append(required(path))
        return
    check.name(errors, path, name, names.dns_subdomain)
    if len(name.split(".")) < 3:
        errors.append(invalid(path, name, "should be a domain with at least three segments separated by dots"))


def validate_client_config(errors: Errors, config: WebhookClientConfig, path: str) -> None:
    """Where a webhook is: at a URL, or behind a Service."""
    if (config.url is None) == (config.service is None):
        errors.append(required(path, "exactly one of url or service is required"))
    elif config.url is not None:
        _check_url(errors, config.url, f"{path}.url")
    elif config.service is not None:
        _check_service(errors, config.service, f"{path}.service")


def _check_url(errors: Errors, url: str, path: str) -> None:
    try:
        parts = urlsplit(url)
        host, user = parts.hostname or "", parts.username
        _ = parts.port
    except ValueError as error:
        errors.append(required(path, f"url must be a valid URL: {error}{_FORM}"))
        return
    if parts.scheme != "https":
        errors.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not host:
        errors.append(invalid(path, "", f"host must be specified{_FORM}"))
    if user is not None:
        errors.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))


def _check_service(errors: Errors, service: ServiceReference, path: str) -> None:
    if not service.name:
        errors.append(required(f"{path}.name"))
    if not service.namespace:
        errors.append(required(f"{path}.namespace"))
    port = HTTPS if service.port is None else service.port
    if not 1 <= port <= 65535:
        errors.append(invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive"))
    _check_path(errors, service.path or "/", f"{path}.path")


def _check_path(errors: Errors, value: str, path: str) -> None:
    if value == "/":
        return
    if value == "//":
        errors.append(invalid(path, value, "segment[0] may not be empty"))
        return
    if not value.startswith("/"):
        errors.append(invalid(path, value, "must start with a '/'"))
    for index, step in enumerate(value[1:].removesuffix("/").split("/")):
        if not step:
            errors.append(invalid(path, value, f"segment[{index}] may not be empty"))
            continue
        for problem in names.dns_subdomain(step):
            errors.append(invalid(path, value, f"segment[{index}]: {problem}"))


def _is_recognized(versions: tuple[str, ...]) -> bool:
    return not versions or any(version in REVIEW_VERSIONS for version in versions)


def _check_versions(errors: Errors, versions: tuple[str, ...], path: str, needs_known: bool) -> None:
    if not versions:
        errors.append(required(path, f"must specify one of {', '.join(REVIEW_VERSIONS)}"))
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        check.name(errors, f"{path}[{index}]", version, names.dns_1035_label)
    if needs_known and not _is_recognized(versions):
        errors.append(invalid(path, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))


_BOTH: Final = Rules(namespaced=False, own_finalizers=True, has_generation=True, default=_default, check=_check)
RULES: Final = {"MutatingWebhookConfiguration": _BOTH, "ValidatingWebhookConfiguration": _BOTH}
