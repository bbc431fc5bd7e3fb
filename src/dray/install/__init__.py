"""dray on somebody's Kubernetes cluster, as objects to apply: one source for `dray install` and for a Helm chart.

    values ──▶ pieces (objects with ${…} for values, and the conditions under which they are there)
                  ├──▶ manifests: conditions judged, values filled in
                  └──▶ chart: conditions as {{ if }}, values as {{ .Values }}

Pure: it makes values and text. Rights come from the roles that dray's own server starts with: there is one table.
May import everything below `dray.cli`.
"""

from dray.install.chart import chart_files
from dray.install.manifests import manifests
from dray.install.values import DEFAULTS, ValuesError, read_values

__all__ = ["DEFAULTS", "ValuesError", "chart_files", "manifests", "read_values"]
