"""Subresources: what is read or written below an object, under rules of its own, such as `scale` or `pods/binding`."""
