"""Why a claim has no volume, in Kubernetes' words: type, reason and message of an event."""

from __future__ import annotations

from typing import Final, TypeAlias

from dray.api.generated.core import PersistentVolumeClaim
from dray.controllers.volumes.plan import Loss
from dray.scheduling.volume_binding import Cause, Make, Wait
from dray.scheduling.volumes import Misfit

Told: TypeAlias = tuple[str, str, str]

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

LOSSES: Final[dict[Loss, Told]] = {
    Loss.REFERENCE: (
        WARNING,
        "ClaimLost",
        "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
    ),
    Loss.VOLUME: (WARNING, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"),
    Loss.OTHER_CLAIM: (
        WARNING,
        "ClaimMisbound",
        "Two claims are bound to the same volume, this one is bound incorrectly",
    ),
}
_MISFITS: Final = {
    Misfit.SIZE: "requested PV is too small",
    Misfit.CLASS: "storageClassName does not match",
    Misfit.MODE: "incompatible volumeMode",
    Misfit.ACCESS: "incompatible accessMode",
}
_NO_VOLUME: Final = (
    NORMAL,
    "FailedBinding",
    "no persistent volumes available for this claim and no storage class is set",
)


def why_unbound(claim: PersistentVolumeClaim, decided: Make | Wait) -> Told | None:
    """What people are told; None if there is nothing to tell yet."""
    if isinstance(decided, Make):
        return _NO_VOLUME if decided.kind is None else _asked(decided.kind.provisioner)
    match decided.cause:
        case Cause.POD:
            return NORMAL, "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
        case Cause.VOLUME:
            return _NO_VOLUME if not claim.spec.storage_class_name else None
        case Cause.STORAGE_CLASS:
            name = claim.spec.storage_class_name
            return WARNING, "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found'
        case Cause.OTHER_CLAIM:
            return WARNING, "FailedBinding", f'volume "{claim.spec.volume_name}" already bound to a different claim.'
        case Cause.NAMED_VOLUME:
            if decided.misfit is None:
                return None
            lacks = _MISFITS[decided.misfit]
            return WARNING, "VolumeMismatch", f'Cannot bind to requested volume "{claim.spec.volume_name}": {lacks}'


def _asked(provisioner: str) -> Told:
    message = (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
        "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
        "correctly registered."
    )
    return NORMAL, "ExternalProvisioning", message
