"""`dray lint` without files looks at the running cluster, which has everything: what is not there is missing."""

from __future__ import annotations

import json

from builders import claim_template, manifest, pod_claim, request
from commands import run_here
from live_server import Kubectl, LiveServer


def test_a_pod_whose_template_is_missing_is_odd(kubectl: Kubectl, server: LiveServer) -> None:
    claims = [pod_claim("a", template="nobody-made")]
    containers = [{"name": "c", "image": "i"}]
    waiting = manifest("v1", "Pod", "lint-me", spec={"containers": containers, "resourceClaims": claims})
    kubectl("apply", "-f", "-", stdin=json.dumps(waiting))
    look = ("lint", "-o", "json", "-n", "default", "--kubeconfig", str(server.kubeconfig))
    try:
        lacking = run_here(*look)
        kubectl("apply", "-f", "-", stdin=json.dumps(claim_template("nobody-made", request())))
        made = run_here(*look)
    finally:
        kubectl("delete", "pod/lint-me", "--now")
        kubectl("delete", "resourceclaimtemplate/nobody-made", "--ignore-not-found")
    found = [(one["object"], one["reason"]) for one in json.loads(lacking.stdout)["findings"]]
    assert ("Pod default/lint-me", "UnknownTemplate") in found, lacking.stderr
    assert "UnknownTemplate" not in made.stdout
