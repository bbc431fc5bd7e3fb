"""Addresses and node ports of Services: given once, kept, and free again when the Service goes."""

from __future__ import annotations

import concurrent.futures
import ipaddress
from typing import Any

from live_server import LiveServer

RANGE = ipaddress.ip_network("10.96.0.0/12")


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}, **spec}}


def made(server: LiveServer, namespace: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = server.request("POST", f"/api/v1/namespaces/{namespace}/services", body)
    assert answer.code == 201, answer.body
    found: dict[str, Any] = answer.json["spec"]
    return found


def refused(server: LiveServer, namespace: str, body: dict[str, Any]) -> set[tuple[str, str]]:
    answer = server.request("POST", f"/api/v1/namespaces/{namespace}/services", body)
    assert answer.code == 422, answer.body
    return answer.causes


def test_an_address_is_given_kept_and_released(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services/one"
    spec = made(server, namespace, service("one"))
    address = spec["clusterIP"]
    assert ipaddress.ip_address(address) in RANGE
    assert (spec["clusterIPs"], spec["ipFamilies"], spec["ipFamilyPolicy"]) == ([address], ["IPv4"], "SingleStack")
    replaced = server.request("PUT", path, service("one", ports=[{"port": 81}]))
    assert (replaced.code, replaced.json["spec"]["clusterIP"]) == (200, address)
    moved = server.request("PUT", path, service("one", clusterIP="10.96.0.77", clusterIPs=["10.96.0.77"]))
    assert (moved.code, moved.causes) == (422, {("FieldValueInvalid", "spec.clusterIPs[0]")})
    assert refused(server, namespace, service("two", clusterIP=address)) == {("FieldValueInvalid", "spec.clusterIPs")}
    assert server.request("DELETE", path).code == 200
    assert made(server, namespace, service("two", clusterIP=address))["clusterIP"] == address


def test_addresses_that_cannot_be(server: LiveServer, namespace: str) -> None:
    assert refused(server, namespace, service("x", clusterIP="1.2.3.4")) == {("FieldValueInvalid", "spec.clusterIPs")}
    wrong = refused(server, namespace, service("x", clusterIP="nonsense"))
    assert wrong == {("FieldValueInvalid", "spec.clusterIPs[0]")}
    dual = refused(server, namespace, service("x", ipFamilyPolicy="RequireDualStack"))
    assert dual == {("FieldValueInvalid", "spec.ipFamilyPolicy")}
    assert refused(server, namespace, service("x", ipFamilies=["IPv6"])) == {
        ("FieldValueInvalid", "spec.ipFamilies[0]")
    }


def test_services_without_an_address(server: LiveServer, namespace: str) -> None:
    headless = made(server, namespace, service("headless", clusterIP="None"))
    assert (headless["clusterIPs"], headless["ipFamilies"]) == (["None"], ["IPv4"])
    external = made(
        server, namespace, {"metadata": {"name": "e"}, "spec": {"type": "ExternalName", "externalName": "a.b"}}
    )
    assert "clusterIP" not in external
    assert "ipFamilies" not in external
    path = f"/api/v1/namespaces/{namespace}/services/e"
    merge = "application/merge-patch+json"
    change = {"spec": {"type": "ClusterIP", "externalName": None, "ports": [{"port": 1}]}}
    address = server.request("PATCH", path, change, merge).json["spec"]["clusterIP"]
    assert ipaddress.ip_address(address) in RANGE
    back = {"spec": {"type": "ExternalName", "externalName": "a.b"}}
    assert "clusterIP" not in server.request("PATCH", path, back, merge).json["spec"]


def test_a_service_has_each_node_port_once(server: LiveServer, namespace: str) -> None:
    """Those that are asked for and those that are chosen: another may be in between."""
    path = f"/api/v1/namespaces/{namespace}/services?dryRun=All"
    # SCTP: of the other protocols, tests before this one may have left some that are asked for.
    ports: list[dict[str, Any]] = [{"name": f"p{n}", "port": n, "protocol": "SCTP"} for n in range(1, 1300)]
    asked = [{**port, **({"nodePort": 30_100 + port["port"]} if port["port"] % 3 else {})} for port in ports]
    answer = server.request("POST", path, service("many", type="NodePort", ports=asked))
    assert answer.code == 201, answer.body[:500]
    assert len({port["nodePort"] for port in answer.json["spec"]["ports"]}) == len(asked)


def test_node_ports_come_and_go_with_the_type(server: LiveServer, namespace: str) -> None:
    ports = [{"name": "t", "port": 53, "protocol": "TCP"}, {"name": "u", "port": 53, "protocol": "UDP"}]
    spec = made(server, namespace, service("n", type="NodePort", ports=ports))
    first, second = (port["nodePort"] for port in spec["ports"])
    assert 30000 <= first == second <= 32767
    taken = service("m", type="NodePort", ports=[{"port": 1, "nodePort": first}])
    assert refused(server, namespace, taken) == {("FieldValueInvalid", "spec.ports[0].nodePort")}
    outside = service("m", type="NodePort", ports=[{"port": 1, "nodePort": 80}])
    assert refused(server, namespace, outside) == {("FieldValueInvalid", "spec.ports[0].nodePort")}
    path = f"/api/v1/namespaces/{namespace}/services/n"
    kept = server.request("PUT", path, service("n", type="NodePort", ports=ports)).json["spec"]
    assert [port["nodePort"] for port in kept["ports"]] == [first, second]
    inside = server.request("PUT", path, service("n", ports=ports)).json["spec"]
    assert not any("nodePort" in port for port in inside["ports"])
    assert made(server, namespace, taken)["ports"][0]["nodePort"] == first
    local = made(server, namespace, service("l", type="LoadBalancer", externalTrafficPolicy="Local"))
    assert local["healthCheckNodePort"] >= 30000


def test_a_dry_run_takes_nothing(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services"
    body = service("d", type="NodePort", ports=[{"port": 1, "nodePort": 31999}])
    assert server.request("POST", f"{path}?dryRun=All", body).code == 201
    assert made(server, namespace, body)["ports"][0]["nodePort"] == 31999


def test_no_address_is_given_twice(server: LiveServer, namespace: str) -> None:
    def make(number: int) -> Any:
        other = LiveServer(server.url, server.directory)
        try:
            return made(other, namespace, service(f"many-{number}", type="NodePort"))
        finally:
            other.close()

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        specs = list(threads.map(make, range(40)))
    assert len({spec["clusterIP"] for spec in specs}) == 40
    assert len({spec["ports"][0]["nodePort"] for spec in specs}) == 40


def test_no_namespace_takes_all_ports_of_nodes(server: LiveServer, namespace: str) -> None:
    """A namespace has half of them; when all are taken, that is said, with what to do: no failure of the server."""
    others = f"{namespace}-others"
    for name in (others, f"{namespace}-late"):
        assert server.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}}).code == 201

    def many(count: int) -> dict[str, Any]:
        # SCTP, which no other test keeps ports of.
        ports = [{"name": f"p{n}", "port": n, "protocol": "SCTP"} for n in range(1, count + 1)]
        return service("many", type="NodePort", ports=ports)

    def refusal(where: str, body: dict[str, Any]) -> str:
        answer = server.request("POST", f"/api/v1/namespaces/{where}/services", body)
        assert (answer.code, answer.json["reason"]) == (403, "Forbidden")
        return str(answer.json["message"])

    assert "may have 1384 of the 2768 SCTP ports of nodes, and would have 1385" in refusal(namespace, many(1385))
    taken = {port["nodePort"] for port in made(server, namespace, many(1384))["ports"]}
    free = next(port for port in range(30000, 32768) if port not in taken)
    asked = service("one", type="NodePort", ports=[{"port": 1, "protocol": "SCTP", "nodePort": free}])
    assert "and would have 1385" in refusal(namespace, asked)
    path = f"/api/v1/namespaces/{namespace}/services/many"
    label = {"metadata": {"labels": {"still": "changed"}}}
    assert server.request("PATCH", path, label, "application/merge-patch+json").code == 200
    made(server, others, many(1384))
    full = refusal(f"{namespace}-late", many(1))
    assert "all 2768 SCTP ports of nodes are taken: have Services without them (type: ClusterIP" in full
    assert server.request("DELETE", path).code == 200
    made(server, namespace, many(1384))
    for name in (namespace, others):
        assert server.request("DELETE", f"/api/v1/namespaces/{name}/services/many").code == 200
