"""The labels and annotations by which simulated nodes are known and told what to do."""

from __future__ import annotations

from typing import Final

PROFILE: Final = "dray.dev/profile"
"""Annotation of a node: the profile that it was made from."""

STATE: Final = "dray.dev/simulated-state"
"""Annotation of a node: `stopped` makes it fall silent, as if it had lost power; anything else lets it run."""
STOPPED: Final = "stopped"

START_SECONDS: Final = "dray.dev/start-seconds"
RUN_SECONDS: Final = "dray.dev/run-seconds"
STOP_SECONDS: Final = "dray.dev/stop-seconds"
EXIT_CODE: Final = "dray.dev/exit-code"
"""Annotations of a pod, or of a node for all its pods: how containers behave (see `behaviour`)."""
