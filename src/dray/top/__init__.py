"""`dray top`: the fleet, devices, what waits and why, evictions under way, full screen in a terminal.

    keys (bytes → names) ─▶ model.Top (press → asks), drawing (→ lines) ─▶ screen (→ sequences)
                                     ▲                     │
               live.Viewer ─▶ session (the loop) ◀─────────┘ explain, filter, preview, apply: worked out beside it

Shows what `dray.views` makes of the cluster, as the page does, with the rights of the kubeconfig's user. Only `tty` and
`session` do I/O. Control sequences are written by hand: what is needed of them is little, and a library for them takes
four times as long to load as everything else here.
"""
