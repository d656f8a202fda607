"""How good the suite is, by machine: mutants derived from the reference and from the clauses, and who kills them."""
