"""Aggregated ClusterRoles show the rules that they give."""

from controller_world import controller_world, manifest

RBAC = "rbac.authorization.k8s.io"


async def test_aggregated_roles_are_the_sum_of_those_that_they_choose() -> None:
    async with controller_world("clusterrole-aggregation-controller") as world:
        before = (await world.get("clusterroles", "view")).rules
        assert before
        labels = {f"{RBAC}/aggregate-to-view": "true"}
        rule = {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]}
        part = manifest(f"{RBAC}/v1", "ClusterRole", "widgets-view", rules=[rule])
        part["metadata"]["labels"] = labels
        await world.create(part)
        await world.settle()
        for name in ("view", "edit", "admin"):
            found = await world.get("clusterroles", name)
            assert ("widgets",) in [given.resources for given in found.rules], name
        await world.delete("clusterroles", "widgets-view")
        await world.settle()
        assert (await world.get("clusterroles", "view")).rules == before
        await world.patch("clusterroles", "view", {"rules": []})
        await world.settle()
        assert (await world.get("clusterroles", "view")).rules == before


async def test_roles_that_choose_each_other_come_to_rest() -> None:
    async with controller_world("clusterrole-aggregation-controller") as world:
        rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
        for name, other in (("one", "other"), ("other", "one")):
            selector = {"matchLabels": {"part-of": name}}
            made = manifest(f"{RBAC}/v1", "ClusterRole", name, aggregationRule={"clusterRoleSelectors": [selector]})
            made["metadata"]["labels"] = {"part-of": other}
            await world.create(made)
        part = manifest(f"{RBAC}/v1", "ClusterRole", "part", rules=[rule])
        part["metadata"]["labels"] = {"part-of": "one"}
        await world.create(part)
        await world.settle()
        for name in ("one", "other"):
            assert [one.resources for one in (await world.get("clusterroles", name)).rules] == [("pods",)]
        before = world.server.engine.store.revision
        await world.settle(60)
        assert world.server.engine.store.revision == before
