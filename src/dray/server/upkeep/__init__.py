"""What the server itself writes: the first namespaces and roles, its certificate authority, aggregated roles."""
