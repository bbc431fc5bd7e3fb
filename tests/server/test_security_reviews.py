"""Questions about rights and identities over HTTPS, asked by people with tokens and with client certificates."""

import contextlib
import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.client.http import HttpClient
from dray.client.kubeconfig import load_kubeconfig
from dray.server.instance import Instance, ServerSettings
from dray.server.security.identity import NODES, authenticated
from dray.server.security.kubeconfig import client_kubeconfig
from local_server import refused, typed
from server_objects import binding, node, pod, service_account

AUTHORIZATION = "authorization.k8s.io/v1"
AUTHENTICATION = "authentication.k8s.io/v1"
ACCOUNTS = by_kind("v1", "ServiceAccount")
SECRETS = by_kind("v1", "Secret")


class People:
    """Clients of one server: its admin, and whoever has a token or gets a certificate."""

    def __init__(self, instance: Instance, directory: Path) -> None:
        self.instance = instance
        self._directory = directory
        self._admin = load_kubeconfig([instance.kubeconfig])
        self._open: list[HttpClient] = []

    def admin(self) -> HttpClient:
        return self._add(HttpClient(self._admin))

    def with_token(self, token: str) -> HttpClient:
        return self._add(HttpClient(replace(self._admin, token=token)))

    def with_certificate(self, user: str, *groups: str) -> HttpClient:
        now = dt.datetime.now(dt.UTC)
        path = self._directory / "kubeconfig"
        path.write_bytes(client_kubeconfig(self.instance.credentials.authority, self.instance.url, user, groups, now))
        return self._add(HttpClient(load_kubeconfig([path])))

    def _add(self, client: HttpClient) -> HttpClient:
        self._open.append(client)
        return client

    async def leave(self) -> None:
        for client in self._open:
            await client.close()


@contextlib.asynccontextmanager
async def served_people(directory: Path) -> AsyncIterator[People]:
    tokens = {"janes-token-of-some-length": authenticated("jane", ("team",), "uid-1")}
    instance = Instance(ServerSettings(directory=directory / "state", port=0, tokens=tokens))
    await instance.start()
    people = People(instance, directory)
    try:
        yield people
    finally:
        await people.leave()
        await instance.stop(0.1)


