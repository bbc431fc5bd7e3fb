"""Random clusters with what `odd_states` does not have, and which decides about pods, too.

Preferences, init containers and sidecars, requests of a whole pod, limits without requests, volumes that
bind late or are for one pod at a time, disruption budgets and many priorities, company in other namespaces, groups
that must be together, lists and versions as attributes, several constraints, compatibility of devices that share
counters, devices that must be made ready first, extended resources that are devices here and not there, taints that
compare numbers, pods that are leaving, classes and budgets that change.
"""

from __future__ import annotations

from collections.abc import Iterator

import builders
from allocation_strategies import DRIVERS
from builders import Manifest
from odd_states import RACK, RACKS, Change, Drawing, OddState
from verdict_states import APPS, Newcomer

OTHER = "other"
"""Another namespace, whose pods are company for some."""
EXTENDED = "example.com/gpu"
SELECTORS = (
    'device.capacity["gpu.example.com"].?m.orValue(quantity("0")).compareTo(quantity("5")) >= 0',
    'device.attributes[device.driver].?v.orValue(semver("1.0.0")).isGreaterThan(semver("1.5.0"))',
    'device.driver in ["nic.acme.io", "gpu.example.com"] && !device.allowMultipleAllocations',
    "device.attributes[device.driver].?on.orValue(false)",
)


def draw_rare_state(number: int) -> OddState:
    """The state of a number."""
    return _Drawing(number).draw()


