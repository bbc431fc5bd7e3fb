"""gRPC contracts between a node and its DRA drivers, as published by Kubernetes.

    protos/*.proto ─▶ tools.generate_protos ─▶ generated/*_pb2   messages
    contracts                                                    the methods: names on the wire, message types, versions
    unix                                                         channels and servers on Unix sockets

A node dials what it finds in the registry directory and calls `contracts.GET_INFO`; a driver serves. Both sides use
this package; it decides nothing. It may import `grpc`, nothing of dray.
"""
