#!/bin/sh
# Makes sure that the tests of the dashboard have what they need: Chromium and its driver, tsc for the types of the
# page, npm for axe-core, and promtool for the alert rules. Installs what is missing on PATH.
set -eu

missing=""
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
command -v chromedriver >/dev/null 2>&1 || missing="$missing chromium-driver"
command -v tsc >/dev/null 2>&1 || missing="$missing node-typescript"
command -v npm >/dev/null 2>&1 || missing="$missing npm"
command -v promtool >/dev/null 2>&1 || missing="$missing prometheus"
if [ -z "$missing" ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "missing, and there is no apt-get:$missing. Install them and put them on PATH" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    as_root="sudo"
fi
$as_root apt-get update -qq
# The server of Prometheus comes with promtool; it is not meant to run here.
# shellcheck disable=SC2086
$as_root apt-get install -y -qq --no-install-recommends $missing
