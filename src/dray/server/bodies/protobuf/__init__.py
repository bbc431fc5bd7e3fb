"""Protobuf as Kubernetes' typed clients send it: bytes in, plain JSON values out.

`wire` knows the encoding, `messages` the published field numbers of the kinds that such clients write, `decode` turns a
body into the value that the JSON decoder would have given. Answers stay JSON, which those clients accept. Pure.
"""
