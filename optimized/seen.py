"""How often each token stands in a live output list, advanced from one step to the next."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence


class Seen:
    """The distinct tokens of a prompt and of a live output list, and how often the output has each.

    tokens: the ids, int64, first those of the prompt, then as the output came to have them. counts: occurrences in
    the output, float32, one for each token. Both are right from `follow` until the list changes again.

    >>> output = [7, 9, 7]
    >>> seen = Seen([5], output)
    >>> seen.follow()
    [7, 9, 7]
    >>> list(seen.tokens), list(seen.counts)
    ([5, 7, 9], [0.0, 2.0, 1.0])
    >>> output[1:] = [5]
    >>> seen.follow()
    [9, 7, 5]
    >>> list(seen.tokens), list(seen.counts)
    ([5, 7], [1.0, 1.0])
    """

    def __init__(self, prompt: Iterable[int], output: list[int]) -> None:
        self.output = output
        self.counted: list[int] = []
        self.tokens = array("q", dict.fromkeys(prompt))
        self.places = {token: place for place, token in enumerate(self.tokens)}
        self.prompted = len(self.tokens)
        self.counts = array("f", bytes(4 * self.prompted))

    def follow(self) -> list[int]:
        """PROC-LIVE-OUTPUTS, PROC-PLACEHOLDER, PROC-SHRINK: counts the output as it is now; gives the tokens that were
        taken back and those that were counted.

        What was counted and is no longer there is taken back from the end, so the work beyond one comparison of lists
        is what changed.
        """
        kept = common_length(self.counted, self.output)
        gone, new = self.counted[kept:], self.output[kept:]
        for _ in gone:
            self.take_back()
        for token in new:
            self.count(token)
        return gone + new

    def count(self, token: int) -> None:
        """FREQ-OUTPUTS, PRES-OUTPUTS: the output has the token once more."""
        self.counted.append(token)
        place = self.places.setdefault(token, len(self.tokens))
        if place == len(self.tokens):
            self.tokens.append(token)
            self.counts.append(0.0)
        self.counts[place] += 1.0

    def take_back(self) -> None:
        """PROC-SHRINK: the output has its last counted token once less.

        A token that this leaves without occurrence, and that is not the prompt's, stands last: all that came to be
        known after it is taken back before it.
        """
        token = self.counted.pop()
        place = self.places[token]
        self.counts[place] -= 1.0
        if place >= self.prompted and not self.counts[place]:
            self.tokens.pop()
            self.counts.pop()
            del self.places[token]


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens the two have in common from the start; fastest where all but the last few are.

    >>> common_length([1, 2], [1, 2, 3]), common_length([1, 2, 3, 4], [1, 2, 5, 4]), common_length([1, 2], [1])
    (2, 2, 1)
    """
    shorter = min(len(one), len(other))
    common, step = shorter, 1
    while one[:common] != other[:common]:
        common, step = max(common - step, 0), 2 * step
    while common < shorter and one[common] == other[common]:
        common += 1
    return common