class _Drawing(Drawing):
    def draw(self) -> OddState:
        state = super().draw()
        return OddState((*self._more(), *state.objects, *self._residents(), *self._budgets()), state.steps)

    def _more(self) -> Iterator[Manifest]:
        yield builders.manifest("v1", "Namespace", OTHER, "", meta={"labels": {"team": "x"}})
        for name, value in (("lowest", -5), ("low", 1), ("mid", 7)):
            yield builders.manifest("scheduling.k8s.io/v1", "PriorityClass", name, "", value=value)

    def _node(self, name: str) -> Manifest:
        made = super()._node(name)
        if self.one_in(6):
            level = {"key": "level", "value": str(self.chance.randint(1, 5)), "effect": "NoSchedule"}
            made["spec"]["taints"] = [*made["spec"].get("taints", ()), level]
        if self.one_in(8):
            lightly = {"key": "team", "value": "y", "effect": "PreferNoSchedule"}
            made["spec"]["taints"] = [*made["spec"].get("taints", ()), lightly]
        if self.one_in(6):
            for amounts in ("capacity", "allocatable"):
                made["status"][amounts] = {**made["status"][amounts], EXTENDED: str(self.chance.choice((0, 1, 2)))}
        return made

    def _device(self, name: str, counters: bool) -> Manifest:
        made = super()._device(name, counters)
        values = made.setdefault("attributes", {})
        if self.one_in(4):
            values["v"] = {"version": self.chance.choice(("1.0.0", "1.5.0", "2.0.0"))}
        if self.one_in(4):
            values["tags"] = {"strings": self.chance.choice((["red"], ["red", "blue"], ["blue"]))}
        if self.one_in(6):
            values["on"] = {"bool": self.chance.choice((True, False))}
        if self.one_in(15):
            made |= {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
        if self.one_in(6) and "consumesCounters" in made:
            groups = self.chance.choice((["one"], ["one", "two"], ["two"]))
            made["consumesCounters"][0]["compatibilityGroups"] = groups
        return made

    def _volumes(self) -> Iterator[Manifest]:
        yield from super()._volumes()
        if not self.one_in(3):
            return
        late = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
        yield builders.manifest("storage.k8s.io/v1", "StorageClass", "late", **late)
        mode = self.chance.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))
        for index in range(self.chance.choice((1, 2, 3))):
            need = [{"key": RACK, "operator": "In", "values": [self.chance.choice(RACKS)]}]
            disk = {
                "capacity": {"storage": self.chance.choice(("1Gi", "5Gi"))},
                "accessModes": [mode],
                "storageClassName": "late",
                "hostPath": {"path": "/disk"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": need}]}},
            }
            yield builders.manifest("v1", "PersistentVolume", f"late-{index}", spec=disk, status={"phase": "Available"})
        for name in ("late-a", "late-b"):
            self.volume_claims.append(name)
            asked = {"requests": {"storage": self.chance.choice(("1Gi", "2Gi"))}}
            spec: Manifest = {"accessModes": [mode], "resources": asked, "storageClassName": "late"}
            yield builders.manifest("v1", "PersistentVolumeClaim", name, spec=spec, status={"phase": "Pending"})

    def _residents(self) -> Iterator[Manifest]:
        """Pods that run already, in two namespaces; some hold a port, some are less important."""
        for number in range(self.chance.choice((0, 0, 1, 3))):
            namespace = self.chance.choice(("default", OTHER))
            meta = {"labels": {"app": self.chance.choice(APPS)}}
            spec: Manifest = {"priorityClassName": self.chance.choice(("lowest", "low", "mid"))}
            if self.one_in(4):
                spec["containers"] = [builders.container(ports=[{"containerPort": 80, "hostPort": 80}])]
            if self.one_in(5):
                term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": RACK, "namespaceSelector": {}}
                required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
                spec["affinity"] = {"podAntiAffinity": required}
            cpu = self.chance.choice(("", "500m", "1"))
            where = self.chance.choice(self.nodes)
            yield builders.pod(f"runs-{number}", namespace=namespace, cpu=cpu, node=where, meta=meta, **spec)

    def _budgets(self) -> Iterator[Manifest]:
        for app in APPS:
            if self.one_in(4):
                spec: Manifest = {"selector": {"matchLabels": {"app": app}}, "minAvailable": 1}
                status = {"disruptionsAllowed": self.chance.choice((0, 0, 1)), "observedGeneration": 1}
                counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
                yield builders.manifest("policy/v1", "PodDisruptionBudget", app, spec=spec, status=status | counts)

    def _newcomer(self, number: int) -> Newcomer:
        drawn = super()._newcomer(number)
        chance, pod = self.chance, drawn.pod
        spec = pod["spec"]
        pod["metadata"]["labels"] = {"app": chance.choice(APPS)}
        in_group = "schedulingGroup" in spec
        if self.one_in(3) and not in_group and "priorityClassName" not in spec:
            spec["priorityClassName"] = chance.choice(("lowest", "low", "mid", "high"))
        if self.one_in(5):
            terms = [{"weight": chance.choice((1, 50)), "preference": {"matchExpressions": [self._on_rack()]}}]
            spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
        elif self.one_in(4):
            spec["affinity"] = self._company()
        if self.one_in(7):
            when = chance.choice(("ScheduleAnyway", "DoNotSchedule"))
            same = {"labelSelector": {"matchLabels": {"app": chance.choice(APPS)}}}
            more = chance.choice(
                ({}, {"minDomains": 2} if when == "DoNotSchedule" else {}, {"nodeTaintsPolicy": "Honor"})
            )
            key = chance.choice((RACK, "kubernetes.io/hostname"))
            spec["topologySpreadConstraints"] = [
                {"maxSkew": chance.choice((1, 2)), "topologyKey": key, "whenUnsatisfiable": when, **same, **more}
            ]
        if self.one_in(6):
            operator = chance.choice(("Gt", "Lt"))
            level = {"key": "level", "operator": operator, "value": str(chance.randint(1, 5)), "effect": "NoSchedule"}
            spec["tolerations"] = [*spec.get("tolerations", ()), level]
        self._sizes(spec)
        return drawn

    def _sizes(self, spec: Manifest) -> None:
        """What a pod needs, said in other ways than by its containers."""
        chance = self.chance
        if self.one_in(6):
            first = builders.container("first", cpu=chance.choice(("1", "3")))
            if self.one_in(2):
                first["restartPolicy"] = "Always"
            spec["initContainers"] = [first]
        if self.one_in(8):
            spec["resources"] = {"requests": {"cpu": "8"}}
        if self.one_in(10):
            amounts = {chance.choice((EXTENDED, "deviceclass.resource.kubernetes.io/gpu")): "1"}
            many = [builders.container(f"more-{index}", resources={"limits": amounts}) for index in range(2)]
            spec["containers"] = [*spec["containers"], *many[: chance.choice((1, 2))]]

    def _on_rack(self) -> Manifest:
        return {"key": RACK, "operator": self.chance.choice(("In", "NotIn")), "values": [self.chance.choice(RACKS)]}

    def _company(self) -> Manifest:
        """Wanted or avoided company, perhaps in another namespace, perhaps only preferred."""
        chance = self.chance
        term: Manifest = {"topologyKey": chance.choice((RACK, "kubernetes.io/hostname"))}
        term["labelSelector"] = {"matchLabels": {"app": chance.choice(APPS)}}
        where: tuple[Manifest, ...] = (
            {},
            {"namespaces": [OTHER]},
            {"namespaceSelector": {}},
            {"namespaceSelector": {"matchLabels": {"team": "x"}}},
        )
        term |= chance.choice(where)
        kind = chance.choice(("podAffinity", "podAntiAffinity"))
        if self.one_in(2):
            weighed = [{"weight": chance.choice((1, 100)), "podAffinityTerm": term}]
            return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighed}}
        return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    def _claim(self, name: str) -> Manifest:
        made = super()._claim(name)
        if self.one_in(5):
            also = {"matchAttribute": f"{self.chance.choice(DRIVERS)}/{self.chance.choice(('v', 'tags', 'on', 'a'))}"}
            devices = made["spec"]["devices"]
            devices["constraints"] = [*devices.get("constraints", ()), also]
        return made

    def _asked(self) -> Manifest:
        wanted = super()._asked()
        if self.one_in(4):
            wanted["selectors"] = [*wanted.get("selectors", ()), *builders.cel(self.chance.choice(SELECTORS))]
        return wanted

    def _change(self) -> Change:
        return self.chance.choice((super()._change, super()._change, self._class_changes, self._pod_leaves))()

    def _class_changes(self) -> Change:
        name = self.chance.choice(("gpu", "any"))
        if self.one_in(4):
            return Change(builders.device_class(name), goes=True)
        if self.one_in(3):
            return Change(builders.device_class(name))
        spec = {"selectors": builders.cel(self.chance.choice(SELECTORS))}
        return Change(builders.device_class(name), patch={"spec": spec})

    def _pod_leaves(self) -> Change:
        """One of those that came, or that were there; nothing happens if there is no such pod."""
        name = self.chance.choice(("pod-0", "pod-1", "pod-2", "runs-0"))
        if self.one_in(3):
            return Change(builders.pod(name), patch={"metadata": {"finalizers": ["example.com/stay"]}})
        return Change(builders.pod(name), goes=True)
