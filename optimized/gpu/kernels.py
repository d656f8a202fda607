"""The Triton kernels: update, scan, select, slow and emit, launched in this order over one batch of logits.

A slot is a stretch of `int32` in one tensor, `slots`: a record, then what Layout names. The mail, `int32`, says which
slot each row has and what is to be written into it. A row whose slot is -1 is neither read nor written.

Logits are ordered by *keys*: `uint32` that compare as the logits do, NaN being larger than every number, and 0.0 as
large as -0.0. GROUP tokens that stand next to each other have one maximum.

What each takes. logits, out: `float32`, rows of `vocab` tokens that stand `stride` apart, the same tensor where the
work is done in place. stages: the bits of the stages to run. maxima: keys, [rows, groups]. masses: `float32`, [rows,
slices, 2]. tokens, values: [rows, WIDTH] `int32` and `float32`, the kept tokens of a row. status: `int32`, [rows].
"""

from __future__ import annotations

import triton
import triton.language as tl

from logitsproc.optimized import records

ALLOWED = tl.constexpr(records.ALLOWED)
BANNED = tl.constexpr(records.WORDS | records.MINIMUM)
BIASED = tl.constexpr(records.BIAS)
PENALISED = tl.constexpr(records.PENALTIES)
DIVIDED = tl.constexpr(records.DIVIDED)
MIN_P = tl.constexpr(records.MIN_P)
TOP_K = tl.constexpr(records.TOP_K)
TOP_P = tl.constexpr(records.TOP_P)
CUT = tl.constexpr(records.CUT)
DENSE = tl.constexpr(records.ALLOWED | records.PENALTIES | records.DIVIDED | records.CUT)

FLAGS, TEMPERATURE, LOG_SHARE, REPETITION, FREQUENCY, PRESENCE, K, P = (tl.constexpr(place) for place in range(8))
RECORD = tl.constexpr(16)

GROUP = tl.constexpr(32)
"""As many tokens as a word has bits."""
NOT_A_NUMBER = tl.constexpr(0xFFFFFFFF)
INFINITE = tl.constexpr(0xFF800000)
LOWEST = tl.constexpr(0x00800000)
"""The keys of NaN, of +inf, and of the smallest finite number."""
DIGIT = tl.constexpr(4)
DIGITS = tl.constexpr(16)
"""So many bits of a key are settled by one reading of a row, and what these may be."""
PAIRS = tl.constexpr(8192)
"""So many pairs of candidates are compared at once."""
LEAST = tl.constexpr(1e-30)
"""The least mass that is looked for: p in float32 may be 0."""

DONE = tl.constexpr(0)
KEPT = tl.constexpr(1)
WHOLE = tl.constexpr(2)
"""What becomes of a row after select: nothing more, its kept tokens are emitted, it is looked at as a whole."""


@triton.jit
def number(record, place):
    """A float32 of a record."""
    return tl.load(record + place).to(tl.float32, bitcast=True)


@triton.jit
def key_of(x):
    """The key of each logit."""
    bits = tl.where(x == 0.0, 0.0, x).to(tl.int32, bitcast=True)
    flipped = bits ^ ((bits >> 31) | -2147483648)
    return tl.where(x == x, flipped.to(tl.uint32, bitcast=True), NOT_A_NUMBER)


@triton.jit
def logit_of(key):
    """The logit of a key that is not NaN's."""
    bits = tl.where(key >= 0x80000000, key ^ 0x80000000, ~key)
    return bits.to(tl.int32, bitcast=True).to(tl.float32, bitcast=True)


@triton.jit
def bits_of(words, group, inside):
    """A bit for each token of each group: [groups, GROUP] int32."""
    word = tl.load(words + group, mask=inside, other=0)
    return (word[:, None] >> tl.arange(0, GROUP)[None, :]) & 1


