"""The OpenAPI documents of the server: what it serves, in a form that kubectl validates, explains and applies with.

`schemas` turns the facts of `dray.api.schema` into JSON schemas, `operations` lists what can be asked for, `documents`
puts both together in version 2 or 3, `pages` serves them. Descriptions are dray's own. Pure but for `pages`.
"""
