"""Probes and lifecycle hooks of containers."""

from __future__ import annotations

import re
from typing import Final

from dray.api.field import forbidden, invalid, required
from dray.api.generated.core import Container, HTTPGetAction, Lifecycle, LifecycleHandler, Probe
from dray.validation import check, names
from dray.validation.context import Errors

_STOPS_ON_LINUX: Final = (
    "SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT SIGKILL SIGPIPE SIGPOLL "
    "SIGPROF SIGPWR SIGQUIT SIGSEGV SIGSTKFLT SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 "
    "SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIGRTMIN SIGRTMAX"
)
_COUNTED: Final = [f"SIGRTMIN+{number}" for number in range(1, 16)] + [f"SIGRTMAX-{number}" for number in range(1, 15)]
STOP_SIGNALS: Final = {"linux": (*_STOPS_ON_LINUX.split(), *_COUNTED), "windows": ("SIGKILL", "SIGTERM")}
"""By operating system: how containers can be told to stop."""
_HEADER: Final = re.compile(r"[-A-Za-z0-9]+")


def validate_probes(errors: Errors, container: Container, path: str) -> None:
    """The three probes; liveness and startup probes succeed with one success."""
    for field, probe in (
        ("livenessProbe", container.liveness_probe),
        ("readinessProbe", container.readiness_probe),
        ("startupProbe", container.startup_probe),
    ):
        if probe is None:
            continue
        inner = f"{path}.{field}"
        _validate_probe(errors, probe, inner)
        if field != "readinessProbe" and probe.success_threshold != 1:
            errors.append(invalid(f"{inner}.successThreshold", probe.success_threshold, "must be 1"))
        grace = probe.termination_grace_period_seconds
        if grace is not None and field == "readinessProbe":
            errors.append(invalid(f"{inner}.terminationGracePeriodSeconds", grace, "must not be set here"))
        elif grace is not None and grace <= 0:
            errors.append(invalid(f"{inner}.terminationGracePeriodSeconds", grace, "must be greater than 0"))


def _validate_probe(errors: Errors, probe: Probe, path: str) -> None:
    _validate_handler(errors, probe, path, ("exec", "http_get", "tcp_socket", "grpc"))
    if probe.grpc is not None:
        check.port(errors, f"{path}.grpc.port", probe.grpc.port)
    for field, value in (
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    ):
        check.not_negative(errors, f"{path}.{field}", value)


def validate_lifecycle(errors: Errors, lifecycle: Lifecycle, path: str, grace: int | None, system: str) -> None:
    """Hooks after the start and before the stop of a container; none sleeps longer than the pod has time to end."""
    if lifecycle.stop_signal is not None and not system:
        errors.append(forbidden(f"{path}.stopSignal", "may not be set for containers with empty `spec.os.name`"))
    elif lifecycle.stop_signal is not None and system in STOP_SIGNALS:
        check.one_of(errors, f"{path}.stopSignal", lifecycle.stop_signal, STOP_SIGNALS[system])
    for field, handler in (("postStart", lifecycle.post_start), ("preStop", lifecycle.pre_stop)):
        if handler is None:
            continue
        _validate_handler(errors, handler, f"{path}.{field}", ("exec", "http_get", "tcp_socket", "sleep"))
        is_first = handler.exec is None and handler.http_get is None and handler.tcp_socket is None
        if handler.sleep is not None and is_first and grace is not None and not 0 <= handler.sleep.seconds <= grace:
            told = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            errors.append(invalid(f"{path}.{field}.sleep", handler.sleep.seconds, told))


def _validate_handler(errors: Errors, handler: Probe | LifecycleHandler, path: str, ways: tuple[str, ...]) -> None:
    """Exactly one way to probe or to act."""
    given = [way for way in ways if getattr(handler, way) is not None]
    for extra in given[1:]:
        field = {"http_get": "httpGet", "tcp_socket": "tcpSocket"}.get(extra, extra)
        errors.append(forbidden(f"{path}.{field}", "may not specify more than 1 handler type"))
    if not given:
        errors.append(required(path, "must specify a handler type"))
    if handler.exec is not None and not handler.exec.command:
        errors.append(required(f"{path}.exec.command"))
    if handler.http_get is not None:
        _validate_http(errors, handler.http_get, f"{path}.httpGet")
    if handler.tcp_socket is not None:
        _validate_port(errors, handler.tcp_socket.port, f"{path}.tcpSocket.port")


def _validate_http(errors: Errors, action: HTTPGetAction, path: str) -> None:
    if not action.path:
        errors.append(required(f"{path}.path"))
    _validate_port(errors, action.port, f"{path}.port")
    check.one_of(errors, f"{path}.scheme", action.scheme, ("HTTP", "HTTPS"))
    for header in action.http_headers:
        if _HEADER.fullmatch(header.name) is None:
            errors.append(invalid(f"{path}.httpHeaders", header.name, "must consist of letters, digits and '-'"))


def _validate_port(errors: Errors, port: int | str, path: str) -> None:
    if isinstance(port, int):
        check.port(errors, path, port)
    else:
        check.name(errors, path, port, names.port_name)
