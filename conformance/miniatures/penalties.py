"""Processors that follow the batch rightly and penalise wrongly: repetition, frequency, presence."""

from __future__ import annotations

from typing import Any

import torch

from logitsproc.conformance.miniatures.controls import FrequencyPenalty, PresencePenalty, RepetitionPenalty


class DividesAlways(RepetitionPenalty):
    """REP-SCALE: divides whatever the sign, so that a token below 0 becomes likelier."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        logits[[*{*(prompt or ()), *output}]] /= params.repetition_penalty


class ForgetsThePrompt(RepetitionPenalty):
    """REP-SEEN: penalises what the output has, and not what only the prompt has."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, None, output)


class PenalisesEachTime(RepetitionPenalty):
    """REP-ONCE: penalises a token as often as it is there."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token in [*(prompt or ()), *output]:
            super().transform(logits, params, None, [token])


class PadsThePrompt(RepetitionPenalty):
    """REP-OTHERS: pads the prompt with token 0 and penalises the padding."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, [*(prompt or ()), 0], output)


class OneIsOn(RepetitionPenalty):
    """REP-NEUTRAL: takes 1 for a switch, and penalises by 1.1."""

    def wants(self, params: Any) -> bool:
        return True

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        penalty = params.repetition_penalty if params.repetition_penalty != 1 else 1.1
        for token in {*(prompt or ()), *output}:
            logits[token] *= 1 / penalty if logits[token] > 0 else penalty


class ScalesWhatIsFinite(RepetitionPenalty):
    """REP-NONFINITE: replaces what is not finite before it scales, so that a masked token can be sampled again."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token in {*(prompt or ()), *output}:
            logits[token].nan_to_num_(neginf=-1e4)
        super().transform(logits, params, prompt, output)


class ScalesInHalf(RepetitionPenalty):
    """NUM-SCALE: scales in bfloat16 and goes back."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        half = logits.bfloat16()
        super().transform(half, params, prompt, output)
        seen = [*{*(prompt or ()), *output}]
        logits[seen] = half[seen].float()


class CountsOnce(FrequencyPenalty):
    """FREQ-SUBTRACT: takes the penalty once, however often the token is there."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token in set(output):
            logits[token] -= params.frequency_penalty


class CountsThePrompt(FrequencyPenalty):
    """FREQ-OUTPUTS: counts what the prompt has as well."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, [*(prompt or ()), *output])


class CountsThePadding(FrequencyPenalty):
    """FREQ-OTHERS: pads the outputs with token 0 to a multiple of four and counts the padding."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, output + [0] * (-len(output) % 4))


class ZeroIsALittle(FrequencyPenalty):
    """FREQ-NEUTRAL: takes a penalty of 0 for the smallest that it knows."""

    def wants(self, params: Any) -> bool:
        return True

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token in output:
            logits[token] -= params.frequency_penalty or 0.01


class CountsWhatIsFinite(FrequencyPenalty):
    """FREQ-NONFINITE: replaces what is not finite before it subtracts, so that a masked token can be sampled again."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token in output:
            logits[token].nan_to_num_(neginf=-1e4)
        super().transform(logits, params, prompt, output)


class SubtractsInHalf(FrequencyPenalty):
    """NUM-PRODUCT: subtracts in float16 and goes back."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token in set(output):
            if torch.isfinite(logits[token].half()):
                logits[token] = (logits[token].half() - params.frequency_penalty * output.count(token)).float()


class AddsThePenalty(PresencePenalty):
    """PRES-SUBTRACT: the sign is wrong."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token in set(output):
            logits[token] += params.presence_penalty


class TakesItEachTime(PresencePenalty):
    """PRES-ONCE: takes the penalty as often as the token is there."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token in output:
            logits[token] -= params.presence_penalty


class SeesThePrompt(PresencePenalty):
    """PRES-OUTPUTS: takes the penalty from what only the prompt has as well."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, [*(prompt or ()), *output])


class RewardsTheAbsent(PresencePenalty):
    """PRES-OTHERS: gives every token that is not there what it takes from those that are."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        super().transform(logits, params, prompt, output)
        logits[[token for token in range(len(logits)) if token not in output]] += params.presence_penalty / len(logits)


class ZeroIsSome(PresencePenalty):
    """PRES-NEUTRAL: takes a penalty of 0 for the smallest that it knows."""

    def wants(self, params: Any) -> bool:
        return True

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token in set(output):
            logits[token] -= params.presence_penalty or 0.01


class TakesFromTheMasked(PresencePenalty):
    """PRES-NONFINITE: replaces what is not finite before it subtracts, so that a masked token can be sampled again."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token in set(output):
            logits[token].nan_to_num_(neginf=-1e4)
        super().transform(logits, params, prompt, output)


class TakesInHalf(PresencePenalty):
    """NUM-EDIT: subtracts in float16 and goes back."""

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        for token in set(output):
            if torch.isfinite(logits[token].half()):
                logits[token] = (logits[token].half() - params.presence_penalty).float()


class TakesUsersForRows(RepetitionPenalty):
    """PROC-INDEPENDENT: takes the length of its list, one entry for each that uses it, for the number of rows."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, (params, prompt, output) in self.rows.items():
            if row < len(self.rows):
                self.transform(logits[row], params, prompt, output)
        return logits


class LooksUpByRow(FrequencyPenalty):
    """PROC-EXCEPTION: has a list of those that use it, and looks rows up there."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        users = [state for _, state in sorted(self.rows.items())]
        for row in self.rows:
            self.transform(logits[row], *users[row])
        return logits


class CountsEverybody(FrequencyPenalty):
    """PROC-EXCEPTION: as soon as one has a penalty, counts the ids of all during update_state, and -1 is no token."""

    def wants(self, params: Any) -> bool:
        return True

    def update_state(self, update: Any) -> None:
        super().update_state(update)
        if any(params.frequency_penalty for params, _, _ in self.rows.values()):
            for _, _, output in self.rows.values():
                torch.bincount(torch.tensor(output, dtype=torch.long))

    def transform(self, logits: torch.Tensor, params: Any, prompt: list[int] | None, output: list[int]) -> None:
        if params.frequency_penalty:
            super().transform(logits, params, prompt, output)
