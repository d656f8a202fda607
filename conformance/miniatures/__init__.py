"""Small processors, right ones and wrong ones. Each wrong one's docstring opens with the clause it breaks."""
