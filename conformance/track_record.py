"""Faults that were seen in public, each with a miniature that has it and the clause that a run names."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

PROCESSOR, STAGE, PRODUCER = "processor", "stage", "producer"
PARTS = (PROCESSOR, STAGE, PRODUCER)
MINIATURES = "logitsproc.conformance.miniatures"
PARAMS_FILE = "params.json"
LITERAL = ("--scope", "literal")
NO_REPEAT = '[{"extra_args": {"no_repeat": true}}]'
VLLM = "vllm-project/vllm"
REFERENCE = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")


@dataclass(frozen=True)
class PublicFault:
    """A fault that was seen in public.

    `says`: what is wrong. `seen`: "owner/repository#number", or a few words where there is no number. `clause`: what is
    broken. `miniature`: "module:Class" of the miniatures. `arguments`: what `check` needs beside the target. `params`:
    what the file of params holds, if it needs one. `unseen`: why no run shows it; there is no miniature then.
    """

    part: str
    says: str
    seen: tuple[str, ...]
    clause: str
    miniature: str = ""
    arguments: tuple[str, ...] = ()
    params: str = ""
    unseen: str = ""

    @property
    def target(self) -> str:
        """The import path of the miniature; empty where there is none."""
        return self.miniature and f"{MINIATURES}.{self.miniature}"

    @property
    def command(self) -> tuple[str, ...]:
        """What comes after `logitsproc` on the command line; nothing where no run shows the fault."""
        if not self.miniature:
            return ()
        if self.part == PRODUCER:
            return ("check", "--producer", self.target, *self.arguments)
        return ("check", self.target, *self.arguments)

    @property
    def line(self) -> str:
        """The command as it is typed; empty where there is none."""
        return shlex.join(("logitsproc", *self.command)) if self.command else ""


def link_of(reference: str) -> str | None:
    """The address of "owner/repository#number"; None for a few words."""
    found = REFERENCE.fullmatch(reference)
    return f"https://github.com/{found[1]}/issues/{found[2]}" if found else None


def as_kind(kind: str) -> tuple[str, ...]:
    """The arguments for a miniature that the reference of a kind judges."""
    return ("--as", kind)


def at(repository: str, *numbers: int) -> tuple[str, ...]:
    """References to issues and pull requests of a repository."""
    return tuple(f"{repository}#{number}" for number in numbers)


PROCESSORS = (
    PublicFault(
        PROCESSOR,
        "A request without the feature takes the row of one with it, and inherits its state.",
        ("vLLM's example processor, older versions",),
        "PROC-STATE-DEPARTED",
        "consumers:ForgetsReplacement",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "The number of users goes wrong when one is replaced, and the processor stops.",
        at(VLLM, 23401),
        "UPD-REPLACE",
        "consumers:CountsUsers",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "A one-way move from a row without state leaves the state at its destination.",
        ("vLLM 0.32's budget for thinking", "public processors"),
        "UPD-DROP",
        "consumers:KeepsDestination",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "A swap gets and assigns: where one side is empty, both rows get the state.",
        at(VLLM, 49613, 51890),
        "UPD-SWAP",
        "consumers:SwapsByAssignment",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "The direction of a move is not looked at.",
        (*at("torch-spyre/sendnn-inference", 489), "public processors"),
        "UPD-DROP",
        "consumers:TakesMovesForSwaps",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "The direction of a move is compared with something that it never equals.",
        ("public processors",),
        "UPD-SWAP",
        "consumers:ComparesWithAString",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "Moves are followed before additions.",
        ("public plug-ins",),
        "UPD-ORDER",
        "consumers:MovesBeforeAdds",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "All moves are read from the batch as it was before the first.",
        ("public processors",),
        "UPD-SEQUENCE",
        "consumers:MovesFromSnapshot",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "A step whose update is None is passed over, and the tokens of that step are not counted.",
        at("torch-spyre/sendnn-inference", 544, 545),
        "PROC-QUIET",
        "consumers:SleepsWhenQuiet",
        as_kind("min_tokens"),
    ),
    PublicFault(
        PROCESSOR,
        "Progress is the number of calls of apply, also where the sample is thrown away.",
        (*at(VLLM, 29045, 20859), "public n-gram and loop-breaking processors"),
        "PROC-APPLY-STATELESS",
        "consumers:CountsApplies",
        as_kind("min_tokens"),
    ),
    PublicFault(
        PROCESSOR,
        "Progress is lost when a request is preempted and comes back.",
        at(VLLM, 29045, 20859),
        "PROC-FUNCTION",
        "consumers:RestartsOnAdd",
        as_kind("min_tokens"),
    ),
    PublicFault(
        PROCESSOR,
        "The first request's parameters rule all rows.",
        ("public watermark processors",),
        "PROC-INDEPENDENT",
        "consumers:FirstRules",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "The last request's parameters rule all rows.",
        ("public watermark processors",),
        "PROC-INDEPENDENT",
        "consumers:LastRules",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "Requests that share a params object share their progress.",
        at(VLLM, 5329),
        "PROC-INDEPENDENT",
        "consumers:SharesByParams",
        as_kind("min_tokens"),
    ),
    PublicFault(
        PROCESSOR,
        "The output list is copied when the request is added.",
        ("a public bad-words processor",),
        "PROC-LIVE-OUTPUTS",
        "consumers:CopiesOutputs",
        as_kind("min_tokens"),
    ),
    PublicFault(
        PROCESSOR,
        "A placeholder is read as an id: -1 bans the last token of the vocabulary.",
        at(VLLM, 52461, 52698, 38199),
        "PROC-PLACEHOLDER",
        "consumers:ReadsEarly",
        ("--params", PARAMS_FILE),
        NO_REPEAT,
    ),
    PublicFault(
        PROCESSOR,
        "The cursor into the outputs goes on by one token a step, however many have landed.",
        (*at("dottxt-ai/outlines", 900), "public adapters"),
        "PROC-FUNCTION",
        "consumers:ReadsOneAStep",
        as_kind("min_tokens"),
    ),
    PublicFault(
        PROCESSOR,
        "The cursor into the outputs does not go back when they shrink.",
        ("public adapters",),
        "PROC-SHRINK",
        "consumers:NeverRearms",
        (*as_kind("min_tokens"), *LITERAL),
    ),
    PublicFault(
        PROCESSOR,
        "An added request's state is appended to a list, whatever its row.",
        ("vllm-sbw 1.0.0 (PyPI)",),
        "UPD-ADD",
        "consumers:AppendsOnAdd",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "Rows without state are left out of a list, and those behind move up.",
        ("vllm-sbw 1.0.0 (PyPI)",),
        "PROC-INDEPENDENT",
        "consumers:CompactsNone",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "A swap with a row that has no state is a KeyError.",
        ("public processors",),
        "PROC-EXCEPTION",
        "consumers:TrustsItsTable",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "To remove a row that has no state is a KeyError.",
        ("public processors",),
        "PROC-EXCEPTION",
        "consumers:DeletesTheUntracked",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "A request without extra_args raises.",
        ("public processors",),
        "PROC-EXCEPTION",
        "consumers:NeedsExtraArgs",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "A request without prompt ids raises.",
        ("public processors",),
        "PROC-PROMPT-NONE",
        "consumers:WantsAPrompt",
        (*as_kind("min_p"), *LITERAL),
    ),
    PublicFault(
        PROCESSOR,
        "A processor that bans tokens says that it changes no argmax, and greedy batches skip it.",
        (*at(VLLM, 28617), *at("deepseek-ai/DeepSeek-OCR", 231)),
        "PROC-ARGMAX",
        "consumers:ClaimsInvariance",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "A state that is falsy when the request is added, an empty list, is taken for none.",
        ("vLLM's helper for dictionaries of state",),
        "PROC-LIVE-OUTPUTS",
        "consumers:EmptyIsOff",
        as_kind("frequency_penalty"),
    ),
    PublicFault(
        PROCESSOR,
        "Token 0 is taken for no token.",
        ("vLLM's example processor",),
        "ALLOW-MASK",
        "masks:TokenZeroIsNone",
        as_kind("allowed_token_ids"),
    ),
    PublicFault(
        PROCESSOR,
        "The state of departed requests is kept for ever. The memory that it takes shows in no logits; that it is "
        "still there does, at a row that is no more.",
        at(VLLM, 10630, 28233),
        "UPD-REMOVE",
        "consumers:KeepsTheRemoved",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "A package's entry point names what is no logits processor, and the engine starts.",
        ("a published package",),
        "LOAD-REFUSE",
        "pipelines:TakesAnyPlugin",
        as_kind("pipeline"),
    ),
    PublicFault(
        PROCESSOR,
        "Params that validate_params has let in raise in update_state.",
        at(VLLM, 27560, 31344),
        "VAL-LATER",
        "validators:RaisesWhenAdded",
        as_kind("min_p"),
    ),
    PublicFault(
        PROCESSOR,
        "One row that has too few tokens, and the whole batch comes back as it was.",
        ("a public watermark processor",),
        "PROC-INDEPENDENT",
        "consumers:WaitsForAll",
        as_kind("frequency_penalty"),
    ),
)

STAGES = (
    PublicFault(
        STAGE,
        "Condensing leaves the row of a mask dirty, and a later plain request gets a stranger's list.",
        at(VLLM, 43894, 43931, 43948),
        "UPD-MOVE",
        "consumers:CondensesDirty",
        as_kind("allowed_token_ids"),
    ),
    PublicFault(
        STAGE,
        "Views of two rows of a tensor are swapped, and both rows end up with one mask.",
        at(VLLM, 48419),
        "UPD-SWAP",
        "consumers:SwapsViews",
        as_kind("allowed_token_ids"),
    ),
    PublicFault(
        STAGE,
        "The mask is inverted.",
        at(VLLM, 14169),
        "ALLOW-MASK",
        "masks:MasksTheAllowed",
        as_kind("allowed_token_ids"),
    ),
    PublicFault(
        STAGE,
        "Outputs are padded to the longest of the batch, and the padding is penalised.",
        at("huggingface/text-generation-inference", 1765),
        "PROC-INDEPENDENT",
        "consumers:PadsToTheLongest",
        as_kind("frequency_penalty"),
    ),
    PublicFault(
        STAGE,
        "A list with an entry for each request that has a penalty is taken for one with an entry for each row.",
        at(VLLM, 5639),
        "PROC-INDEPENDENT",
        "penalties:TakesUsersForRows",
        as_kind("repetition_penalty"),
    ),
    PublicFault(
        STAGE,
        "A batch in which only some requests have penalties raises an IndexError.",
        at("tenstorrent/vllm", 286),
        "PROC-EXCEPTION",
        "penalties:LooksUpByRow",
        as_kind("frequency_penalty"),
    ),
    PublicFault(
        STAGE,
        "A request with a penalty joins a batch without, whose placeholders are then counted as ids.",
        at(VLLM, 27910),
        "PROC-EXCEPTION",
        "penalties:CountsEverybody",
        as_kind("frequency_penalty"),
    ),
    PublicFault(
        STAGE,
        "Penalties and bad words read placeholders where ids come late.",
        at(VLLM, 26467),
        "PROC-PLACEHOLDER",
        "consumers:CompletesEarly",
        as_kind("bad_words"),
    ),
    PublicFault(
        STAGE,
        "Rows are counted through, instead of looked up, where not every request has bad words.",
        at(VLLM, 13376),
        "PROC-INDEPENDENT",
        "masks:EnumeratesUsers",
        as_kind("bad_words"),
    ),
    PublicFault(
        STAGE,
        "The beginning of a bad word is looked for one token too early.",
        at(VLLM, 52311),
        "BAD-COMPLETE",
        "masks:LooksOneBack",
        as_kind("bad_words"),
    ),
    PublicFault(
        STAGE,
        "Stop tokens are let through one token too late.",
        at(VLLM, 46243),
        "MINTOK-RELEASE",
        "masks:OneTooMany",
        as_kind("min_tokens"),
    ),
    PublicFault(
        STAGE,
        "Only stop_token_ids are blocked, and not the end-of-sequence token.",
        at(VLLM, 32163),
        "MINTOK-EOS",
        "masks:ForgetsTheEnd",
        as_kind("min_tokens"),
    ),
    PublicFault(
        STAGE,
        "min-p is applied twice.",
        at("oobabooga/text-generation-webui", 4755),
        "MINP-THRESHOLD",
        "thresholds:AppliesTwice",
        as_kind("min_p"),
    ),
    PublicFault(
        STAGE,
        "Token 0 is taken for the largest.",
        at("state-spaces/mamba", 927),
        "MINP-THRESHOLD",
        "thresholds:MeasuresTokenZero",
        as_kind("min_p"),
    ),
    PublicFault(
        STAGE,
        "Stages together leave no token, and token 0 comes out.",
        (*at(VLLM, 53665, 54218, 57986), *at("sgl-project/sglang", 13030)),
        "EMPTY-ROW",
        "pipelines:LetsTokenZeroIn",
        as_kind("pipeline"),
    ),
    PublicFault(
        STAGE,
        "A fast path for greedy batches leaves out a stage that somebody uses.",
        at("tenstorrent/tt-xla", 3564),
        "PIPE-EACH",
        "pipelines:GreedyMeansPlain",
        as_kind("pipeline"),
    ),
    PublicFault(
        STAGE,
        "A fast path for a stage that nobody uses is taken although somebody does.",
        at(VLLM, 52284, 52329),
        "PIPE-EACH",
        "pipelines:AsksTheFirstOnly",
        as_kind("pipeline"),
    ),
    PublicFault(
        STAGE,
        "Larger batches go through another kernel, which treats ties otherwise.",
        at(VLLM, 50979, 41598),
        "PROC-INDEPENDENT",
        "thresholds:SwitchesKernels",
        as_kind("top_k"),
    ),
    PublicFault(
        STAGE,
        "A write goes beyond the row, into the next one.",
        at(VLLM, 48824, 49081),
        "PROC-INDEPENDENT",
        "masks:WritesIntoTheNextRow",
        as_kind("bad_words"),
    ),
    PublicFault(
        STAGE,
        "Token ids outside the vocabulary are let in, and crash the engine or write elsewhere.",
        at(VLLM, 16529),
        "VAL-VOCABULARY",
        unseen="the host lets requests in, and the suite is the host; a run with `--as pipeline --binding vllm` looks "
        "at vLLM's own",
    ),
    PublicFault(
        STAGE,
        "The engine takes min_p and has no such stage.",
        at(VLLM, 12678),
        "MINP-THRESHOLD",
        "pipelines:LeavesMinPOut",
        as_kind("pipeline"),
    ),
    PublicFault(
        STAGE,
        "A parameter is taken and ignored.",
        (*at("tenstorrent/tt-xla", 3364), *at("sgl-project/sglang-jax", 976)),
        "BIAS-ADD",
        "edits:IgnoresTheBias",
        as_kind("logit_bias"),
    ),
    PublicFault(
        STAGE,
        "A table for a padded batch meets logits with another number of rows.",
        at("RBLN-SW/vllm-rbln", 927, 1033),
        "PROC-EXCEPTION",
        "thresholds:FillsTheBucket",
        as_kind("min_p"),
    ),
    PublicFault(
        STAGE,
        "A mask is narrower than the padded vocabulary, and lets through what is behind its end.",
        at("mlc-ai/xgrammar", 694),
        "ALLOW-MASK",
        "masks:LeavesTheTail",
        as_kind("allowed_token_ids"),
    ),
    PublicFault(
        STAGE,
        "A kernel takes a slice of a padded vocabulary for contiguous, and writes to the wrong places.",
        at(VLLM, 42684),
        "PROC-UNTOUCHED",
        "masks:AssumesContiguous",
        as_kind("allowed_token_ids"),
    ),
    PublicFault(
        STAGE,
        "Raw log-probabilities are taken from logits that have been edited in place.",
        at(VLLM, 30846),
        "PROC-SHAPE",
        unseen="raw log-probabilities are the sampler's own and outside this spec; a processor may work in place, so "
        "who wants the logits as they were has to copy them",
    ),
)

PRODUCERS = (
    PublicFault(
        PRODUCER,
        "What processors know is refreshed after additions and removals, and not when rows were only reordered.",
        at(VLLM, 16728),
        "PROD-NONE",
        "producers:KeepsReordersQuiet",
    ),
    PublicFault(
        PRODUCER,
        "An index is in removed and in added.",
        ("a public plug-in",),
        "PROD-DISJOINT",
        "producers:ListsTheReplaced",
    ),
    PublicFault(
        PRODUCER,
        "An index is in removed and the destination of a one-way move.",
        ("a public plug-in",),
        "PROD-ELIDE",
        unseen="no fault here: it is how the explicit dialect lists a hole that a move fills",
    ),
    PublicFault(
        PRODUCER,
        "Something that belongs to a request is not moved with its row: a generator, a mask, a list.",
        at(VLLM, 13789),
        "PROD-ROWS",
        "producers:LeavesListsBehind",
    ),
    PublicFault(
        PRODUCER,
        "A request is aborted, and another comes under its id in the same step.",
        (*at(VLLM, 24382), *at("tenstorrent/tt-xla", 5799)),
        "PROD-ROWS",
        "producers:KnowsIdsOnly",
    ),
    PublicFault(
        PRODUCER,
        "Processors are told of rows that go only while somebody uses one.",
        (*at("ml-explore/mlx-lm", 1225, 1477), *at("Blaizzy/mlx-vlm", 1574), *at("jundot/omlx", 1845)),
        "PROD-NONE",
        "producers:KeepsTheIdleQuiet",
    ),
    PublicFault(
        PRODUCER,
        "The live output list is missing.",
        at("sgl-project/sglang", 20026),
        "PROD-LIVE",
        "producers:HandsOverNoList",
    ),
    PublicFault(
        PRODUCER,
        "The live output list is late.",
        at("sgl-project/sglang", 20026),
        "PROD-LIVE",
        "producers:CopiesTheOutputs",
    ),
    PublicFault(
        PRODUCER,
        "The live output list is full of placeholders that nobody replaces.",
        at(VLLM, 52461),
        "PROD-LIVE",
        "producers:LeavesPlaceholders",
    ),
    PublicFault(
        PRODUCER,
        "The documentation's example prints an update that the code does not emit.",
        ("vLLM's design page",),
        "PROD-ELIDE",
        unseen="no fault of a producer's: page and code speak the two dialects, which mean the same",
    ),
)

RECORD: tuple[PublicFault, ...] = (*PROCESSORS, *STAGES, *PRODUCERS)
