"""What a kubelet serves over HTTPS: logs of containers, commands in them, their terminals and their ports.

    request ─▶ callers (who is it, may it? asked of the API server) ─▶ server (which pod) ─┬▶ logs
                                                                                         ├▶ commands (exec, attach)
                                                                                         └▶ ports

The API server comes here for `kubectl logs|exec|attach|cp|port-forward`, with a client certificate. Others need a
certificate of the cluster's authority, or a token, and the right to `nodes/proxy`. What is done in containers is
`runtime.console`; how it is spoken is `dray.streams`.
"""
