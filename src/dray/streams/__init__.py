"""Conversations with containers: a terminal, standard streams and ports, over a connection that was HTTP before.

    websocket         frames and messages; a WebSocket as a plain `Duplex` (tunnels)
    spdy_frames       SPDY/3.1 as bytes: frames, compressed headers
    spdy              a SPDY connection with its streams, from either end
    sessions          standard streams, window sizes and the outcome of a command, over either of the two
    remote_command    exec and attach: which of these a client asks for
    port_forward      ports, over either of the two

What kubectl and other clients speak with a kubelet. A node serves with this; an API server translates with it for
kubelets that are older than their clients. May import `dray.process` and `dray.api`. Does I/O through the `Duplex` that
it is given.
"""
