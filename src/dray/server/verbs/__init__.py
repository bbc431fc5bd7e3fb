"""The verbs: what get, list, watch, create, update, patch and delete do to what is stored.

They take a `Call` (who asks for what, when) and typed values, and give records or raise ApiError; neither HTTP nor
bytes of requests are known here. `field_owners` and `quota` go along with every write.
"""
