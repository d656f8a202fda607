"""The literal model of the contract: the batch as a list, the engine's algorithm, the row functions.

It imports nothing but the standard library, and every function's docstring opens with the clauses it is.
"""
