"""Copies of stored objects, arranged for a question that is asked at every request: who may, who holds what.

They are brought up to date when they are asked (`followed`): no task, no delay.
"""
