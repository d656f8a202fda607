"""One module a transformation, each a pure function (params, prompt, output, logits) -> expectation."""
