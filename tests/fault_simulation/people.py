"""What users, admins and drivers do, at random: they create, delete and change what the control plane looks after."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from controller_world import Manifest, find_kind, typed
from dray.api import codec
from dray.api.generated.core import Pod
from dray.api.meta import DeleteOptions
from dray.api.status import ApiError
from dray.simulation import names
from fault_simulation import objects
from fault_simulation.ledger import Ledger
from fault_simulation.network import Connection

NAMES: Final = 10
"""So few that names are used again."""
SHARED: Final = 3
RULES: Final = 3
GANGS: Final = 2
"""Of each sort."""
WHOLE: Final = "whole"
"""What the names of gangs begin with that leave as a whole."""
EFFECTS: Final = ("None", "NoSchedule", "NoExecute", "NoExecute")
IMPORTANCE: Final = ("", "", "", "", "", "low", "urgent", "polite")
APPS: Final = ("single", "single", objects.SPREAD, objects.APART)

HABITS: Final[Mapping[str, int]] = {
    "create_pod": 10,
    "delete_pod": 5,
    "replace_pod": 2,
    "kill_pod": 1,
    "create_claim": 2,
    "delete_claim": 1,
    "create_rule": 3,
    "edit_rule": 2,
    "delete_rule": 2,
    "taint_device": 2,
    "heal_devices": 2,
    "withdraw_slice": 1,
    "publish": 2,
    "stop_node": 1,
    "start_node": 2,
    "retire_node": 1,
    "taint_node": 1,
    "untaint_node": 1,
    "scale": 1,
    "create_gang": 2,
    "delete_gang": 1,
}
"""What people do, and how often."""

Action = Callable[[], Awaitable[None]]


class People:
    """They use a connection of their own, which does not fail while the server is up, and see what is stored."""

    def __init__(
        self,
        client: Connection,
        ledger: Ledger,
        randomness: random.Random,
        nodes: int,
        habits: Mapping[str, int] | None = None,
    ) -> None:
        """`habits` are done more or less often than usual."""
        self._client = client
        self._ledger = ledger
        self._random = randomness
        self.nodes = [f"node-{number}" for number in range(nodes)]
        self._generation = 1
        self._actions: dict[Action, int] = {
            getattr(self, f"_{name}"): weight for name, weight in {**HABITS, **(habits or {})}.items()
        }

    async def set_up(self) -> None:
        """Everything that is there from the start."""
        for name, driver in objects.DRIVERS.items():
            await self._create(objects.device_class(name, driver))
        for name in objects.PRIORITIES:
            await self._create(objects.priority_class(name))
        for wish in objects.WISHES:
            await self._create(objects.template(wish))
        for name in self.nodes:
            await self._add_node(name)
        await self._create(objects.replica_set(2))

    async def gather(self, size: int) -> None:
        """Many pods share one GPU."""
        await self._create(objects.claim("crowd", "gpu"))
        for number in range(size):
            await self._create(objects.pod(f"crowd-{number}", objects.pod_spec("", "crowd", None), None))

    async def strike(self) -> None:
        """All GPUs are found broken, and those who use them are to leave, not too fast."""
        await self._create(objects.rule("strike", "NoExecute", 2, driver=objects.GPU))

    async def act(self) -> None:
        """One of them does something. That it is too late, or not possible any more, bothers nobody."""
        (action,) = self._random.choices(list(self._actions), list(self._actions.values()))
        try:
            await action()
        except ApiError as error:
            if error.code not in (404, 409, 503, 504):
                raise
        except ConnectionRefusedError:
            pass

    async def restore(self) -> None:
        """Nodes and their devices are there and work; device taints and rules stay as they are."""
        for name in self.nodes:
            await _insist(partial(self._repair_node, name))
        await _insist(self._publish)

    # Pods and claims

    async def _create_pod(self) -> None:
        await self._create(self._some_pod(f"pod-{self._random.randrange(NAMES)}"))

    def _some_pod(self, name: str) -> Manifest:
        extended = [f"{objects.EXTENDED}{count}" for count in (1, 2)]
        wish = self._random.choice([*objects.WISHES, "gpu", "", *extended])
        shared = f"shared-{self._random.randrange(SHARED)}" if self._random.random() < 0.25 else ""
        patience = self._random.choice([None, None, 5, 60])
        run_seconds = self._random.choice([None, None, 3, 40])
        app, importance = self._random.choice(APPS), self._random.choice(IMPORTANCE)
        spec = objects.pod_spec(wish, shared, patience) | objects.company(app) | objects.priority(importance)
        return objects.pod(name, spec, run_seconds, app)

    def _some_pod_there(self) -> Pod:
        pods = self._ledger.pods
        if not pods:
            raise ApiError(404, "NotFound", "there is no pod")
        return self._random.choice(pods)

    async def _delete_pod(self) -> None:
        pod = self._some_pod_there()
        await self._delete("pods", pod.metadata.name)

    async def _kill_pod(self) -> None:
        pod = self._some_pod_there()
        await self._delete("pods", pod.metadata.name, grace_period_seconds=0)

    async def _replace_pod(self) -> None:
        """The name stays, the pod is another one: whoever still thinks of the first must not hit the second."""
        singles = [pod for pod in self._ledger.pods if not pod.metadata.owner_references]
        if singles:
            name = self._random.choice(singles).metadata.name
            await self._delete("pods", name, grace_period_seconds=0)
            await self._create(self._some_pod(name))

    async def _create_claim(self) -> None:
        wish = self._random.choice(list(objects.WISHES))
        await self._create(objects.claim(f"shared-{self._random.randrange(SHARED)}", wish))

    async def _delete_claim(self) -> None:
        await self._delete("resourceclaims", f"shared-{self._random.randrange(SHARED)}")

    async def _create_gang(self) -> None:
        """A group and its pods, in any order; what is there of an earlier one stays, and is too many or too few."""
        name, size = self._some_gang(), self._random.choice([2, 3, 4])
        run_seconds, importance = self._random.choice([None, 40]), self._random.choice(IMPORTANCE)
        wanted = objects.gang(name, size, run_seconds, importance, whole=name.startswith(WHOLE))
        self._random.shuffle(wanted)
        for one in wanted:
            try:
                await self._create(one)
            except ApiError as error:
                if error.code != 409:
                    raise

    def _some_gang(self) -> str:
        return f"{self._random.choice([WHOLE, 'gang'])}-{self._random.randrange(GANGS)}"

    async def _delete_gang(self) -> None:
        name = self._some_gang()
        await self._delete("podgroups", name)
        for pod in self._ledger.pods:
            if pod.metadata.name.startswith(f"{name}-"):
                await self._delete("pods", pod.metadata.name)

    async def _scale(self) -> None:
        await self._patch("replicasets", "web", {"spec": {"replicas": self._random.randrange(4)}})

    # Devices

    def _some_rule(self) -> str:
        return f"rule-{self._random.randrange(RULES)}"

    async def _create_rule(self) -> None:
        selector = {"driver": self._random.choice([objects.GPU, objects.GPU, objects.PARTS, objects.LINK])}
        if self._random.random() < 0.7:
            selector["pool"] = self._random.choice(self.nodes)
        if self._random.random() < 0.3:
            selector["device"] = f"gpu-{self._random.randrange(objects.GPUS_PER_NODE)}"
        effect, rate = self._random.choice(EFFECTS), self._random.choice([None, 1, 2, 100])
        await self._create(objects.rule(self._some_rule(), effect, rate, **selector))

    async def _edit_rule(self) -> None:
        taint = {"effect": self._random.choice(EFFECTS), "evictionsPerSecond": self._random.choice([1, 5, 100])}
        await self._patch("devicetaintrules", self._some_rule(), {"spec": {"taint": taint}})

    async def _delete_rule(self) -> None:
        await self._delete("devicetaintrules", self._some_rule())

    async def _taint_device(self) -> None:
        """A driver finds a GPU broken."""
        name = f"{self._random.choice(self.nodes)}-gpu"
        found = self._ledger.find("resourceslices.resource.k8s.io", "", name)
        if found is None:
            return
        broken = self._random.choice(found.spec.devices).name
        taint = {"key": objects.BROKEN, "effect": self._random.choice(EFFECTS)}
        devices = [
            {"name": device.name, **({"taints": [taint]} if device.name == broken else {})}
            for device in found.spec.devices
        ]
        await self._patch("resourceslices", name, {"spec": {"devices": devices}})

    async def _heal_devices(self) -> None:
        name = self._random.choice(self.nodes)
        devices = [{"name": f"gpu-{number}"} for number in range(objects.GPUS_PER_NODE)]
        await self._patch("resourceslices", f"{name}-gpu", {"spec": {"devices": devices}})

    async def _withdraw_slice(self) -> None:
        found = self._ledger.slices
        if found:
            await self._delete("resourceslices", self._random.choice(found).metadata.name)

    async def _publish(self) -> None:
        """The drivers of all nodes start again, and publish what is missing; half of them under a new generation."""
        for name in self.nodes:
            if self._ledger.find("nodes", "", name) is None:
                continue
            if self._random.random() < 0.5:
                self._generation += 1
            for wanted in objects.slices(name, self._generation):
                await self._publish_slice(wanted)

    async def _publish_slice(self, wanted: Manifest) -> None:
        found = self._ledger.find("resourceslices.resource.k8s.io", "", wanted["metadata"]["name"])
        if found is None:
            await self._create(wanted)
        else:
            await self._patch("resourceslices", found.metadata.name, {"spec": {"pool": wanted["spec"]["pool"]}})

    # Nodes

    async def _add_node(self, name: str) -> None:
        await self._create(objects.node(name))
        for wanted in objects.slices(name, self._generation):
            await self._publish_slice(wanted)

    async def _set_state(self, name: str, state: str) -> None:
        await self._patch("nodes", name, {"metadata": {"annotations": {names.STATE: state}}})

    async def _stop_node(self) -> None:
        await self._set_state(self._random.choice(self.nodes), names.STOPPED)

    async def _start_node(self) -> None:
        await self._repair_node(self._random.choice(self.nodes))

    async def _repair_node(self, name: str) -> None:
        if self._ledger.find("nodes", "", name) is None:
            await self._add_node(name)
        else:
            await self._set_state(name, "running")
            await self._drop_node_taints(name)

    async def _retire_node(self) -> None:
        """A node that is off is taken out of service, or out of the cluster."""
        for node in self._ledger.nodes:
            if node.metadata.annotations.get(names.STATE) == names.STOPPED:
                if self._random.random() < 0.5:
                    await self._add_taint(node.metadata.name, objects.OUT_OF_SERVICE)
                else:
                    await self._delete("nodes", node.metadata.name)
                return

    async def _taint_node(self) -> None:
        """Every other node says how fast pods may leave."""
        name = self._random.choice(self.nodes)
        if self.nodes.index(name) % 2 == 0:
            rate = f"{objects.MAINTENANCE}:NoExecute={objects.NODE_RATE}@{objects.RATE_GROUP}"
            await self._patch("nodes", name, {"metadata": {"annotations": {objects.RATE: rate}}})
        await self._add_taint(name, objects.MAINTENANCE)

    async def _untaint_node(self) -> None:
        await self._drop_node_taints(self._random.choice(self.nodes))

    async def _add_taint(self, name: str, key: str) -> None:
        others = [taint for taint in self._taints(name) if taint["key"] != key]
        await self._set_taints(name, [*others, {"key": key, "effect": "NoExecute"}])

    async def _drop_node_taints(self, name: str) -> None:
        """Those that admins added."""
        mine = (objects.MAINTENANCE, objects.OUT_OF_SERVICE)
        await self._set_taints(name, [taint for taint in self._taints(name) if taint["key"] not in mine])

    def _taints(self, name: str) -> list[Any]:
        found = self._ledger.find("nodes", "", name)
        return codec.to_builtins(found.spec.taints) if found is not None else []

    async def _set_taints(self, name: str, taints: list[Any]) -> None:
        found = self._ledger.find("nodes", "", name)
        if found is not None:
            meta = {"resourceVersion": found.metadata.resource_version}
            await self._patch("nodes", name, {"metadata": meta, "spec": {"taints": taints}})

    # Verbs

    async def _create(self, wanted: Manifest) -> None:
        await self._client.create(typed(wanted))

    async def _patch(self, plural: str, name: str, patch: Any) -> None:
        kind = find_kind(plural)
        await self._client.patch(kind, "default" if kind.namespaced else "", name, patch)

    async def _delete(self, plural: str, name: str, **options: Any) -> None:
        kind = find_kind(plural)
        await self._client.delete(kind, "default" if kind.namespaced else "", name, DeleteOptions(**options))


async def _insist(action: Action) -> None:
    """Does something that controllers may get in the way of."""
    while True:
        try:
            await action()
            return
        except ApiError as error:
            if error.code != 409:
                raise
