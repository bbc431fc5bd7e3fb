"""A DRA driver for GPUs that do not exist: partitions, shared counters, health taints, class and claim parameters.

    python examples/drivers/fake_gpu.py --node-name node-1 --kubeconfig state/kubeconfig \
        --plugin-dir plugin --registry-dir plugins_registry --cdi-dir cdi

Every board is published three ways that exclude each other through shared counters: whole, as two halves, or as four
quarters. Write a JSON file such as `{"gpu-0": "NoExecute"}` and name it in FAKE_GPU_HEALTH: the board and its
partitions get that taint, and lose it when the entry goes. Parameters for the driver:

    {"env": {"NAME": "value"}}      from the class or from the claim: variables for the container
    {"initCommand": ["reset"]}      from the class only: an admin decides what runs on the node
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dray import driver

MEMORY_GIB = 80
PARTITIONS = {"half": 2, "quarter": 4}
EFFECTS = ("None", "NoSchedule", "NoExecute")

log = logging.getLogger("fake-gpu")


class FakeGpu(driver.Driver):
    """Boards that are only published."""

    name = "gpu.example.com"
    interval = 1.0
    publishes_taints = True

    def __init__(self, boards: int = 2, health_file: Path | None = None) -> None:
        self.boards = boards
        self.health_file = health_file

    def counters(self) -> Iterator[driver.CounterSet]:
        """What the partitions of a board share."""
        for board in self._boards():
            yield driver.CounterSet(board, {"memory": f"{MEMORY_GIB}Gi", "slots": 4})

    def discover(self) -> Iterator[driver.Device]:
        """Each board as a whole and in parts."""
        effects = self._read_health()
        for index, board in enumerate(self._boards()):
            yield self._device(index, board, board, "whole", 1, effects)
            for kind, count in PARTITIONS.items():
                for part in range(count):
                    yield self._device(index, f"{board}-{kind}-{part}", board, kind, count, effects)

    def health(self) -> Iterator[driver.Health]:
        """Unhealthy while tainted; it shows in the status of pods and of their claims."""
        effects = self._read_health()
        for device in self.discover():
            effect = effects.get(str(device.attributes["board"]))
            yield driver.Health(device.name, healthy=effect is None, message=effect or "")

    def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> driver.Edits:
        """Runs what the admin wants, and tells the container which GPU it has."""
        env = {f"GPU_{device.name.upper().replace('-', '_')}": str(device.attributes["uuid"])}
        for config in device.config:
            parameters = _check(config)
            env |= parameters.get("env", {})
            for command in parameters.get("initCommand", ()):
                log.info("%s on %s for claim %s", command, device.name, claim)
        return driver.Edits(env=env, data={"uuid": device.attributes["uuid"]})

    def unprepare(self, claim: driver.Claim) -> None:
        """A real driver would wipe the memory here."""
        for device in claim.devices:
            log.info("reset %s after claim %s", device.name, claim)

    def _boards(self) -> list[str]:
        return [f"gpu-{index}" for index in range(self.boards)]

    def _device(
        self, index: int, name: str, board: str, kind: str, share: int, effects: dict[str, str]
    ) -> driver.Device:
        memory = f"{MEMORY_GIB // share}Gi"
        effect = effects.get(board)
        return driver.Device(
            name,
            attributes={
                "model": "Fake-80G",
                "board": board,
                "partition": kind,
                "uuid": f"GPU-{index:04}-{name}",
                "driverVersion": driver.Version("1.2.3"),
                "resource.kubernetes.io/pcieRoot": f"pci0000:{index:02x}",
            },
            capacity={"memory": memory},
            consumes={board: {"memory": memory, "slots": 4 // share}},
            taints=[driver.Taint(key=f"{self.name}/unhealthy", effect=effect)] if effect else (),
        )

    def _read_health(self) -> dict[str, str]:
        """The effect for each board that is not well."""
        if self.health_file is None or not self.health_file.exists():
            return {}
        try:
            found = json.loads(self.health_file.read_text())
        except ValueError as error:
            raise driver.DriverError(f"{self.health_file} is not JSON: {error}") from None
        if not isinstance(found, dict) or not set(found.values()) <= set(EFFECTS):
            raise driver.DriverError(f"{self.health_file} must give each board one of {', '.join(EFFECTS)}")
        return found


def problem_with(parameters: Any, *, from_class: bool) -> str:
    """Why parameters cannot be used where they come from; empty if they can."""
    unknown = set(parameters) - {"env", "initCommand"} if isinstance(parameters, dict) else {"(not an object)"}
    if unknown:
        return f"unknown parameters {', '.join(sorted(unknown))}; known are env and initCommand"
    if "initCommand" in parameters and not from_class:
        return "initCommand is only accepted from the DeviceClass, which an admin writes"
    return ""


def _check(config: driver.Config) -> dict[str, Any]:
    """The parameters, if they are allowed where they come from. Raises DriverError."""
    problem = problem_with(config.parameters, from_class=config.from_class)
    if problem:
        raise driver.DriverError(problem)
    return dict(config.parameters)


if __name__ == "__main__":
    health = os.environ.get("FAKE_GPU_HEALTH")
    driver.run(FakeGpu(int(os.environ.get("FAKE_GPU_BOARDS", "2")), Path(health) if health else None))
