"""The decision of the scheduler: a node for a pod, and devices for its claims, or why there is none.

    nodes, pods, slices, classes, claims ─▶ Cluster ─┐
    pod ─▶ read_pod ─▶ PodInfo ──────────────────────┴─▶ decide ─▶ Chosen, or Refused: reasons ─▶ text
                                                           ├─ filters   what a node has against a pod, one module each
                                                           ├─ devices   what its claims get on a node
                                                           └─ scoring   which node is the best
    Rehearsal: a Cluster in which pods are bound one after the other, and everything can be taken back

Pure and synchronous: imports `dray.prose` and what is below it, does no I/O, reads no clock (one may be given) and
changes none of its inputs. The live scheduler, explanations, previews and plans for more nodes all ask this one.
"""