def review(api_version: str, kind: str, spec: dict[str, Any], namespace: str = "") -> Any:
    return typed({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": namespace}, "spec": spec})


def asked(verb: str, resource: str, namespace: str = "", **more: str) -> dict[str, str]:
    return {"verb": verb, "resource": resource, "namespace": namespace, **more}


async def test_who_am_i(tmp_path: Path) -> None:
    async with served_people(tmp_path) as people:
        who = typed({"apiVersion": AUTHENTICATION, "kind": "SelfSubjectReview"})
        for client, user, groups in (
            (people.with_token("janes-token-of-some-length"), "jane", {"team", "system:authenticated"}),
            (people.with_certificate("joe", "a", "b"), "joe", {"a", "b", "system:authenticated"}),
        ):
            info = cast(Any, await client.create(who)).status.user_info
            assert (info.username, set(info.groups)) == (user, groups)


async def test_may_i_and_may_they(tmp_path: Path) -> None:
    async with served_people(tmp_path) as people:
        admin, jane = people.admin(), people.with_token("janes-token-of-some-length")
        what = {"resourceAttributes": asked("list", "pods", "default")}
        may_i = review(AUTHORIZATION, "SelfSubjectAccessReview", what)
        they = {**what, "user": "jane"}
        may_they = review(AUTHORIZATION, "SubjectAccessReview", they)
        local = review(AUTHORIZATION, "LocalSubjectAccessReview", they, "default")
        for allowed in (False, True):
            if allowed:
                await admin.create(binding("jane", "view", "jane", "default"))
            for client, question in ((jane, may_i), (admin, may_they), (admin, local)):
                answer = (await client.create(question)).status
                assert answer.allowed is allowed
                assert ('RoleBinding "jane/default"' in answer.reason) is allowed
        metrics = {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}
        path = review(AUTHORIZATION, "SelfSubjectAccessReview", metrics)
        assert not (await jane.create(path)).status.allowed
        assert (await admin.create(path)).status.allowed
        await refused(jane.create(may_they), "cannot create")


async def test_what_may_i_do(tmp_path: Path) -> None:
    async with served_people(tmp_path) as people:
        jane = people.with_token("janes-token-of-some-length")
        await people.admin().create(binding("jane", "view", "jane", "default"))
        rules = (await jane.create(review(AUTHORIZATION, "SelfSubjectRulesReview", {"namespace": "default"}))).status
        assert any("pods" in rule.resources and "list" in rule.verbs for rule in rules.resource_rules)
        assert any("/version" in rule.non_resource_urls for rule in rules.non_resource_rules)
        assert not rules.incomplete


async def test_whose_token_is_this(tmp_path: Path) -> None:
    async with served_people(tmp_path) as people:
        admin = people.admin()
        good = (
            await admin.create(review(AUTHENTICATION, "TokenReview", {"token": "janes-token-of-some-length"}))
        ).status
        assert (good.authenticated, good.user.username, good.user.uid) == (True, "jane", "uid-1")
        bad = (await admin.create(review(AUTHENTICATION, "TokenReview", {"token": "forged"}))).status
        assert (bad.authenticated, bool(bad.error)) == (False, True)
        with pytest.raises(ApiError) as missing:
            await admin.create(review(AUTHENTICATION, "TokenReview", {}))
        assert (missing.value.code, missing.value.reason) == (422, "Invalid")


async def test_a_service_account_gets_in_with_its_token(tmp_path: Path) -> None:
    async with served_people(tmp_path) as people:
        admin = people.admin()
        await admin.create(service_account("robot"))
        issued = await admin.post(ACCOUNTS, "default", "robot", "token", {"spec": {"expirationSeconds": 600}})
        robot = people.with_token(issued["status"]["token"])
        info = (
            await robot.create(cast(Any, typed({"apiVersion": AUTHENTICATION, "kind": "SelfSubjectReview"})))
        ).status
        assert info.user_info.username == "system:serviceaccount:default:robot"
        assert "system:serviceaccounts:default" in info.user_info.groups
        await refused(robot.list(SECRETS, "default"), "cannot list")
        await admin.delete(ACCOUNTS, "default", "robot")
        with pytest.raises(ApiError) as gone:
            await robot.list(SECRETS, "default")
        assert gone.value.code == 401


async def test_reviews_are_answered_and_not_stored(tmp_path: Path) -> None:
    async with served_people(tmp_path) as people:
        before = people.instance.store.revision
        admin = people.admin()
        answer = await admin.create(review(AUTHORIZATION, "SelfSubjectRulesReview", {"namespace": "default"}))
        assert answer.metadata.resource_version == ""
        with pytest.raises(ApiError) as unlisted:
            await admin.list(by_kind(AUTHORIZATION, "SelfSubjectRulesReview"))
        assert unlisted.value.code == 405
        assert people.instance.store.revision == before


async def test_nodes_with_certificates_are_limited_in_what_they_read(tmp_path: Path) -> None:
    async with served_people(tmp_path) as people:
        admin, n1 = people.admin(), people.with_certificate("system:node:n1", NODES)
        metadata = {"name": "s", "namespace": "default"}
        await admin.create(typed({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}))
        await n1.create(node("n1"))
        await refused(n1.create(node("n2")), "not allowed to modify node")
        await refused(n1.get(SECRETS, "default", "s"), "no relationship found")
        await admin.create(pod("user", "n1", volumes=[{"name": "v", "secret": {"secretName": "s"}}]))
        assert (await n1.get(SECRETS, "default", "s")).metadata.name == "s"
        question = asked("get", "secrets", "default", name="other")
        may_i = review(AUTHORIZATION, "SelfSubjectAccessReview", {"resourceAttributes": question})
        with pytest.raises(ApiError):
            await people.with_token("wrong-token-of-some-length").create(may_i)
        they = {"user": "system:node:n1", "groups": ["system:nodes"], "resourceAttributes": question}
        answer = (await admin.create(review(AUTHORIZATION, "SubjectAccessReview", they))).status
        assert (answer.allowed, "no relationship" in answer.reason) == (False, True)


@pytest.mark.req("implied-16")
async def test_components_of_the_instance_have_their_rights(tmp_path: Path) -> None:
    async with served_people(tmp_path) as people:
        scheduler = people.instance.local_client("kube-scheduler")
        await scheduler.list(by_kind("v1", "Pod"))
        await refused(scheduler.list(SECRETS), "system:kube-scheduler")
        with pytest.raises(ValueError, match="no role is meant"):
            people.instance.local_client("nobody")
