"""What a kubelet answers: logs of containers, commands in them, their terminals and ports. The server only leads there.

    request ─▶ questions (which container, which node: pure) ─▶ proxy ─┬▶ connection (TLS to the kubelet, as the server)
                                                                       ├▶ translation (for kubelets without WebSockets)
                                                                       └▶ simulated (nodes where nothing runs)

The caller's right to `pods/log`, `pods/exec` and so on was checked before; the kubelet sees the server's own client
certificate, and asks the server whether that may. Nothing of the caller's credentials is passed on.
"""
