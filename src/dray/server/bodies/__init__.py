"""Bodies in: from the bytes and the query of a request to typed objects and options, or the complaint that is due.

Reads JSON, YAML and protobuf. Nothing is looked up in the store here.
"""
