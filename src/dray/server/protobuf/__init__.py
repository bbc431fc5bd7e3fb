"""Protobuf as Kubernetes' typed clients send and ask for it: bodies in, answers out, always by way of JSON's values.

    numbers/*.txt ──▶ tables ──▶ descriptors ──▶ read    (bytes → what the JSON decoder would have given)
                                            └──▶ write   (an answer in JSON → the same answer in protobuf)

`numbers` holds the published field numbers, one file for each group in a version, made by `tools/wire_numbers.py`. The
runtime of protobuf, which is C, does the encoding; what JSON writes in another way (times, quantities, embedded JSON,
fields that stand one level higher) is put into its place before and after. Measured against tables of our own with an
encoder in Python, a pod is read in less than half of the time, and written in about the same. Pure.
"""
