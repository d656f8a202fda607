"""One step of a small batch in which some rows are looked at as a whole, for tools that watch the kernels: `small.py
ROWS VOCAB`."""

import sys

import torch
from session import DEVICE, Session

rows, vocab = map(int, sys.argv[1:])
session = Session("cuda", DEVICE)
processor, _ = session.started(rows, vocab)
flat, _ = session.started(rows, vocab, ("top_p",))
for each in (processor, flat):
    each.apply(torch.randn(rows, vocab, device="cuda"))
torch.cuda.synchronize()
