"""Typed Kubernetes objects and the values inside them. Pure data: no I/O, imports nothing else of dray.

`resource` (resource.k8s.io), `cluster` (Open Cluster Management) and `meta` are written by hand; `generated` holds the
other groups, made by `tools/generate_api.py`. `registry` lists every kind; `codec` turns JSON into objects and back.
What comes next in the flow: `dray.validation` converts, defaults and checks what was decoded here.
"""
