"""Who gets in, and with what: cookies, keys, links, other sites, rights that are taken away. Over real sockets."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from dashboard_visitor import API, Visitor
from dray.dashboard.access import Caller
from dray.dashboard.sessions import MOST_OF_ONE, MOST_SESSIONS, MOST_VIEWS, Sessions
from dray.eviction.told_limit import LIMIT_ANNOTATION
from dray.process.clock import RealClock
from dray_process import DrayProcess
from live_server import LiveServer, running_server
from patience import PATIENCE, eventually


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("dashboard")
    tokens = folder / "tokens.csv"
    tokens.write_text("nobody-token,nobody,7,\n")
    with running_server(folder / "state", "--token-file", str(tokens)) as found:
        yield found


def test_the_page_lets_nothing_in_from_elsewhere(server: LiveServer) -> None:
    code, headers, body = Visitor(server).ask("GET", "/dashboard/")
    policy = headers["Content-Security-Policy"]
    assert code == 200
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert b"http" not in body, "nothing comes from another server"
    assert Visitor(server).ask("GET", "/dashboard")[:2][0] == 307
    for path in ("nothing.js", "../app.py", "%2e%2e/app.py", "static/main.js", "..%2fapp.py"):
        assert Visitor(server).ask("GET", f"/dashboard/{path}")[0] == 404


def test_a_session_needs_both_of_its_secrets(server: LiveServer) -> None:
    visitor = Visitor(server)
    assert visitor.ask("GET", f"{API}/session")[0] == 401
    assert visitor.log_in(token=server.token) == 200
    code, headers, told = visitor.ask("GET", f"{API}/session")
    assert (code, told["user"], told["mayTaint"]) == (200, "kubernetes-admin", True)
    assert headers["Cache-Control"] == "no-store"
    cookie, key = visitor.cookie, visitor.key
    for visitor.cookie, visitor.key in ((cookie, ""), ("", key), (cookie, key[:-1] + "~"), (f"{cookie}x", key)):
        assert visitor.ask("GET", f"{API}/session")[0] == 401
    visitor.cookie, visitor.key = cookie, key
    assert visitor.ask("POST", f"{API}/logout", {})[0] == 200
    assert visitor.ask("GET", f"{API}/session")[0] == 401


def test_the_cookie_is_for_this_page_alone(server: LiveServer) -> None:
    _, headers, _ = Visitor(server).ask("POST", f"{API}/login", {"token": server.token})
    attributes = {part.strip() for part in headers["Set-Cookie"].split(";")[1:]}
    assert {"HttpOnly", "Secure", "SameSite=Strict", "Path=/dashboard/"} <= attributes
    assert server.token not in headers["Set-Cookie"]


def test_requests_of_other_sites_are_refused(server: LiveServer) -> None:
    visitor = Visitor(server)
    assert visitor.log_in(token=server.token) == 200
    wish = {"name": "some-rule"}
    for headers in (
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},  # another port of this host
        {"Origin": "https://evil.example"},
        {"Origin": f"https://127.0.0.1:{server.port + 1}"},
        {"Origin": "null"},
    ):
        for method, path in (("POST", f"{API}/undo"), ("GET", f"{API}/session"), ("POST", f"{API}/login")):
            assert visitor.ask(method, path, wish if method == "POST" else None, **headers)[0] == 403
    own = {"Origin": f"https://127.0.0.1:{server.port}"}
    assert visitor.ask("GET", f"{API}/session", **own)[0] == 200
    # What a form of another site can send without asking first is no JSON.
    assert visitor.ask("POST", f"{API}/undo", wish, Content_Type="text/plain")[0] == 415
    assert visitor.ask("GET", f"{API}/undo")[0] == 405
    assert visitor.ask("POST", f"{API}/session", {})[0] == 405


def test_bad_credentials_and_bad_input_are_refused_in_words(server: LiveServer) -> None:
    visitor = Visitor(server)
    for shown in ({"token": "wrong"}, {"token": ""}, {"code": "wrong"}, {"token": "a\nb"}, {}):
        assert visitor.log_in(**shown) == 401
    assert visitor.ask("POST", f"{API}/login", {"tokens": "x"})[0] == 400
    assert visitor.ask("POST", f"{API}/login", {"token": "x" * 100_000})[0] == 413
    assert visitor.log_in(token=server.token) == 200
    assert visitor.ask("GET", f"{API}/watch?view=nothing")[0] == 404
    assert visitor.ask("GET", f"{API}/fleet?cel=nonsense")[0] == 422
    assert visitor.ask("GET", f"{API}/explain?pod=default/none")[0] == 422
    code, _, told = visitor.ask("POST", f"{API}/preview", {"selections": [{"node": "none"}], "key": "a"})
    assert (code, "no node none" in told["error"]) == (422, True)
    code, _, told = visitor.ask("POST", f"{API}/preview", {"selections": [{"node": "none"}], "key": "a b"})
    assert (code, "not valid" in told["error"]) == (422, True)
    code, _, told = visitor.ask("POST", f"{API}/preview", {"selections": [{}], "key": "a", "hours": 1.5})
    wrong = "the body cannot be read: hours must be a whole number or nothing, and is a number with a fraction"
    assert (code, told["error"]) == (400, wrong)
    code, _, told = visitor.ask("POST", f"{API}/preview", {"selections": [{"cel": ["1 +"]}], "key": "a"})
    assert (code, told["error"].startswith("CEL: ")) == (422, True)


def test_nothing_is_seen_or_done_with_the_rights_of_the_server(server: LiveServer) -> None:
    server.request("POST", "/api/v1/namespaces/default/pods", _pod("hidden"))
    rule = {"metadata": {"name": "kept"}, "spec": {"taint": {"key": "a", "effect": "NoSchedule"}, "deviceSelector": {}}}
    assert server.request("POST", "/apis/resource.k8s.io/v1/devicetaintrules", rule).code == 201
    visitor = Visitor(server)
    assert visitor.log_in(token="nobody-token") == 200
    assert visitor.ask("GET", f"{API}/session")[2]["mayTaint"] is False
    code, _, told = visitor.ask("GET", f"{API}/watch?view=waiting&once=1")
    assert (code, told["pods"], told["claims"]) == (200, [], [])
    assert "you may not list and watch pods" in told["missing"]
    assert visitor.ask("GET", f"{API}/watch?view=rules&once=1")[2]["rules"] == []
    for path in ("undo", "stop", "confirm"):
        assert visitor.ask("POST", f"{API}/{path}", {"name": "kept"})[0] == 403
    assert server.request("GET", "/apis/resource.k8s.io/v1/devicetaintrules/kept").code == 200
    admin = Visitor(server)
    assert admin.log_in(token=server.token) == 200
    seen = admin.ask("GET", f"{API}/watch?view=waiting&once=1")[2]["pods"]
    assert [one["name"] for one in seen] == ["default/hidden"]
    assert admin.ask("POST", f"{API}/undo", {"name": "kept"})[0] == 200
    assert server.request("GET", "/apis/resource.k8s.io/v1/devicetaintrules/kept").code == 404


@pytest.mark.req("5055-104")
def test_what_a_driver_asks_for_is_seen_and_confirmed(server: LiveServer) -> None:
    """Rules and nodes have conditions that tell what is held; the pools of drivers have none."""
    resource, pods = "/apis/resource.k8s.io/v1", "/api/v1/namespaces/default/pods"
    limit = {"metadata": {"annotations": {LIMIT_ANNOTATION: "1"}}}
    merge = "application/merge-patch+json"
    assert server.request("PATCH", "/api/v1/namespaces/kube-system", limit, merge).code == 200
    pool = {"name": "n", "generation": 3, "resourceSliceCount": 1}
    broken = {"key": "x.example.com/broken", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    spec = {"driver": "x.example.com", "nodeName": "n", "pool": pool, "devices": [{"name": "d", "taints": [broken]}]}
    assert server.request("POST", f"{resource}/resourceslices", {"metadata": {"name": "s"}, "spec": spec}).code == 201
    asked = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    claims = f"{resource}/namespaces/default/resourceclaims"
    claim = server.request("POST", claims, {"metadata": {"name": "c"}, "spec": asked}).json
    pod = _pod("user")
    pod["spec"] |= {"nodeName": "n", "resourceClaims": [{"name": "r", "resourceClaimName": "c"}]}
    uid = server.request("POST", pods, pod).json["metadata"]["uid"]
    result = {"request": "r", "driver": "x.example.com", "pool": "n", "device": "d"}
    user = {"resource": "pods", "name": "user", "uid": uid}
    claim["status"] = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
    assert server.request("PUT", f"{claims}/c/status", claim).code == 200
    admin = Visitor(server)
    assert admin.log_in(token=server.token) == 200
    view = f"{API}/watch?view=rules&once=1"
    [row] = eventually(lambda: admin.ask("GET", view)[2]["pools"])
    assert (row["name"], row["pool"], row["pods"]) == ("s", "x.example.com/n", 1)
    assert "nobody confirmed it" in row["held"]
    slice_ = {"name": "s", "kind": "slice"}
    code, _, told = admin.ask("POST", f"{API}/stop", slice_)
    assert (code, "its driver publishes the taint" in told["error"]) == (422, True)
    nobody = Visitor(server)
    assert nobody.log_in(token="nobody-token") == 200
    assert nobody.ask("GET", view)[2]["pools"] == []
    assert nobody.ask("POST", f"{API}/confirm", slice_)[0] == 403
    assert admin.ask("POST", f"{API}/confirm", slice_)[0] == 200
    eventually(lambda: admin.ask("GET", view)[2]["pools"] == [])


def test_without_a_link_everybody_needs_a_token(server: LiveServer) -> None:
    """As `dray install` runs it: whatever the kubeconfig may do, nobody gets in with that."""
    words = ("dashboard", "--no-link", "--port", "0", "--kubeconfig", server.kubeconfig)
    with DrayProcess(*words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline() + process.stdout.readline()
            assert "code=" not in said
            connection = http.client.HTTPConnection(said.split("http://")[1].partition("/")[0], timeout=PATIENCE)
            told, form = {}, {"Content-Type": "application/json"}
            with contextlib.closing(connection):
                for token in ("wrong", "nobody-token"):
                    connection.request("POST", f"{API}/login", json.dumps({"token": token}), form)
                    answer = connection.getresponse()
                    told[token] = (answer.status, json.loads(answer.read()).get("user"))
            assert told == {"wrong": (401, None), "nobody-token": (200, "nobody")}
        finally:
            process.terminate()
            process.wait(PATIENCE)


def test_a_token_that_is_no_longer_good_ends_its_session(server: LiveServer) -> None:
    account = {"metadata": {"name": "guest", "namespace": "default"}}
    assert server.request("POST", "/api/v1/namespaces/default/serviceaccounts", account).code == 201
    place = "/api/v1/namespaces/default/serviceaccounts/guest"
    token = server.request("POST", f"{place}/token", {"spec": {}}).json["status"]["token"]
    visitor = Visitor(server)
    assert visitor.log_in(token=token) == 200
    assert visitor.ask("GET", f"{API}/session")[0] == 200
    assert server.request("DELETE", place).code == 200
    assert visitor.ask("GET", f"{API}/session")[0] == 401
    assert Visitor(server).log_in(token=token) == 401


class _Everybody:
    """Lets whoever says a name in as that one."""

    name, check_seconds = "a cluster", 30.0

    async def enter(self, token: str) -> Caller:
        nobody: Any = None
        return Caller(token, (), nobody, nobody)

    async def is_still_in(self, caller: Caller) -> bool:
        return caller.user != ""

    async def leave(self, caller: Caller) -> None:
        assert caller.user


async def test_whoever_makes_accounts_without_end_ends_nobody_elses_session() -> None:
    sessions = Sessions(_Everybody(), RealClock())
    kept = [(await sessions.log_in(token=name))[1:] for name in ("alice", "system:serviceaccount:shop:web")]
    for number in range(MOST_SESSIONS + 50):
        await sessions.log_in(token=f"system:serviceaccount:mallory:account-{number}")
    assert None not in [await sessions.find(*one) for one in kept]
    assert len(sessions._sessions) == len(kept) + MOST_OF_ONE


async def test_when_there_is_no_room_the_oldest_session_of_whoever_has_most_ends() -> None:
    sessions = Sessions(_Everybody(), RealClock())
    _, *first = await sessions.log_in(token="alice")
    many = [(await sessions.log_in(token="mallory"))[1:] for _ in range(MOST_OF_ONE)]
    for number in range(MOST_SESSIONS - MOST_OF_ONE):
        await sessions.log_in(token=f"user-{number}")
    assert await sessions.find(*first) is not None
    assert await sessions.find(*many[0]) is None
    assert await sessions.find(*many[1]) is not None


def test_one_tenant_has_a_few_views_at_a_time_however_many_sessions(server: LiveServer) -> None:
    """Each holds all that its caller may see: with twenty sessions, twenty times that."""
    for name in ("one", "two"):
        path = f"/api/v1/namespaces/default/serviceaccounts/{name}"
        assert server.request("POST", path.rpartition("/")[0], {"metadata": {"name": name}}).code == 201
    tokens = [
        server.request("POST", f"/api/v1/namespaces/default/serviceaccounts/{name}/token", {"spec": {}}).json["status"][
            "token"
        ]
        for name in ("one", "two")
    ]
    visitors = [Visitor(server) for _ in range(MOST_VIEWS + 1)]
    for number, visitor in enumerate(visitors):
        assert visitor.log_in(token=tokens[number % 2]) == 200
    # Nobody looks at a view that is asked for once: it makes room for the next.
    for visitor in visitors * 2:
        assert visitor.ask("GET", f"{API}/watch?view=waiting&once=1")[0] == 200
    with contextlib.ExitStack() as open_streams:
        for visitor in visitors[:-1]:
            stream = open_streams.enter_context(contextlib.closing(server.connect()))
            stream.request("GET", f"{API}/watch?view=waiting", headers=visitor.headers())
            answer = open_streams.enter_context(stream.getresponse())
            assert answer.status == 200
            answer.readline()
        code, _, told = visitors[-1].ask("GET", f"{API}/watch?view=waiting&once=1")
        assert (code, told["error"]) == (429, "too many sessions of yours see something: close some of them")
        other = Visitor(server)
        assert other.log_in(token="nobody-token") == 200
        assert other.ask("GET", f"{API}/watch?view=waiting&once=1")[0] == 200

    def sees() -> bool:
        return visitors[-1].ask("GET", f"{API}/watch?view=waiting&once=1")[0] == 200

    eventually(sees)


def _pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "x"}]}}


def test_the_api_itself_is_as_it_was(server: LiveServer) -> None:
    assert server.request("GET", "/dashboards").code == 404
    assert server.request("GET", "/api/v1/namespaces/default").code == 200
    connection: http.client.HTTPSConnection = server.connect()
    connection.request("GET", "/api/v1/pods", headers={"Cookie": "__Secure-dray=x"})
    assert connection.getresponse().status == 403, "a cookie is worth nothing to the API"
    connection.close()
