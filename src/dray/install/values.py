"""What can be chosen about an installation, with what is taken otherwise."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from dray import __version__
from dray.api.well_known import DRAY_SCHEDULER

Value: TypeAlias = str | int | bool

SECOND: Final = "second"
DEFAULT: Final = "default"
BESIDE: Final = "beside"
INSTEAD: Final = "instead"

DEFAULTS: Final[Mapping[str, Value]] = {
    "namespace": "dray-system",
    "image": f"dray:{__version__}",
    "imagePullPolicy": "IfNotPresent",
    "scheduler.enabled": True,
    "scheduler.mode": SECOND,
    "scheduler.name": DRAY_SCHEDULER,
    "scheduler.replicas": 2,
    "controllers.enabled": True,
    "controllers.evictions": BESIDE,
    "controllers.maxEvictions": "50,10%,node,spare",
    "controllers.replicas": 2,
    "dashboard.enabled": True,
    "dashboard.memory": "1Gi",
    "crds.resourceSlicePatches": True,
    "crds.deviceTaintRules": False,
    "rbac.reader": True,
    "rbac.accounts": False,
    "metrics.port": 10260,
    "networkPolicy.enabled": True,
    "resources.cpu": "100m",
    "resources.memory": "256Mi",
}

MEANINGS: Final[Mapping[str, str]] = {
    "namespace": "where everything runs; it is made",
    "image": "the image of dray, made with the Containerfile",
    "imagePullPolicy": "as in a container",
    "scheduler.enabled": "whether the scheduler is installed",
    "scheduler.mode": "`second`: for pods that name it; `default`: in place of kube-scheduler, which must be stopped",
    "scheduler.name": "the `schedulerName` of pods for the second scheduler",
    "scheduler.replicas": "one works, the others wait for its lease",
    "controllers.enabled": "whether controllers are installed",
    "controllers.evictions": "`beside`: only what Kubernetes has not (expiry of taints); `instead`: also both eviction "
    "controllers, which kube-controller-manager must not run then",
    "controllers.maxEvictions": "the guard: what would evict more is held until somebody confirms",
    "controllers.replicas": "one works, the others wait for its lease",
    "dashboard.enabled": "whether the dashboard is installed, for `kubectl port-forward` and people's own tokens",
    "dashboard.memory": "what it asks for and may use: it grows with the cluster and with who looks",
    "crds.resourceSlicePatches": "the definition of ResourceSlicePatch in `dray.dev`",
    "crds.deviceTaintRules": "the same for DeviceTaintRule: only for clusters that do not serve it themselves",
    "rbac.reader": "the ClusterRole `dray-reader`, for people who look",
    "rbac.accounts": "rights for `dray controllers --use-service-account-credentials`, run elsewhere",
    "metrics.port": "where /metrics and the probes are",
    "networkPolicy.enabled": "only the port of metrics in, only the API server and DNS out",
    "resources.cpu": "what a pod asks for",
    "resources.memory": "what a pod asks for and may use",
}

CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "scheduler.mode": (SECOND, DEFAULT),
    "controllers.evictions": (BESIDE, INSTEAD),
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
}


class Form(NamedTuple):
    """What a text looks like, for Python and for JSON Schema, and in words."""

    pattern: str
    words: str


_PART: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LIMIT: Final = r"([0-9]+(\.[0-9]+)?%|[0-9]+|node|spare)"
_QUANTITY: Final = Form(r"[0-9]+(\.[0-9]+)?(m|k|[KMGTPE]i|[MGTPE])?", "an amount such as 100m or 256Mi")
FORMS: Final[Mapping[str, Form]] = {
    "namespace": Form(_PART, "the name of a namespace: small letters, digits and -"),
    "image": Form(r"[A-Za-z0-9][-A-Za-z0-9._/:@]*", "the name of an image"),
    "scheduler.name": Form(rf"{_PART}(\.{_PART})*", "the name of a scheduler: small letters, digits, - and ."),
    "controllers.maxEvictions": Form(f"none|{_LIMIT}(,{_LIMIT})*", "none, or numbers such as 50,10%,node,spare"),
    "dashboard.memory": _QUANTITY,
    "resources.cpu": _QUANTITY,
    "resources.memory": _QUANTITY,
}
"""Texts that are not among CHOICES."""
NUMBERS: Final = range(1, 65536)
"""Numbers that can be, of ports and of replicas."""


class ValuesError(ValueError):
    """A value that cannot be; the message says which there are."""


def read_values(settings: Iterable[str]) -> dict[str, Value]:
    """The values with what `name=value` texts say instead. Raises ValuesError."""
    values = dict(DEFAULTS)
    for setting in settings:
        name, separator, text = setting.partition("=")
        if name not in DEFAULTS:
            close = difflib.get_close_matches(name, DEFAULTS, n=1)
            hint = f"perhaps {close[0]} is meant" if close else f"there is {', '.join(DEFAULTS)}"
            raise ValuesError(f"{setting!r} sets nothing that is known; {hint}")
        if not separator:
            raise ValuesError(f"{name} has no value; write {name}=VALUE")
        values[name] = _typed(name, text)
    return values


def _typed(name: str, text: str) -> Value:
    default = DEFAULTS[name]
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise ValuesError(f"{name} is true or false, not {text!r}")
        return text == "true"
    if isinstance(default, int):
        if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) in NUMBERS):
            raise ValuesError(f"{name} is a whole number from {NUMBERS[0]} to {NUMBERS[-1]}, not {text!r}")
        return int(text)
    if name in CHOICES:
        if text not in CHOICES[name]:
            raise ValuesError(f"{name} is one of {', '.join(CHOICES[name])}, not {text!r}")
    elif not re.fullmatch(FORMS[name].pattern, text):
        raise ValuesError(f"{name} is {FORMS[name].words}, not {text!r}")
    return text
