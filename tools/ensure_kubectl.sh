#!/bin/sh
# Makes sure that kubectl is there: the tests of the server use it. Does nothing if it is on PATH already.
set -eu

if command -v kubectl >/dev/null 2>&1; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "kubectl is missing and there is no apt-get: install kubectl and put it on PATH" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    as_root="sudo"
fi
$as_root apt-get update -qq
$as_root apt-get install -y -qq --no-install-recommends kubernetes-client
