"""Custom resources: what a CustomResourceDefinition says, made into functions once, when it is stored.

    definition_rules   what is wrong with a definition; what the server adds to it; schemas (schema_rules, list_rules,
                       default_rules) and their rules (rule_checks, schema_sizes) in modules of their own
    names              which names it gets; the conditions NamesAccepted and Established
    definition         a definition's versions, compiled: pruning, defaulting, checks, columns, selectable fields
    kinds              the `Kind` of each version, which a server's table of kinds takes in
    object_rules       how an object of such a kind is created and updated
    plain_types        a structural schema as a type: what it takes is right, and nothing else looks at it
    pruning, defaulting, value_checks, list_types, ratcheting
                       the functions that a structural schema is compiled to, for all the rest
    rules              the expressions of a schema, evaluated; values as they see them are in cel_values
    conversion         what a conversion webhook is asked, and what its answer must be like
    manifests          objects in files, judged as a server that has the definitions would

Pure: imports `dray.api`, `dray.cel` and `dray.validation`, does no I/O. `dray.server.custom` follows the definitions in
a store and serves what is defined here.
"""
