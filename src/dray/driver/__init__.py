"""The driver SDK: a DRA driver in Python is one small class."""
