"""Storage: claims get volumes, volumes are let go, nothing goes while it is used, pods get claims of their own."""

from dray.controllers.volumes.binder import VolumeBinder
from dray.controllers.volumes.ephemeral import EphemeralVolumeController
from dray.controllers.volumes.protection import ClaimProtectionController, VolumeProtectionController

__all__ = ["ClaimProtectionController", "EphemeralVolumeController", "VolumeBinder", "VolumeProtectionController"]
