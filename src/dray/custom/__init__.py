"""Custom resources: what a CustomResourceDefinition says, made into functions once, when it is stored.

    definition_rules   what is wrong with a definition; what the server adds to it
    names, status      which names it gets; the conditions NamesAccepted and Established
    definition         a definition's versions, compiled: pruning, defaulting, checks, columns, selectable fields
    kinds              the `Kind` of each version, which a server's table of kinds takes in
    object_rules       how an object of such a kind is created and updated
    plain_types        a structural schema as a type: what it takes is right, and nothing else looks at it
    pruning, defaulting, value_checks, list_types, ratcheting
                       the functions that a structural schema is compiled to, for all the rest

Pure: imports `dray.api`, `dray.cel` and `dray.validation`, does no I/O. `dray.server.custom` follows the definitions in
a store and serves what is defined here.
"""
