"""What the tests share."""

import os
from collections.abc import Iterator
from importlib.util import find_spec

os.environ.setdefault("TRITON_INTERPRET", "1")
os.environ.pop("GITHUB_ACTIONS", None)

import pytest
from hypothesis import settings

from logitsproc.conformance.suite import ENOUGH_BEYOND, TIERS, Tier

pytest_plugins = ["pytester"]
collect_ignore = ["device", "gates_live", "site", *([] if find_spec("vllm") else ["real_vllm"])]

settings.register_profile("gate", derandomize=True, database=None, deadline=None)
settings.load_profile("gate")


@pytest.fixture(scope="module")
def short_tier() -> Iterator[None]:
    """The quick tier cut to its first histories: what these catch, the whole tier catches. Time decides nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TIERS, "quick", Tier(60, ENOUGH_BEYOND, 90))
        yield