@triton.jit
def changed(x, token, group, inside, record, flags, words, allowed_at, seen_at, counts_at):
    """ALLOW-MASK, REP-SCALE, REP-NONFINITE, FREQ-SUBTRACT, PRES-SUBTRACT, TEMP-DIVIDE, PIPE-ORDER: the logits of some
    groups after the stages that look at no other logit.

    x, token, inside: [groups, GROUP]. group: [groups]. words: groups in a row. An occurrence counts 2 and the prompt 1.
    """
    within = group < words
    if flags & ALLOWED:
        allowed = bits_of(record + allowed_at, group, within)
        x = tl.where(allowed != 0, x, float("-inf"))
    if flags & PENALISED:
        seen = bits_of(record + seen_at, group, within)
        count = tl.load(record + counts_at + token, mask=(seen != 0) & inside, other=0)
        repetition = number(record, REPETITION)
        scaled = tl.where(x > 0, tl.div_rn(x, repetition), x * repetition)
        x = tl.where(count != 0, scaled, x)
        occurrences = count >> 1
        less = x - number(record, FREQUENCY) * occurrences.to(tl.float32) - number(record, PRESENCE)
        x = tl.where(occurrences > 0, less, x)
    if flags & DIVIDED:
        x = tl.div_rn(x, number(record, TEMPERATURE))
    return x


@triton.jit
def read(logits, group, vocab, record, flags, words, allowed_at, seen_at, counts_at):
    """The changed logits of these groups of a row, -inf beyond its end: [groups, GROUP]; and the token ids of each."""
    token = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = token < vocab
    x = tl.load(logits + token, mask=inside, other=float("-inf"))
    x = changed(x, token, group, inside, record, flags, words, allowed_at, seen_at, counts_at)
    return tl.where(inside, x, float("-inf")), token


@triton.jit(do_not_specialize=["rows", "stages"])
def update(logits, stride, slots, size, mail, rows, stages, biased_at, values_at, banned_at, seen_at, counts_at,
           BLOCK: tl.constexpr):  # fmt: skip
    """UPD-ADD, PROC-LIVE-OUTPUTS, BIAS-ADD, BAD-COMPLETE, MINTOK-BLOCK: what the mail brings goes into the slot, then
    the row's listed tokens are changed, in place. One program a row.

    mail: rows: the slot of each; rows + 1: where the copies of each begin; rows + 1: where its counts begin; copies:
    (place in the slot, place in the mail or -1 for zeros, length); counts: (token, count).
    """
    row = tl.program_id(0)
    slot = tl.load(mail + row)
    if slot >= 0:
        record = slots + slot.to(tl.int64) * size
        lane = tl.arange(0, BLOCK)
        copies, end = tl.load(mail + rows + row), tl.load(mail + rows + row + 1)
        for copy in range(copies, end, 3):
            place, source, length = tl.load(mail + copy), tl.load(mail + copy + 1), tl.load(mail + copy + 2)
            given = tl.where(source >= 0, length, 0)
            for first in range(0, length, BLOCK):
                word = tl.load(mail + source + first + lane, mask=first + lane < given, other=0)
                tl.store(record + place + first + lane, word, mask=first + lane < length)
        tl.debug_barrier()
        counts, end = tl.load(mail + 2 * rows + 1 + row), tl.load(mail + 2 * rows + 2 + row)
        for first in range(counts, end, 2 * BLOCK):
            at = first + 2 * lane
            token = tl.load(mail + at, mask=at < end, other=0)
            count = tl.load(mail + at + 1, mask=at < end, other=0)
            tl.store(record + counts_at + token, count, mask=at < end)
            tl.atomic_or(record + seen_at + (token >> 5), 1 << (token & 31), mask=at < end, sem="relaxed")
        flags = tl.load(record + FLAGS) & stages
        logits += row.to(tl.int64) * stride
        if flags & BIASED:
            length = tl.load(record + biased_at)
            for first in range(0, length, BLOCK):
                there = first + lane < length
                token = tl.load(record + biased_at + 1 + first + lane, mask=there, other=0)
                bias = tl.load(record + values_at + first + lane, mask=there, other=0).to(tl.float32, bitcast=True)
                x = tl.load(logits + token, mask=there, other=0.0)
                tl.store(logits + token, x + bias, mask=there)
        tl.debug_barrier()
        if flags & BANNED:
            length = tl.load(record + banned_at)
            for first in range(0, length, BLOCK):
                there = first + lane < length
                token = tl.load(record + banned_at + 1 + first + lane, mask=there, other=0)
                tl.store(logits + token, tl.full((BLOCK,), float("-inf"), tl.float32), mask=there)


