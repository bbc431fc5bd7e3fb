"""Rights by name, and rights to create: what a request says about itself beside its path gives none."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from live_server import Answer, LiveServer, running_server
from patience import PATIENCE

RBAC = "/apis/rbac.authorization.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
TOKENS = "one,eve,1\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Eve has every verb on ConfigMaps, of the name `mine` only, and may impersonate nobody."""
    directory: Path = tmp_path_factory.mktemp("names")
    (directory / "tokens").write_text(TOKENS)
    with running_server(directory / "state", "--token-file", str(directory / "tokens")) as running:
        rule = {"verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine", "new"]}
        patch = {"verbs": ["patch", "update"], "apiGroups": [""], "resources": ["pods", "secrets"]}
        role = {"metadata": {"name": "eve"}, "rules": [rule, patch]}
        assert running.request("POST", f"{RBAC}/clusterroles", role).code == 201
        binding = {
            "metadata": {"name": "eve"},
            "subjects": [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "eve"},
        }
        assert running.request("POST", f"{RBAC}/clusterrolebindings", binding).code == 201
        for name in ("mine", "theirs"):
            assert running.request("POST", MAPS, {"metadata": {"name": name}, "data": {"of": name}}).code == 201
        yield running


def as_eve(server: LiveServer, method: str, path: str, body: Any = None, form: str = "application/json") -> Answer:
    return server.request(method, path, body, form, Authorization="Bearer one")


NAMED = "fieldSelector=metadata.name%3Dmine"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", MAPS),
        ("DELETE", MAPS),
        ("GET", f"{MAPS}/theirs"),
        ("PUT", f"{MAPS}/theirs"),
        ("PATCH", f"{MAPS}/theirs"),
        ("DELETE", f"{MAPS}/theirs"),
        ("GET", f"{MAPS}/theirs?watch=1"),
    ],
)
@pytest.mark.parametrize("selector", [NAMED, f"{NAMED}%2Cmetadata.namespace%3Ddefault"])
def test_a_name_in_a_selector_gives_no_right_to_another_verb(
    server: LiveServer, method: str, path: str, selector: str
) -> None:
    asked = f"{path}{'&' if '?' in path else '?'}{selector}"
    named = {"metadata": {"name": "theirs" if "theirs" in path else "sneaky"}}
    body = named if method in ("POST", "PUT", "PATCH") else None
    form = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = as_eve(server, method, asked, body, form)
    assert answer.code == 403, answer.body
    assert server.request("GET", f"{MAPS}/sneaky").code == 404
    assert server.request("GET", f"{MAPS}/theirs").code == 200


@pytest.mark.parametrize(
    ("selector", "code"),
    [
        (NAMED, 200),
        ("fieldSelector=metadata.name%3D%3Dmine", 200),
        (f"{NAMED}%2Cmetadata.namespace%3Ddefault", 200),
        ("fieldSelector=metadata.name%21%3Dmine", 403),
        ("fieldSelector=metadata.name%3Dtheirs", 403),
        (f"fieldSelector=metadata.name%3Dtheirs&{NAMED}", 403),
        ("", 403),
    ],
)
def test_a_list_or_watch_of_one_name(server: LiveServer, selector: str, code: int) -> None:
    assert as_eve(server, "GET", f"{MAPS}?{selector}").code == code
    assert as_eve(server, "GET", f"{MAPS}?watch=1&timeoutSeconds=1&{selector}").code == code


def test_an_apply_that_creates_needs_create(server: LiveServer) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c", "image": "i"}]}}
    path, form = f"{PODS}/made?fieldManager=eve", "application/apply-patch+yaml"
    for dry_run in ("", "&dryRun=All"):
        answer = as_eve(server, "PATCH", path + dry_run, pod, form)
        assert answer.code == 403, answer.body
        why = 'User "eve" cannot create resource "pods" in API group "" in the namespace "default"'
        assert answer.json["message"] == f'pods "made" is forbidden: {why}'
    assert server.request("GET", f"{PODS}/made").code == 404
    assert server.request("PATCH", path, pod, form).code == 201
    assert as_eve(server, "PATCH", path, pod, form).code == 200, "what is there may be applied to with patch alone"


def test_a_right_to_create_one_name_is_enough_for_an_apply(server: LiveServer) -> None:
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    form = "application/apply-patch+yaml"
    assert as_eve(server, "PATCH", f"{MAPS}/new?fieldManager=eve", applied, form).code == 201
    assert as_eve(server, "PATCH", f"{MAPS}/other?fieldManager=eve", applied, form).code == 403


def test_an_update_creates_nothing(server: LiveServer) -> None:
    secret = {"metadata": {"name": "made"}, "data": {}}
    assert as_eve(server, "PUT", "/api/v1/namespaces/default/secrets/made", secret).code == 404


WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
TRAILERS = {
    "Authorization": "Bearer {admin}",
    "Impersonate-User": "admin",
    "Impersonate-Group": "system:masters",
    "Content-Type": "application/yaml",
}


@pytest.mark.parametrize("name", TRAILERS)
def test_trailers_are_not_headers(server: LiveServer, name: str) -> None:
    """They come after the body, when a proxy in front has looked at the headers already."""
    trailer = f"{name}: {TRAILERS[name].format(admin=server.token)}\r\n"
    body = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
    head = (
        f"POST {WHO} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer one\r\nContent-Type: application/json\r\n"
        f"Transfer-Encoding: chunked\r\nTrailer: {name}\r\nConnection: close\r\n\r\n"
    )
    sent = head.encode() + b"%x\r\n%b\r\n0\r\n" % (len(body), body) + trailer.encode() + b"\r\n"
    answer = asyncio.run(_exchange(server, sent))
    assert b" 201 " in answer.splitlines()[0], answer
    assert b'"username":"eve"' in answer


def test_trailers_are_limited_as_headers_are(server: LiveServer) -> None:
    head = f"POST {WHO} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer one\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    many = b"".join(b"x-%d: %b\r\n" % (number, b"y" * 1000) for number in range(100))
    answer = asyncio.run(_exchange(server, head.encode() + many + b"\r\n"))
    assert b" 431 " in answer.splitlines()[0], answer


async def _exchange(server: LiveServer, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(server.host, server.port, ssl=server.tls)
    writer.write(sent)
    answer = await asyncio.wait_for(reader.read(65536), PATIENCE)
    writer.close()
    with contextlib.suppress(OSError):  # the server may have ended the connection first
        await writer.wait_closed()
    return answer


@pytest.mark.parametrize("path", [f"{MAPS}/mine?watch=true", "/api/v1/watch/namespaces/default/configmaps/mine?"])
def test_the_right_to_watch_one_object_does_not_show_another(server: LiveServer, path: str) -> None:
    seen = as_eve(server, "GET", f"{path}&timeoutSeconds=1&fieldSelector=metadata.name%3Dtheirs")
    assert b"theirs" not in seen.body
    assert b'"of":"mine"' in as_eve(server, "GET", f"{path}&timeoutSeconds=1").body
