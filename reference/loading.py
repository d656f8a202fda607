"""How custom processors get in: what is loaded, in which order, what is refused, and what an adapter does.

>>> from types import SimpleNamespace
>>> class MyProcessor:
...     def is_argmax_invariant(self): ...
...     def update_state(self, update): ...
...     def apply(self, logits): ...
>>> modules = {"mine": SimpleNamespace(MyProcessor=MyProcessor)}
>>> [found.__name__ for found in loaded(["mine:MyProcessor"], [MyProcessor], modules.__getitem__)]
['MyProcessor', 'MyProcessor']
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

METHODS = ("is_argmax_invariant", "update_state", "apply")

Find = Callable[[str], Any]
"""The module of a name; raises when it cannot be imported."""


class Refused(ValueError):
    """A processor that cannot be loaded; the message names it, in one line."""


def loaded(plugins: Sequence[str], given: Sequence[type | str], find: Find) -> list[type]:
    """LOAD-ORDER, LOAD-ENTRY: the classes of the plug-ins, then those that were given, each in its order.

    plugins: what the entry points of the group `vllm.logits_processors` name.

    >>> loaded(["mine:Missing"], [], {"mine": object()}.__getitem__)
    Traceback (most recent call last):
    logitsproc.reference.loading.Refused: mine has no Missing
    """
    return [resolved(target, find) for target in (*plugins, *given)]


def resolved(target: type | str, find: Find) -> type:
    """LOAD-CLASS: a class is taken as it is, a name is looked up.

    >>> resolved(int, {}.__getitem__)
    Traceback (most recent call last):
    logitsproc.reference.loading.Refused: int is not a logits processor: it has no is_argmax_invariant()
    """
    return checked(target if isinstance(target, type) else named(target, find))


def named(target: str, find: Find) -> Any:
    """LOAD-NAME, LOAD-REFUSE: `module:Outer.Inner`, the module imported and the attributes walked down.

    >>> named("mine", {}.__getitem__)
    Traceback (most recent call last):
    logitsproc.reference.loading.Refused: 'mine' is not module:Class
    """
    parts = target.split(":") if isinstance(target, str) else []
    if len(parts) != 2 or not all(parts):
        raise Refused(f"{target!r} is not module:Class")
    try:
        found = find(parts[0])
    except Exception as error:
        raise Refused(f"{parts[0]} cannot be imported: {error}") from error
    for attribute in parts[1].split("."):
        if not hasattr(found, attribute):
            raise Refused(f"{parts[0]} has no {parts[1]}")
        found = getattr(found, attribute)
    return found


def checked(found: Any) -> type:
    """LOAD-REFUSE: what is found must be a class with the methods of a logits processor.

    >>> checked(3)
    Traceback (most recent call last):
    logitsproc.reference.loading.Refused: 3 is not a class
    """
    if not isinstance(found, type):
        raise Refused(f"{found!r} is not a class")
    for method in METHODS:
        if not callable(getattr(found, method, None)):
            raise Refused(f"{found.__name__} is not a logits processor: it has no {method}()")
    return found


def sorted_in(built_in: Sequence[Any], custom: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """LOAD-ORDER, LOAD-INVARIANT: the built-in instances, always, then the custom ones, each asked once:
    those that are not argmax invariant, and those that are.

    >>> class Always:
    ...     def is_argmax_invariant(self): return True
    >>> [len(instances) for instances in sorted_in([Always()], [Always()])]
    [0, 2]
    """
    answers = [(processor, processor.is_argmax_invariant()) for processor in (*built_in, *custom)]
    variant = [processor for processor, invariant in answers if not invariant]
    return variant, [processor for processor, invariant in answers if invariant]


def adapted(
    processor: Callable[..., Any] | None, prompt: Sequence[int] | None, output: Sequence[int], logits: Any
) -> Any:
    """LOAD-ADAPTER, LOAD-OPT-OUT, LOAD-ROW: the row that a request-level processor returns; None leaves it alone.

    With three parameters it gets (prompt, output, logits), with two (output, logits); no prompt is an empty one.

    >>> adapted(lambda output, logits: [0.0], [1], [2], [5.0]), adapted(None, [1], [2], [5.0])
    ([0.0], [5.0])
    >>> adapted(lambda prompt, output, logits: prompt + output + logits, [1], [2], [5.0])
    [1, 2, 5.0]
    """
    if processor is None:
        return logits
    wants_prompt = len(inspect.signature(processor).parameters) == 3
    return processor(prompt or [], output, logits) if wants_prompt else processor(output, logits)
