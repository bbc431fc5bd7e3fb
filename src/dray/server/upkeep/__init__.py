"""What the server itself writes: the first namespaces and roles, its certificate authority, what is left behind."""
