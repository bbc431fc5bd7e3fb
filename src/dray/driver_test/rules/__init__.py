"""The rules, by what they are about. A trial runs them in the order of the modules and of their place in them."""
