"""Proofs: lemmas about the shipped code for batches of any size, exhaustive checks beside them, and their guards."""
