"""A history as a Python script that needs the subject, torch and nothing of the suite's machinery."""

from __future__ import annotations

from logitsproc.conformance.bindings import CPU, MAX_NUM_SEQS, PLAIN, VLLM, Subject
from logitsproc.conformance.history import BFLOAT16, STRIDED, WARM_UP, Arrival, History, Step
from logitsproc.conformance.logits import palette
from logitsproc.conformance.notation import drawn, format_drawing, format_number, format_step
from logitsproc.conformance.player import PADDING, PADDING_VALUE, PLACEHOLDER, WARM_UP_ROWS, dtype_of, shown

PARAMS = {
    PLAIN: "from logitsproc.conformance.interface import SamplingParams",
    VLLM: "from vllm import SamplingParams",
}
TYPES = {
    PLAIN: ["from logitsproc.conformance.interface import BatchUpdate, MoveDirectionality, host_config"],
    VLLM: [
        "from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessor, MoveDirectionality",
        "from logitsproc.conformance.interface import host_config",
    ],
}


def as_script(history: History, subject: Subject) -> str:
    """The script; it prints what every apply returns."""
    module, _, qualified = subject.target.partition(":")
    name = qualified.partition(".")[0]
    probes = [*subject.custom, *([subject.mixin] if subject.mixin else [])]
    lines = [
        "import torch",
        "",
        PARAMS[subject.binding.name],
        *TYPES[subject.binding.name],
        *(f"from {probe.__module__} import {probe.__name__}" for probe in probes),
        f"from {module} import {name}",
        "",
        *([] if subject.device == CPU else [f"torch.set_default_device({str(subject.device)!r})"]),
        "inf, nan = float('inf'), float('nan')",
        "UNIDIRECTIONAL, SWAP = MoveDirectionality.UNIDIRECTIONAL, MoveDirectionality.SWAP",
        *derived_lines(subject),
        f"config = host_config(vocab={history.vocab}, max_num_seqs={MAX_NUM_SEQS}{custom_text(subject)})",
        f"processor = {concrete_text(qualified, subject)}(config, torch.device({str(subject.device)!r}), False)",
    ]
    lines += [line for name, arrival in history.requests.items() for line in arrival_lines(name, arrival, subject)]
    if WARM_UP in history.options:
        lines += ["", "# warm-up, before any request", "processor.update_state(None)"]
        rows = palette(history.palette, history.vocab, dtype_of(history))
        lines += apply_lines(history, rows.values[:WARM_UP_ROWS])
    for index, (step, drawing) in enumerate(zip(history.steps, drawn(history), strict=True)):
        names = drawing or []
        title = f"{format_step(step)}  => {format_drawing(names)}"
        lines += ["", f"# step {index}: {title}", *step_lines(history, step, len(names))]
        rows, chosen = shown(history, step, index, names)
        lines += apply_lines(history, [rows.values[pick] for pick in chosen]) * step.applies
    return "\n".join(lines) + "\n"


def derived_lines(subject: Subject) -> list[str]:
    """The custom processors as classes that vLLM takes."""
    if subject.binding.name != VLLM:
        return []
    names = [probe.__name__ for probe in subject.custom]
    return [f"{name} = type({name!r}, ({name}, LogitsProcessor), {{}})" for name in names]


def custom_text(subject: Subject) -> str:
    """The custom processors of the configuration, as an argument."""
    names = ", ".join(probe.__name__ for probe in subject.custom)
    return f", logits_processors=[{names}]" if names else ""


def concrete_text(qualified: str, subject: Subject) -> str:
    """The class of which an instance is made."""
    return f"type('Concrete', ({subject.mixin.__name__}, {qualified}), {{}})" if subject.mixin else qualified


def arrival_lines(name: str, arrival: Arrival, subject: Subject) -> list[str]:
    """The params object and the live list of a request."""
    fields = dict(arrival.params)
    eos = words = None
    if subject.binding.name == VLLM:
        eos, words = fields.pop("eos_token_id", None), fields.pop("bad_words_token_ids", None)
        fields |= {"max_tokens": None} if "min_tokens" in fields else {}
    given = ", ".join(f"{field}={value!r}" for field, value in fields.items())
    lines = [f"{name}, {name}_out = SamplingParams({given}), {list(arrival.output)}"]
    if eos is not None:
        lines.append(f"{name}.update_from_generation_config({{}}, eos_token_id={eos})")
    if words is not None:
        lines.append(f"{name}._bad_words_token_ids = {words}")
    return lines


def step_lines(history: History, step: Step, rows: int) -> list[str]:
    """One step up to apply: tokens, update_state, the late ids."""
    told = f"processor.update_state({update_text(history, step, rows)})"
    return [*landing_lines(step), told, *settling_lines(step)]


def landing_lines(step: Step) -> list[str]:
    """The tokens that land, with placeholders, and the lists that are other objects from here on."""
    lines = []
    for growth in step.growth:
        if growth.dropped:
            lines.append(f"del {growth.request}_out[-{growth.dropped}:]")
        if growth.tokens:
            known = len(growth.tokens) - growth.late
            tokens = [*growth.tokens[:known], *[PLACEHOLDER] * growth.late]
            lines.append(f"{growth.request}_out += {tokens}")
    return lines + [f"{add.request}_out = list({add.request}_out)" for add in step.added if add.fresh]


def settling_lines(step: Step) -> list[str]:
    """The ids that the placeholders stand for."""
    late = [growth for growth in step.growth if growth.late]
    return [f"{growth.request}_out[-{growth.late}:] = {list(growth.tokens[-growth.late :])}" for growth in late]


def update_text(history: History, step: Step, rows: int) -> str:
    """The BatchUpdate as an expression."""
    if step.is_quiet:
        return "None"
    added = [
        f"({add.row}, {add.request}, {prompt_text(history.requests[add.request])}, {add.request}_out)"
        for add in step.added
    ]
    moved = [f"({source}, {to}, {direction})" for source, to, direction in step.moved]
    size = rows if step.size is None else step.size
    parts = f"removed={list(step.removed)}, added=[{', '.join(added)}], moved=[{', '.join(moved)}]"
    return f"BatchUpdate(batch_size={size}, {parts})"


def prompt_text(arrival: Arrival) -> str:
    """The prompt ids as an expression."""
    return "None" if arrival.prompt is None else str(list(arrival.prompt))


def apply_lines(history: History, rows: list[list[float]]) -> list[str]:
    """One apply on these logits."""
    text = [f"    [{', '.join(format_number(value) for value in row)}]," for row in rows]
    lines = ["logits = torch.tensor([", *text, f"], dtype=torch.float32).reshape({len(rows)}, {history.vocab})"]
    if STRIDED in history.options:
        padding = f"torch.full(({len(rows)}, {PADDING}), {PADDING_VALUE})"
        lines.append(f"logits = torch.cat([logits, {padding}], dim=1)[:, :{history.vocab}]")
    given = "logits.bfloat16()" if BFLOAT16 in history.options else "logits"
    return [*lines, f"print(processor.apply({given}))"]
