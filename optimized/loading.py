"""Custom processors of a configuration: found as entry points, by name or as classes, and built."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from operator import attrgetter
from typing import Any

import torch

GROUP = "vllm.logits_processors"
METHODS = ("is_argmax_invariant", "update_state", "apply")


def load_processors(vllm_config: Any, device: torch.device, is_pin_memory: bool) -> list[Any]:
    """LOAD-ORDER: one of each custom processor, first those of installed packages, then those the configuration gives.

    vllm_config: with `model_config.logits_processors`, None or a sequence of classes and of names "module:Class".
    Raises ValueError for what is no processor, before any is built.
    """
    given = vllm_config.model_config.logits_processors or ()
    classes = [*installed_classes(), *(given_class(target) for target in given)]
    return [each(vllm_config, device, is_pin_memory) for each in classes]


def installed_classes() -> list[type[Any]]:
    """LOAD-ENTRY: the class of every entry point of the group, in the order of importlib.metadata.

    Raises ValueError for what is no processor.
    """
    points = entry_points(group=GROUP)
    return [loaded(point.load, f"entry point {point.name!r} ({point.value})") for point in points]


def given_class(target: Any) -> type[Any]:
    """LOAD-CLASS, LOAD-NAME: a class as it is, a name "module:Class" by import, the class nested or not.

    Raises ValueError for a name of another form and for what is no processor.
    """
    if not isinstance(target, str):
        return checked(target, repr(target))
    module, _, path = target.partition(":")
    if not module or not path or ":" in path:
        raise ValueError(f"{target!r} is not of the form 'module:Class'")
    return loaded(lambda: attrgetter(path)(import_module(module)), repr(target))


def loaded(load: Callable[[], Any], name: str) -> type[Any]:
    """LOAD-REFUSE: the class that `load` gives. Raises ValueError when it fails. name: for the message."""
    try:
        found = load()
    except (Exception, SystemExit) as error:
        raise ValueError(f"{name} does not load: {error!r}") from error
    return checked(found, name)


def checked(found: Any, name: str) -> type[Any]:
    """LOAD-REFUSE: what was found. Raises ValueError when it is no class of a processor. name: for the message."""
    if not isinstance(found, type):
        raise ValueError(f"{name} is not a class")
    missing = [method for method in METHODS if not callable(getattr(found, method, None))]
    if missing:
        raise ValueError(f"{name} is not a logits processor: it has no {' and no '.join(missing)}")
    return found
