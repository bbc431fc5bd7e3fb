"""What becomes of a container when it ends or when its resources change."""

from __future__ import annotations

from typing import Final

from dray.api.field import invalid, not_supported, required
from dray.api.generated.core import Container, ContainerResizePolicy, ContainerRestartRule
from dray.validation import check
from dray.validation.context import Errors

RESOURCES: Final = ("cpu", "memory")
RESIZE_POLICIES: Final = ("NotRequired", "RestartContainer")
RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
ACTIONS: Final = ("Restart", "RestartAllContainers")
OPERATORS: Final = ("In", "NotIn")
RULES: Final = 20
EXIT_CODES: Final = 255


def validate_restarts(errors: Errors, container: Container, path: str) -> None:
    """Its own restart policy, and rules by exit code, which need one."""
    if container.restart_policy is not None:
        check.one_of(errors, f"{path}.restartPolicy", container.restart_policy, RESTART_POLICIES)
    rules = container.restart_policy_rules
    if rules and container.restart_policy is None:
        errors.append(required(f"{path}.restartPolicy", "needed with restartPolicyRules"))
    if check.fits(errors, f"{path}.restartPolicyRules", rules, RULES):
        for index, rule in enumerate(rules):
            _validate_rule(errors, rule, f"{path}.restartPolicyRules[{index}]")


def _validate_rule(errors: Errors, rule: ContainerRestartRule, path: str) -> None:
    check.one_of(errors, f"{path}.action", rule.action, ACTIONS)
    codes = rule.exit_codes
    if codes is None:
        errors.append(required(f"{path}.exitCodes"))
        return
    check.one_of(errors, f"{path}.exitCodes.operator", codes.operator, OPERATORS)
    check.fits(errors, f"{path}.exitCodes.values", codes.values, EXIT_CODES)


def validate_resizes(
    errors: Errors, policies: tuple[ContainerResizePolicy, ...], path: str, restart_policy: str
) -> None:
    """One policy for each resource; a container that never restarts cannot be restarted for it."""
    for policy in policies:
        for value, allowed in ((policy.resource_name, RESOURCES), (policy.restart_policy, RESIZE_POLICIES)):
            if not value:
                errors.append(required(path))
            elif value not in allowed:
                errors.append(not_supported(path, value, allowed))
        if policy.restart_policy != "NotRequired" and restart_policy == "Never":
            errors.append(invalid(path, policy.restart_policy, "must be NotRequired with restartPolicy Never"))
    check.unique(errors, path, (policy.resource_name for policy in policies))