@triton.jit(do_not_specialize=["stages", "per_slice"])
def scan(logits, out, stride, out_stride, vocab, slots, size, mail, stages, groups, allowed_at, seen_at, counts_at,
         maxima, masses, per_slice, GROUPS: tl.constexpr, APART: tl.constexpr):  # fmt: skip
    """ALLOW-MASK, REP-SCALE, FREQ-SUBTRACT, PRES-SUBTRACT, TEMP-DIVIDE: a row that is not cut is finished; of one that
    is, the maximum of each group is found, and where top-p needs it the mass. One program a row and slice.

    A slice is `per_slice` blocks of GROUPS groups. APART: whether `out` is another tensor: then every row is written
    there, and one that is cut becomes -inf.
    """
    row, part = tl.program_id(0), tl.program_id(1)
    slot = tl.load(mail + row)
    record = slots + tl.maximum(slot, 0).to(tl.int64) * size
    flags = tl.where(slot >= 0, tl.load(record + FLAGS), 0) & stages
    is_cut = (flags & CUT) != 0
    if ((flags & DENSE) != 0) | APART:
        logits += row.to(tl.int64) * stride
        out += row.to(tl.int64) * out_stride
        top = tl.full((), float("-inf"), tl.float32)
        mass = tl.full((), 0.0, tl.float32)
        for block in range(part * per_slice, (part + 1) * per_slice):
            group = block * GROUPS + tl.arange(0, GROUPS)
            x, token = read(logits, group, vocab, record, flags, groups, allowed_at, seen_at, counts_at)
            if is_cut:
                largest = tl.max(key_of(x), axis=1)
                tl.store(maxima + row.to(tl.int64) * groups + group, largest.to(tl.int32, bitcast=True),
                         mask=group < groups)  # fmt: skip
                if (flags & CUT) == TOP_P:
                    higher = tl.maximum(top, tl.max(x))
                    origin = tl.where(higher == float("-inf"), 0.0, higher)
                    mass = mass * tl.exp(top - origin) + tl.sum(tl.exp(x - origin))
                    top = higher
                if APART:
                    tl.store(out + token, tl.full((GROUPS, GROUP), float("-inf"), tl.float32), mask=token < vocab)
            else:
                tl.store(out + token, x, mask=token < vocab)
        if (flags & CUT) == TOP_P:
            place = masses + (row.to(tl.int64) * tl.num_programs(1) + part) * 2
            tl.store(place, top)
            tl.store(place + 1, mass)


@triton.jit
def nth_largest(keys, wanted, least, most):
    """The largest key that at least `wanted` keys reach, or `least` where fewer reach it. most: the largest key."""
    low, high = least.to(tl.int64), most.to(tl.int64)
    while low < high:
        middle = low + (high - low + 1) // 2
        is_reached = tl.sum((keys >= middle.to(tl.uint32)).to(tl.int32)) >= wanted
        low = tl.where(is_reached, middle, low)
        high = tl.where(is_reached, high, middle - 1)
    return low.to(tl.uint32)


@triton.jit
def mass_of(masses, slices, top, SLICES: tl.constexpr):
    """NUM-MASS: the sum of the probabilities of a row in relation to its largest, from those of its slices."""
    part = tl.arange(0, SLICES)
    tops = tl.load(masses + 2 * part, mask=part < slices, other=float("-inf"))
    return tl.sum(tl.load(masses + 2 * part + 1, mask=part < slices, other=0.0) * tl.exp(tops - top))


@triton.jit
def candidates(logits, vocab, record, flags, groups, allowed_at, seen_at, counts_at, keys, bound, found, tokens, values,
               ALL: tl.constexpr, WIDTH: tl.constexpr, PART: tl.constexpr):  # fmt: skip
    """The tokens of a row that reach the bound, from the groups whose maximum does, in ascending order: into tokens and
    values, as far as there is room. Gives how many there are, or WIDTH + 1 where too many groups have one.

    keys: the maxima of the groups, [ALL]. found: [WIDTH] int32, for the groups.
    """
    reaching = (keys >= bound).to(tl.int32)
    among = tl.sum(reaching)
    count = tl.full((), WIDTH + 1, tl.int32)
    if among <= WIDTH:
        tl.store(found + tl.cumsum(reaching, 0) - 1, tl.arange(0, ALL), mask=reaching != 0)
        tl.debug_barrier()
        count = tl.full((), 0, tl.int32)
        for first in range(0, among, PART):
            lane = first + tl.arange(0, PART)
            group = tl.load(found + lane, mask=lane < among, other=groups)
            x, token = read(logits, group, vocab, record, flags, groups, allowed_at, seen_at, counts_at)
            x, token = tl.reshape(x, (PART * GROUP,)), tl.reshape(token, (PART * GROUP,))
            is_hit = key_of(x) >= bound
            place = count + tl.cumsum(is_hit.to(tl.int32), 0) - 1
            tl.store(values + place, x, mask=is_hit & (place < WIDTH))
            tl.store(tokens + place, token, mask=is_hit & (place < WIDTH))
            count += tl.sum(is_hit.to(tl.int32))
        tl.debug_barrier()
    return count


