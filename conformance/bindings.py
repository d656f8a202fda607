"""How the suite speaks to a subject: which class it is, and the host types it is fed."""

from __future__ import annotations

import copy
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from logitsproc.conformance import interface
from logitsproc.reference.batch import SWAP, UNIDIRECTIONAL

METHODS = ("update_state", "apply", "is_argmax_invariant")
ADAPTS = "new_req_logits_processor"
"""The method that an adapter of request-level processors leaves to its subclasses."""
MAX_NUM_SEQS = 16
AUTO, VLLM, PLAIN = "auto", "vllm", "plain"
CPU = torch.device("cpu")


class CannotRun(Exception):
    """The check cannot start or go on; the message is one line for the user, and the exit status is 2."""


@dataclass(frozen=True)
class Binding:
    """The host types of one framework.

    `make_params` turns SamplingParams fields (and eos_token_id, bad_words_token_ids) into its params object and raises
    CannotRun for what the host refuses; `let_in` raises ValueError for params whose tokens are not in a vocabulary.
    `refusals` are the exceptions by which a processor refuses params. `make_config` takes the vocabulary and the
    custom processors and gives its engine configuration. `base` is the class that custom processors derive from, if
    they must.
    """

    name: str
    batch_update: Callable[..., Any]
    directions: dict[str, Any]
    make_params: Callable[[dict[str, Any]], Any]
    let_in: Callable[[Any, int], None]
    make_config: Callable[[int, Sequence[type | str] | None], Any]
    base: type = object
    refusals: tuple[type[Exception], ...] = (ValueError,)

    def derived(self, cls: type) -> type:
        """The class, as one that this host takes for a logits processor."""
        return cls if self.base is object else type(cls.__name__, (cls, self.base), {"__module__": cls.__module__})


@dataclass(frozen=True)
class Subject:
    """A processor class under test, and how to speak to it.

    `custom`: the custom processors that its configuration names. `mixin`: what makes the class concrete. `reachable`:
    whether it follows only updates that an engine's algorithm emits; a class says so by REACHABLE_ONLY = True.
    `device`: where its logits are.
    """

    target: str
    factory: Callable[..., Any]
    binding: Binding
    custom: tuple[type, ...] = ()
    mixin: type | None = None
    reachable: bool = False
    device: torch.device = CPU

    def build(self, vocab: int) -> Any:
        """A new processor, as an engine with this vocabulary would make it; raises CannotRun when it raises."""
        try:
            return self.build_with(vocab, [self.binding.derived(cls) for cls in self.custom] or None)
        except (Exception, SystemExit) as error:
            raise CannotRun(f"{self.target}(vllm_config, device, is_pin_memory) raised {one_line(error)}") from error

    def build_with(self, vocab: int, custom: Sequence[type | str] | None) -> Any:
        """A new processor whose configuration names these custom processors; raises what it raises."""
        return self.concrete()(self.binding.make_config(vocab, custom), self.device, False)

    def concrete(self) -> Callable[..., Any]:
        """The class of which instances are made."""
        if self.mixin is None or not isinstance(self.factory, type):
            return self.factory
        return type("Concrete", (self.mixin, self.factory), {})


def plain_binding() -> Binding:
    """Types of our own with vLLM's names; vLLM is not imported."""

    def make_params(fields: dict[str, Any]) -> Any:
        try:
            params = interface.SamplingParams(**copy.deepcopy(fields))
            params.verify()
            return params
        except ValueError as error:
            raise CannotRun(f"SamplingParams refuses {fields}: {one_line(error)}") from error
        except TypeError:
            known = set(interface.SamplingParams.__dataclass_fields__)
            unknown = ", ".join(sorted(set(fields) - known))
            raise CannotRun(f"no such SamplingParams field: {unknown}") from None

    directions = {item.name: item for item in interface.MoveDirectionality}
    return Binding(
        PLAIN, interface.BatchUpdate, directions, make_params, interface.SamplingParams.verify_vocabulary, make_config
    )


def make_config(vocab: int, custom: Sequence[type | str] | None) -> Any:
    """The engine configuration that processors are built with."""
    return interface.host_config(vocab, MAX_NUM_SEQS, custom)


