"""What a namespace and a cluster ask of pods, and what they give them: the rules behind the server's plugins.

    service_account   the account of a pod: its token, pull secrets, which secrets it may mount
    limit_range       defaults and bounds of what containers, pods and volume claims ask for
    priority          the number behind the name of a priority class
    runtime_class     overhead and nodes of a class of runtimes
    security          the Pod Security Standards: what a level forbids

Pure: imports `dray.api` and `dray.validation`, does no I/O. What equal specs have in common is worked out once
(`dray.api.sharing`). `dray.server.admission` looks the accounts, ranges and classes up and asks these functions.
"""