@triton.jit
def ranks(values, count, x, top, edge, WIDTH: tl.constexpr):
    """TOPK-TIES, TOPP-PREFIX, TOPP-TIES: of each candidate, how many are larger, and the mass of those before it,
    which are larger or equal and stand before it; below the edge there is none. x: the candidates, [WIDTH]."""
    lane = tl.arange(0, WIDTH)
    larger = tl.zeros((WIDTH,), tl.int32)
    before = tl.zeros((WIDTH,), tl.float32)
    for first in range(0, count, PAIRS // WIDTH):
        other = first + tl.arange(0, PAIRS // WIDTH)
        y = tl.load(values + other, mask=other < count, other=float("-inf"))
        mass = tl.where((y >= edge) & (other < count), tl.exp(y - top), 0.0)
        is_larger = y[None, :] > x[:, None]
        is_before = is_larger | ((y[None, :] == x[:, None]) & (other[None, :] < lane[:, None]))
        larger += tl.sum(is_larger.to(tl.int32), axis=1)
        before += tl.sum(tl.where(is_before, mass[None, :], 0.0), axis=1)
    return larger, before


@triton.jit
def settle(values, count, bound, k, flags, record, masses, slices, SLICES: tl.constexpr, WIDTH: tl.constexpr):
    """MINP-THRESHOLD, TOPK-MASK, TOPP-PREFIX, TOPP-ONE: the candidates, which of them are kept, and whether that is
    settled: no other token would be kept, and if the mass of others is needed it is known."""
    lane = tl.arange(0, WIDTH)
    x = tl.load(values + lane, mask=lane < count, other=float("-inf"))
    top = tl.max(x)
    edge = tl.where((flags & MIN_P) != 0, top + number(record, LOG_SHARE), float("-inf"))
    larger, before = ranks(values, count, x, top, edge, WIDTH)
    is_kept = (lane < count) & (x >= edge)
    if (flags & TOP_K) != 0:
        is_kept &= larger < k
    is_closed = (bound == LOWEST) | ((flags & TOP_K) != 0) | (key_of(edge) >= bound)
    is_settled = is_closed
    if (flags & TOP_P) != 0:
        own = tl.sum(tl.where(is_kept, tl.exp(x - top), 0.0))
        total = own
        if (flags & CUT) == TOP_P:
            total = tl.where(is_closed, own, mass_of(masses, slices, top, SLICES))
            is_settled = is_closed | (own >= number(record, P) * total)
        is_kept &= (before < number(record, P) * total) | (before == 0.0)
    return x, is_kept, is_settled


@triton.jit(do_not_specialize=["stages", "slices", "wide"])
def select(logits, out, stride, out_stride, vocab, slots, size, mail, stages, groups, allowed_at, seen_at, counts_at,
           maxima, masses, slices, found, tokens, values, counts, status, wide,
           ALL: tl.constexpr, SLICES: tl.constexpr, WIDTH: tl.constexpr, PART: tl.constexpr,
           APART: tl.constexpr):  # fmt: skip
    """MINP-THRESHOLD, TOPK-MASK, TOPK-TIES, TOPP-PREFIX, TOPP-TIES, EMPTY-ROW: the kept tokens of each row that is cut.
    One program a row.

    Each of the `wanted` groups with the largest maxima has a token that reaches the least of these maxima, the bound.
    A token that reaches it stands in a group whose maximum does. These are the candidates, at most WIDTH, and all other
    tokens are smaller. A row is left to `slow` if it has more of them, or if what they lack would be needed.

    ALL, SLICES: powers of 2, at least the groups and the slices. PART: so many groups are looked into at once. found:
    [rows, WIDTH] int32, the groups. counts: [rows] int32. wide: candidates wanted where there is no k.
    """
    row = tl.program_id(0)
    slot = tl.load(mail + row)
    record = slots + tl.maximum(slot, 0).to(tl.int64) * size
    flags = tl.where(slot >= 0, tl.load(record + FLAGS), 0) & stages
    result = tl.full((), DONE, tl.int32)
    if (flags & CUT) != 0:
        result = tl.full((), WHOLE, tl.int32)
        here = row.to(tl.int64) * WIDTH
        k = tl.load(record + K)
        every = tl.arange(0, ALL)
        keys = tl.load(maxima + row.to(tl.int64) * groups + every, mask=every < groups, other=0)
        keys = keys.to(tl.uint32, bitcast=True)
        most = tl.max(keys)
        wanted = tl.where((flags & TOP_K) != 0, k, wide)
        if (most < INFINITE) & (wanted <= WIDTH):
            bound = tl.full((), LOWEST, tl.uint32)
            if wanted < groups:
                bound = nth_largest(keys, wanted, bound, tl.maximum(most, bound))
            count = candidates(logits + row.to(tl.int64) * stride, vocab, record, flags, groups, allowed_at, seen_at,
                               counts_at, keys, bound, found + here, tokens + here, values + here, ALL, WIDTH,
                               PART)  # fmt: skip
            if count <= WIDTH:
                x, is_kept, is_settled = settle(values + here, count, bound, k, flags, record,
                                                masses + row.to(tl.int64) * slices * 2, slices, SLICES,
                                                WIDTH)  # fmt: skip
                if is_settled:
                    result = tl.full((), KEPT, tl.int32)
                    lane = tl.arange(0, WIDTH)
                    token = tl.load(tokens + here + lane, mask=lane < count, other=-1)
                    if APART:
                        tl.store(out + row.to(tl.int64) * out_stride + token, x, mask=is_kept)
                    else:
                        tl.store(tokens + here + lane, tl.where(is_kept, token, -1), mask=lane < count)
                        tl.store(counts + row, count)
    tl.store(status + row, result)


@triton.jit
def whole_row(logits, first, vocab, record, flags, groups, allowed_at, seen_at, counts_at, GROUPS: tl.constexpr):
    """The changed logits of GROUPS groups from one on, their keys and their tokens, each [GROUPS * GROUP]."""
    group = first + tl.arange(0, GROUPS)
    x, token = read(logits, group, vocab, record, flags, groups, allowed_at, seen_at, counts_at)
    x = tl.reshape(x, (GROUPS * GROUP,))
    return x, key_of(x), tl.reshape(token, (GROUPS * GROUP,))


@triton.jit
def mass_from(logits, vocab, record, flags, groups, allowed_at, seen_at, counts_at, key, top, GROUPS: tl.constexpr):
    """NUM-MASS: the sum of the probabilities, in relation to that of `top`, of the tokens that reach a key: float64."""
    mass = tl.full((), 0.0, tl.float64)
    for first in range(0, groups, GROUPS):
        x, keys, _ = whole_row(logits, first, vocab, record, flags, groups, allowed_at, seen_at, counts_at, GROUPS)
        mass += tl.sum(tl.where(keys >= key, tl.exp(x - top), 0.0)).to(tl.float64)
    return mass


@triton.jit
def reached(logits, vocab, record, flags, groups, allowed_at, seen_at, counts_at, edge, top, goal,
            GROUPS: tl.constexpr, IS_MASS: tl.constexpr):  # fmt: skip
    """The largest key whose tokens and all larger ones are `goal` tokens, or have that mass in relation to `top`: digit
    by digit, with a reading of the row for each. Tokens below the key `edge` count nothing."""
    key = tl.full((), 0, tl.uint32)
    digits = tl.arange(0, DIGITS).to(tl.uint32)
    for step in range(0, 32, DIGIT):
        shift = tl.cast(32 - DIGIT - step, tl.uint32)
        border = key + (digits << shift)
        sums = tl.zeros((DIGITS,), tl.float64)
        for first in range(0, groups, GROUPS):
            x, keys, _ = whole_row(logits, first, vocab, record, flags, groups, allowed_at, seen_at, counts_at, GROUPS)
            weight = tl.where(keys >= edge, 1.0, 0.0)
            if IS_MASS:
                weight *= tl.exp(x - top)
            is_over = keys[:, None] >= border[None, :]
            sums += tl.sum(tl.where(is_over, weight[:, None], 0.0), axis=0).to(tl.float64)
        digit = tl.max(tl.where(sums >= goal, digits, 0))
        key += digit << shift
    return key


@triton.jit(do_not_specialize=["stages"])
def slow(logits, out, stride, out_stride, vocab, slots, size, mail, stages, groups, allowed_at, seen_at, counts_at,
         maxima, status, GROUPS: tl.constexpr):  # fmt: skip
    """MINP-NONFINITE, TOPK-NONFINITE, TOPP-NONFINITE, NUM-MASS: the rows that `select` has left, each as a whole and
    read many times. One program a row."""
    row = tl.program_id(0)
    if tl.load(status + row) == WHOLE:
        record = slots + tl.load(mail + row).to(tl.int64) * size
        flags = tl.load(record + FLAGS) & stages
        logits += row.to(tl.int64) * stride
        out += row.to(tl.int64) * out_stride
        most = tl.full((), 0, tl.uint32)
        for first in range(0, groups, GROUPS):
            group = first + tl.arange(0, GROUPS)
            largest = tl.load(maxima + row.to(tl.int64) * groups + group, mask=group < groups, other=0)
            most = tl.maximum(most, tl.max(largest.to(tl.uint32, bitcast=True)))
        is_finite = (most < INFINITE) & (most >= LOWEST)
        top = tl.where(is_finite, logit_of(most), 0.0)
        edge = tl.full((), 0, tl.uint32)
        if ((flags & MIN_P) != 0) & is_finite:
            edge = key_of(top + number(record, LOG_SHARE))
        if (flags & TOP_K) != 0:
            k = tl.load(record + K).to(tl.float64)
            edge = tl.maximum(edge, reached(logits, vocab, record, flags, groups, allowed_at, seen_at, counts_at,
                                            edge * 0, top, k, GROUPS, False))  # fmt: skip
        least, ties = edge, vocab
        if ((flags & TOP_P) != 0) & is_finite:
            total = mass_from(logits, vocab, record, flags, groups, allowed_at, seen_at, counts_at, edge, top, GROUPS)
            goal = tl.maximum(number(record, P).to(tl.float64) * total, LEAST)
            least = tl.maximum(edge, reached(logits, vocab, record, flags, groups, allowed_at, seen_at, counts_at,
                                             edge, top, goal, GROUPS, True))  # fmt: skip
            larger = mass_from(logits, vocab, record, flags, groups, allowed_at, seen_at, counts_at, least + 1, top,
                               GROUPS)  # fmt: skip
            each = tl.maximum(tl.exp(logit_of(least) - top), LEAST).to(tl.float64)
            ties = tl.minimum(tl.maximum(tl.ceil((goal - larger) / each), 1.0), vocab.to(tl.float64)).to(tl.int32)
        tied = tl.full((), 0, tl.int32)
        for first in range(0, groups, GROUPS):
            x, keys, token = whole_row(logits, first, vocab, record, flags, groups, allowed_at, seen_at, counts_at,
                                       GROUPS)  # fmt: skip
            is_tied = (keys == least).to(tl.int32)
            is_kept = (keys > least) | ((is_tied != 0) & (tied + tl.cumsum(is_tied, 0) <= ties))
            tied += tl.sum(is_tied)
            tl.store(out + token, tl.where(is_kept, x, float("-inf")), mask=token < vocab)


@triton.jit(do_not_specialize=["per_slice"])
def emit(logits, stride, vocab, tokens, values, counts, status, per_slice, GROUPS: tl.constexpr, WIDTH: tl.constexpr,
         PART: tl.constexpr):  # fmt: skip
    """TOPK-KEPT-VALUES, TOPP-KEPT-VALUES, MINP-KEPT-VALUES: rows become -inf, but for their kept tokens. One program a
    row and slice."""
    row, part = tl.program_id(0), tl.program_id(1)
    if tl.load(status + row) == KEPT:
        logits += row.to(tl.int64) * stride
        start = part * per_slice * GROUPS * GROUP
        end = start + per_slice * GROUPS * GROUP
        for first in range(start, end, GROUPS * GROUP):
            token = first + tl.arange(0, GROUPS * GROUP)
            tl.store(logits + token, tl.full((GROUPS * GROUP,), float("-inf"), tl.float32), mask=token < vocab)
        tl.debug_barrier()
        here = row.to(tl.int64) * WIDTH
        count = tl.load(counts + row)
        for first in range(0, count, PART):
            at = first + tl.arange(0, PART)
            token = tl.load(tokens + here + at, mask=at < count, other=-1)
            x = tl.load(values + here + at, mask=at < count, other=0.0)
            tl.store(logits + token, x, mask=(token >= start) & (token < end))