def vllm_binding() -> Binding:
    """vLLM's own BatchUpdate, MoveDirectionality and SamplingParams."""
    quiet_vllm()
    try:
        from vllm import SamplingParams
        from vllm.exceptions import VLLMValidationError
        from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessor, MoveDirectionality
    except Exception as error:
        raise CannotRun(f"vLLM's types cannot be imported: {one_line(error)}") from error

    def make_params(fields: dict[str, Any]) -> Any:
        given = {"max_tokens": None} | copy.deepcopy(fields)
        eos, bad_words = given.pop("eos_token_id", None), given.pop("bad_words_token_ids", None)
        try:
            params = SamplingParams(**given)
            params._bad_words_token_ids = bad_words
            params.update_from_generation_config({}, eos_token_id=eos)
        except (TypeError, ValueError, VLLMValidationError) as error:
            raise CannotRun(f"vLLM's SamplingParams refuses {fields}: {one_line(error)}") from error
        return params

    directions = {
        UNIDIRECTIONAL: MoveDirectionality.UNIDIRECTIONAL,
        SWAP: MoveDirectionality.SWAP,
    }

    def let_in(params: Any, vocab: int) -> None:
        model = make_config(vocab, None).model_config
        try:
            params._validate_logit_bias(model)
            params._validate_stop_token_ids(model)
            params._validate_allowed_token_ids(model)
        except (VLLMValidationError, TypeError) as error:
            raise ValueError(str(error)) from error

    refusals = (ValueError, VLLMValidationError)
    return Binding(VLLM, BatchUpdate, directions, make_params, let_in, make_config, LogitsProcessor, refusals)


def quiet_vllm() -> None:
    """Keeps vLLM's start-up messages and usage statistics off, unless the user has said otherwise."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")


def load_subject(target: str | Callable[..., Any], binding: str = AUTO, device: str = "cpu") -> Subject:
    """The subject a target names: `module:Class`, as vLLM's --logits-processors takes it, or the class itself.

    Raises CannotRun with one line when there is no such module or class, or it is not a logits processor, and when
    there is no such device.
    """
    name, factory = (target, resolve(target)) if isinstance(target, str) else (describe(target), target)
    if not callable(factory):
        raise CannotRun(f"{name} is not a class")
    cls = factory if isinstance(factory, type) else None
    if isinstance(target, str) and cls is None:
        raise CannotRun(f"{name} is {type(factory).__name__}, not a class")
    if cls is not None:
        missing = [method for method in METHODS if not callable(getattr(cls, method, None))]
        if missing:
            raise CannotRun(f"{name} is not a logits processor: it has no {missing[0]}()")
        if not callable(getattr(cls, ADAPTS, None)):
            refuse_abstract(name, cls)
    wants_vllm = binding == VLLM or (binding == AUTO and cls is not None and derives_from_vllm(cls))
    host = vllm_binding() if wants_vllm else plain_binding()
    reachable = getattr(factory, "REACHABLE_ONLY", False) is True
    return Subject(name, factory, host, reachable=reachable, device=usable(device))


def usable(name: str) -> torch.device:
    """The device of this name, `cpu`, `cuda` or `cuda:1`; raises CannotRun when no tensor can be made there."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).tolist()
    except Exception as error:
        raise CannotRun(f"there is no device {name!r} here: {one_line(error)}") from error
    return device


def refuse_abstract(name: str, factory: Callable[..., Any]) -> None:
    """Raises CannotRun for a class of which no instance can be made."""
    if abstract := sorted(getattr(factory, "__abstractmethods__", ())):
        raise CannotRun(f"{name} is abstract: it does not implement {abstract[0]}()")


def resolve(target: str) -> Any:
    """The object at `module:Qualified.name`; the working directory is on the path, as for `python -m`."""
    module_name, colon, qualified = target.partition(":")
    if not (module_name and colon and qualified):
        raise CannotRun(f"{target!r} is not module:Class")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    quiet_vllm()
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise CannotRun(f"{module_name} cannot be imported: {one_line(error)}") from error
    for attribute in qualified.split("."):
        if not hasattr(found, attribute):
            raise CannotRun(f"{module_name} has no {qualified}")
        found = getattr(found, attribute)
    return found


def describe(factory: Callable[..., Any]) -> str:
    """module:Class of a class, or the repr of anything else."""
    name = getattr(factory, "__qualname__", None)
    return f"{factory.__module__}:{name}" if name else repr(factory)


def derives_from_vllm(cls: type) -> bool:
    """Whether vLLM's LogitsProcessor is among the bases, or the class says that vLLM is its host."""
    if getattr(cls, "HOST", None) == VLLM:
        return True
    return any(base.__name__ == "LogitsProcessor" and base.__module__.startswith("vllm.") for base in cls.__mro__)


def one_line(error: BaseException) -> str:
    """`KeyError: 3`, on one line and printable."""
    text = printable(error, str)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def printable(value: object, write: Callable[[object], str] = repr) -> str:
    """The value as text on one line, or the name of its type if it cannot be written."""
    try:
        text = write(value)
    except Exception:
        return type(value).__name__
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
