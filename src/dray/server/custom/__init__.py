"""Custom resources in a server: the definitions in its store become kinds in its table.

`defined_kinds` follows the definitions and is brought up to date when somebody looks a kind up, so that a resource is
served from the moment that its definition's create is answered. `bodies` reads documents of such kinds, `upkeep`
settles names and empties a resource whose definition is to go. What a definition means is in `dray.custom`.
"""
