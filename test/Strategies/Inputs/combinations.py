"""Draws jobs from the cross product of what strategies can do, and counts each of them by closed forms.

    combinations.py stagec stage-trace combined.stg scratch-folder shard shards

Of job i of the list those with i % shards == shard. This file knows the shapes of two models, the degrees of a strategy and what
Megatron-LM, DeepSpeed, and PyTorch's FSDP send (Korthikanti et al., arXiv 2205.05198; Narayanan et al., arXiv 2104.04473; Rajbhandari et
al., arXiv 1910.02054; Zhao et al., arXiv 2304.11277; Jacobs et al., arXiv 2309.14509; Liu et al., arXiv 2310.01889; DeepSeek-AI, arXiv 2412.19437), and nothing of a
compiler. Of tensor parallelism in parts it knows that as much moves as without (PyTorch's async TP, Transformer Engine's user buffers). Compared are, exactly: FLOPs and what is made again; of each stage every kind of collective over every list of axes, how often
and with how many bytes; elements of parameters, bytes of gradients and optimizer states; microbatches in flight; what a microbatch keeps.
Each job is proved, its traces are verified, and of some the collectives in the traces are counted, too. With COUNT_ONLY in the
environment the first is all; JOBS and SEED in the environment draw others: a thousand take seconds then.
"""
import collections
import dataclasses
import json
import os
import random
import re
import sys
from dataclasses import dataclass

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs"))
from commands import run

JOBS, SEED = int(os.environ.get("JOBS", 320)), int(os.environ.get("SEED", 10))
S, D, HEADS, E, V = 64, 32, 8, 4, 100  # sequence, width, heads and their width, vocabulary
AXES = ("pp", "replica", "dp", "cp", "uly", "tp")


@dataclass
class Job:
    strategy: str = "combined"
    model: str = "llama"  # grouped queries; mha: a key and a value per query; gpt: fused attention; unfused: scores and dropout
    precision: str = "bf16_mixed"
    microbatch: int = 1
    microbatches: int = 2
    split: tuple = (2,)  # layers of each virtual stage
    schedule: str = "one_f_one_b"
    v: int = 2  # chunks of a stage that runs interleaved
    pp: int = 1
    replica: int = 1
    dp: int = 1
    cp: int = 1
    uly: int = 1  # attention by heads inside of a ring
    tp: int = 1
    sequence: bool = False
    asynchronous: bool = False  # what goes over tp goes in parts beside products
    regather: bool = True
    context: str = "gather"  # or ring, or heads
    zero: int = 0
    units: bool = False
    prefetch: int = 0
    keep: object = False  # True: all that forward gathers; "last": of its last unit
    again: bool = False  # backward gathers what it does not read, too
    bucket: int = 0  # 0: none, else bytes: 1, or more than there are
    bf16: bool = False  # in which gradients are reduced
    per_microbatch: bool = False
    overlap: str = "none"
    recompute: str = "none"  # selective: attention; full: layers as a whole; lean: as far as backward needs it
    group: int = 1  # layers that are made again together
    clip: bool = False
    offload: str = "none"  # what is on the host: optimizer; parameters, gradients as well; what layers keep

    @property
    def isTied(self):
        return self.model in ("gpt", "unfused")

    @property
    def chunks(self):
        """The virtual stages of each stage."""
        p = self.pp
        second = {"interleaved": lambda r: [chunk * p + r for chunk in range(1, self.v)], "zb_v": lambda r: [2 * p - 1 - r], "dualpipe_v": lambda r: [2 * p - 1 - r],
                  "dualpipe": lambda r: [p - 1 - r]}
        return [[r] + second.get(self.schedule, lambda r: [])(r) for r in range(p)]

    @property
    def copies(self):
        """Of the model, each with as many of the microbatches: chunk c is of copy c then."""
        return 2 if self.schedule == "dualpipe" else 1

    @property
    def hasHalves(self):
        return self.schedule in ("zb_h1", "zb_h2", "zb_v", "dualpipe_v", "dualpipe")

    @property
    def ofChunk(self):
        """Microbatches that pass a chunk."""
        return self.microbatches // self.copies

    def find_stage(self, virtual, chunk):
        """Where a virtual stage is, in the copy that the chunk is of."""
        if self.copies > 1:
            return self.chunks[virtual][chunk]
        return next(r for r, chunks in enumerate(self.chunks) if virtual in chunks)

    @property
    def sequences(self):  # of a step
        return self.microbatch * self.microbatches * self.replica * self.dp

    @property
    def padded(self):
        multiple = {"combined": 16 * self.tp, "megatron": 128 * self.tp}.get(self.strategy, 1)
        return -(-V // multiple) * multiple

    def product(self, axes):
        size = 1
        for axis in axes:
            size *= getattr(self, axis)
        return size


def draw(rng):
    j = Job(model=rng.choice(["llama", "mha", "gpt", "unfused"]), precision=rng.choice(["bf16_mixed", "bf16_mixed", "fp32"]),
            microbatch=rng.choice([1, 1, 2]), microbatches=rng.choice([1, 2, 3]))
    axes = rng.sample(["pp", "dp", "cp", "tp"], rng.choice([2, 2, 3, 3, 4]))
    axes = rng.choices([axes, ["dp"], ["dp", "cp"]], [70, 20, 10])[0]
    for axis in axes:
        setattr(j, axis, 4 if rng.random() < 0.35 and j.product(AXES) <= 4 else 2)
    if j.dp > 1 and j.product(AXES) <= 8:
        j.replica = rng.choice([1, 1, 2])
    if j.pp > 1:
        j.schedule = rng.choice(["gpipe", "one_f_one_b", "interleaved", "zb_h1", "zb_v", "dualpipe_v"])
        j.microbatches = {"interleaved": j.pp * rng.choice([1, 2]), "dualpipe_v": 2 * j.pp + rng.choice([0, 1])}.get(
            j.schedule, rng.choice([1, 2]) * j.pp + rng.choice([0, 1]))
    j.split = tuple(rng.choice([1, 1, 2]) for chunks in j.chunks for chunk in chunks) if j.pp > 1 else (rng.choice([2, 3]),)
    if j.tp > 1:
        j.sequence = rng.random() < 0.6
        j.regather = not j.sequence or rng.random() < 0.7
    if j.cp > 1 and j.model != "unfused":
        byHeads = (HEADS // 2 if j.model == "llama" else HEADS) % (j.tp * j.cp) == 0
        j.context = rng.choice(["gather", "ring"] + ["heads"] * byHeads)
    j.recompute = rng.choice(["none", "none", "lean"] if axes == ["dp"] else ["none", "none", "selective", "full", "lean"])
    if j.dp * j.cp > 1:
        j.zero = rng.choice([0, 1, 2, 3])
        j.units = j.zero > 0 and rng.random() < 0.5
        j.keep = j.zero == 3 and rng.random() < 0.3
        j.prefetch = rng.choice([0, 1, 2]) if j.zero == 3 and j.units else 0
        if rng.random() < 0.5:
            j.bucket = rng.choice([0, 1, 1 << 30]) if not j.units else 0
            j.bf16 = j.precision != "fp32" and rng.random() < 0.5
            j.per_microbatch = j.zero != 1 and rng.random() < 0.3  # what is scattered per step is not reduced before
            j.overlap = rng.choice(["none", "true"] + ["false"] * (j.zero < 2 and not j.per_microbatch))
    choices = ["combined"]
    plain = j.replica == 1 and not j.units and j.context != "heads"
    if j.pp * j.cp * j.tp == 1:
        choices += ["data_parallel"] * (plain and j.zero == 0 and j.recompute == "none")
        choices += ["zero"] * (plain and j.zero > 0 and j.recompute == "none" and not j.per_microbatch)
        choices += ["fsdp"] * (j.zero == 3 and j.units and j.recompute in ("none", "lean") and j.overlap == "none")
    elif plain and not j.keep and not j.per_microbatch and j.recompute != "lean":
        choices += ["megatron"]
    j.strategy = choices[-1] if rng.random() < 0.7 else "combined"
    if j.context == "ring" and j.pp * j.replica * j.tp == 1 and rng.random() < 0.7:
        j = Job("ring_attention", j.model, j.precision, j.microbatch, j.microbatches, j.split, dp=j.dp, cp=j.cp, context="ring")
        j.uly = rng.choice([1, 2])
    return j


def draw_more(j, rng):
    """What is drawn apart, so that all else is as without."""
    if j.strategy != "ring_attention":
        j.clip = rng.random() < 0.25
    if j.strategy != "combined":
        return
    j.offload = rng.choice(["none", "optimizer", "parameters", "activations"])
    if j.offload == "parameters" and (j.zero in (1, 2) or j.isTied and j.pp > 1 or j.bf16 and j.sequence):
        j.offload = "none"  # the host updates what is kept there; what is reduced in two types goes in that of the last
    if j.recompute == "full":
        j.group = rng.choice([1, 2, 3])


def draw_last(j, rng):
    """Apart again: two copies of a model in place of a V, and the last unit kept from forward to backward."""
    if j.schedule == "dualpipe_v" and rng.random() < 0.6:
        j.schedule, j.split, j.microbatches = "dualpipe", j.split[:j.pp], 2 * j.pp + rng.choice([0, 2])
    if j.zero == 3 and j.units and not j.keep and j.strategy in ("combined", "fsdp") and rng.random() < 0.5:
        j.keep = "last"


def draw_kinds(j, rng):
    """And again: three chunks, ZB-H2, and tensor parallelism in parts."""
    if j.schedule == "interleaved" and rng.random() < 0.4:
        j.v, j.split = 3, j.split + tuple(rng.choice([1, 2]) for _ in range(j.pp))
    if j.schedule == "zb_h1" and rng.random() < 0.4:
        j.schedule, j.microbatches = "zb_h2", 2 * j.pp - 1 + rng.choice([0, 2])
    j.again = j.zero == 3 and j.keep is not True and j.strategy == "combined" and not j.hasHalves and rng.random() < 0.4
    j.asynchronous = j.sequence and j.strategy in ("combined", "megatron") and rng.random() < 0.4


def text(name, j):
    """The job as a program says it."""
    word = lambda value: str(value).lower() if isinstance(value, bool) else value
    sizes = f"L = {sum(j.split)}, D = {D}, H = {HEADS}, V = {V}"
    model = {"llama": f"Llama({sizes}, KV = {HEADS // 2}, F = 48)", "mha": f"Llama({sizes}, KV = {HEADS}, F = 48)",
             "gpt": f"GPT({sizes}, T = {S}, rate = 0, fused = true)", "unfused": f"GPT({sizes}, T = {S + 8}, rate = 0.1)"}[j.model]
    hasRule = bool(j.bucket or j.bf16 or j.per_microbatch or j.overlap != "none")
    rule = dict(bucket=f"{j.bucket}B" if j.bucket else "none", reduce_type="bf16" if j.bf16 else "none", overlap=j.overlap)
    if j.strategy == "megatron" and not j.bucket and j.overlap == "true":
        rule["bucket"] = "1B"  # each gradient by itself, where none is Megatron's own size
    schedule = f"interleaved(v = {j.v})" if j.schedule == "interleaved" else j.schedule
    split = list(j.split) if j.pp > 1 else "none"
    pipeline = dict(pp=j.pp, pipeline_schedule=schedule, split=split) if j.pp > 1 else {}
    isWhole = {"recompute": j.recompute} if j.recompute in ("selective", "full") else {}
    tensor = dict(cp=j.cp, tp=j.tp, sequence_parallel=j.sequence, regather=j.regather, ring=j.context == "ring", zero=j.zero,
                  **{"tp_overlap": True} if j.asynchronous else {})
    arguments = {
        "data_parallel": dict(dp=j.dp, per_microbatch=j.per_microbatch, **rule),
        "zero": dict(dp=j.dp, stage=j.zero, keep=j.keep, **rule),
        "fsdp": dict(dp=j.dp, replicas=j.replica, prefetch=j.prefetch, keep=j.keep, shard_type="none", reduce_type=rule["reduce_type"],
                     per_microbatch=j.per_microbatch, recompute=j.recompute == "lean"),
        "ring_attention": dict(dp=j.dp, cp=j.cp, uly=j.uly),
        "megatron": dict(dp=j.dp, **tensor, **rule, **isWhole, **pipeline),
        "combined": dict(replica=j.replica, dp=j.dp, **tensor, by_heads=j.context == "heads", by_unit=j.units, prefetch=j.prefetch, keep=j.keep,
                         **{"again": "all"} if j.again else {}, has_rule=hasRule, per_microbatch=j.per_microbatch, lean=j.recompute == "lean", group=j.group,
                         **{"offload_" + j.offload: True} if j.offload != "none" else {}, **rule, **isWhole, **pipeline),
    }[j.strategy]
    listed = ", ".join(f"{key} = {word(value)}" for key, value in arguments.items())
    return (f"job {name} {{\n  model = {model};\n  step = train(B = {j.sequences}, S = {S}, microbatch = {j.microbatch}, optimizer = adamw{', clip = 1.0' if j.clip else ''});\n"
            f"  precision = {j.precision};\n  strategy = {j.strategy}({listed});\n}}\n")


#===--- shapes ---------------------------------------------------------------------------------------------------------------------===#

@dataclass(frozen=True)
class Parameter:
    elements: int
    over_tp: bool = True
    partial: bool = False  # its gradient is a sum over tp where sequences are split over it
    read: bool = True  # by backward
    early: bool = False  # its gradient comes with that of an activation, not in the half for weights
    product: bool = False


@dataclass
class Shapes:
    layer: list
    first: list  # before the layers
    last: list
    kv: int  # width of keys, and of values
    split: int  # FLOPs of a token that are neither products nor attention: over tp, and where norms are
    replicated: int
    unused: tuple  # of what a layer ends with and backward does not read: products' elements, other FLOPs


def describe(j):
    weight, norm = lambda *sizes: Parameter(sizes[0] * sizes[1], product=True), Parameter(D, False, True, True, True)
    if not j.isTied:
        kv, F = E * (HEADS // 2 if j.model == "llama" else HEADS), 48
        layer = [norm, norm, weight(D, D), weight(D, kv), weight(D, kv), weight(D, D), weight(D, F), weight(D, F), weight(F, D)]
        return Shapes(layer, [Parameter(j.padded * D, read=False)], [norm, Parameter(j.padded * D)], kv,
                      3 * D + 3 * kv + 6 * F, 2 * 4 * D + 2 * D, (F * D, D))  # rope, gated unit; norms, sums
    F, shift, bias = 4 * D, dataclasses.replace(norm, read=False), lambda n, over_tp: Parameter(n, over_tp, not over_tp, False)
    layer = [norm, shift, norm, shift, *[weight(D, D)] * 4, *[bias(D, True)] * 3, bias(D, False), weight(D, F), bias(F, True), weight(F, D),
             bias(D, False)]
    positions = Parameter((S if j.model == "gpt" else S + 8) * D, False, False, False)
    first, last = [Parameter(j.padded * D, read=j.pp == 1), positions], [norm, shift]
    if j.model == "gpt":
        return Shapes(layer, first, last, D, 3 * D + F + 8 * F, 2 * 7 * D + 4 * D, (F * D, 2 * D))
    # Softmax and dropout of scores, and two of what enters the residual stream, whose last mask comes with the last product.
    return Shapes(layer, first, last, D, 3 * D + F + 8 * F + 7 * HEADS * S, 2 * 7 * D + 4 * D + 4 * D, (0, D))


def sums_again(j):
    """Row-parallel products of a layer that backward makes again, with what reduces them: lean, all but one that nothing reads."""
    return {"full": 2, "lean": 1 if j.model != "unfused" else 2}.get(j.recompute, 0)


def count_flops(j):
    s, L = describe(j), sum(j.split)
    scores = 2 * 2 * S * D  # every query against every key, and what it weighs
    attention = 0 if j.model == "unfused" else scores // 2  # causal
    products = sum(2 * p.elements for p in s.layer if p.product) + (scores if j.model == "unfused" else 0)
    copies = 1 if j.sequence else j.tp
    forward = products + attention + s.split + s.replicated * copies
    again = {"none": 0, "selective": attention or scores + 7 * HEADS * S, "full": forward,
             "lean": forward - 2 * s.unused[0] - s.unused[1] * copies}[j.recompute] + attention // 2  # fused backward makes scores again
    if j.asynchronous:  # what a reduce_scatter adds up on its way ops do: g - 1 additions per element
        again += sums_again(j) * D * (j.tp - 1)
    tokens = j.sequences * S
    return {"contraction": 3 * tokens * (L * products + 2 * D * V), "attention": 3 * tokens * L * attention,
            "recomputed": tokens * L * again}, 3 * tokens * 2 * D * (j.padded - V)


def count_saved(j):
    """Bytes that a layer keeps of a microbatch, in bf16 (Korthikanti et al.: s b h (34 + 5 a s / h), and what tp leaves of it)."""
    tokens = j.microbatch * S // (j.cp * j.uly)
    if j.recompute in ("full", "lean"):
        return tokens * 2 * D // (j.tp if j.sequence else 1)
    if j.model == "unfused":
        scores, norms = 0 if j.recompute == "selective" else 5 * HEADS * S, 4 * D // (j.tp if j.sequence and j.regather else 1)
        return tokens * (norms + 6 * D // (j.tp if j.sequence else 1) + (24 * D + scores) // j.tp)
    return None


#===--- what is sent ---------------------------------------------------------------------------------------------------------------===#

class Traffic:
    """What a rank of each stage sends: count and bytes per operation and axes."""

    def __init__(self, j):
        self.j = j
        self.rows = [collections.Counter() for _ in range(j.pp)]

    def put(self, stage, operation, axes, count, bytes):
        axes = tuple(axis for axis in AXES if axis in axes and getattr(self.j, axis) > 1)
        if axes:
            self.rows[stage][operation, axes, "count"] += count
            self.rows[stage][operation, axes, "bytes"] += bytes


def halves(j, r, chunk):
    """Of how many microbatches backward runs in halves: of DualPipeV of those at either end. Two stages of DualPipe that mirror each other
    are one of a V of half as many, whose first chunk is what enters at the nearer end."""
    if j.schedule in ("dualpipe_v", "dualpipe"):
        p, isFar = j.pp, chunk == 1
        if j.copies > 1:
            p, r, isFar = p // 2, min(r, p - 1 - r), (chunk == 1) == (r < p // 2)
        return p - r - 1 + (r + 1) - (r + 1) // 2 - (isFar and r % 2 == 0)
    return j.microbatches if j.schedule in ("zb_h1", "zb_h2", "zb_v") else 0


def add_activations(j, traffic):
    """What tensor, context and pipeline axes send."""
    act = 4 if j.precision == "fp32" else 2
    tokens = j.microbatch * S // (j.cp * j.uly)
    whole = tokens * D * act
    part, k = whole // j.tp, tokens * describe(j).kv * act // j.tp
    last, m, again = len(j.split) - 1, j.ofChunk, j.recompute in ("full", "lean")
    for r, chunks in enumerate(j.chunks):
        add = lambda operation, axes, count, each: traffic.put(r, operation, axes, count, count * each)
        for c, virtual in enumerate(chunks):
            L, split = j.split[virtual], halves(j, r, c)
            # Two row-parallel products of a layer, and two column-parallel inputs in backward; the last one again if it is read or all runs.
            sums = m * L * (4 + sums_again(j))
            if j.sequence:
                # Forward gathers two inputs. Backward gathers two gradients and, if it does not have them, the inputs; a half for weights
                # gathers both again.
                inputs = 2 if j.regather else 0
                add("all_gather", ["tp"], L * (m * (4 + (2 if again else inputs) + gathers_once_more(j)) + split * (2 + again * inputs)), part)
                add("reduce_scatter", ["tp"], sums, whole)
            else:
                add("all_reduce", ["tp"], sums, whole)
            if j.context == "gather":
                add("all_gather", ["cp"], m * L * (4 + gathers_once_more(j)), k)
                add("reduce_scatter", ["cp"], m * L * 2, k * j.cp)
            elif j.context == "ring":
                add("permute", ["cp"], m * L * 2 * (3 + (j.recompute != "none")) * (j.cp - 1), k)
            for axis in ["cp"] * (j.context == "heads") + ["uly"]:
                for each in (part, k):  # queries and results; keys and values
                    add("all_to_all", [axis], m * L * (3 if again else 2) * 2, each)
            if virtual == 0:
                # Positions are added to what is whole.
                add("reduce_scatter" if j.sequence and not j.isTied else "all_reduce", ["tp"], m, whole)
                add("all_gather", ["tp"], m * j.sequence, part)
            if virtual == last:
                if j.sequence:
                    add("all_gather", ["tp"], m * (1 + j.regather), part)
                add("reduce_scatter" if j.sequence else "all_reduce", ["tp"], m, whole)
                add("all_reduce", ["tp"], 3 * m, tokens * 4)
                add("all_reduce", ["replica", "dp", "cp", "uly"], m, 4)
            for neighbour in (virtual - 1, virtual + 1):
                if 0 <= neighbour <= last and j.find_stage(neighbour, c) != r:
                    add("send", ["pp"], m, part if j.sequence else whole)


def gathers_once_more(j):
    """The library's `megatron` has gradients gather again what recomputed layers have gathered."""
    return 2 if j.strategy == "megatron" and j.recompute == "full" and j.regather else 0


@dataclass
class Piece:
    """What a chunk has of a parameter. A `copy` is the second one of a stage with both ends of a V, which has one buffer for both."""
    parameter: Parameter
    read: bool
    chunk: int
    unit: int  # before the layers, a layer, behind them
    index: int
    tied: bool  # on two stages
    copy: bool
    local: int  # elements
    shard: int
    rest: tuple  # the axes over which the gradient is reduced when it has been scattered


def find_pieces(j, r):
    s, n = describe(j), j.product(["dp", "cp"]) if j.zero else 1
    pieces = []
    for c, virtual in enumerate(j.chunks[r]):
        tied = [s.first[0]] if j.isTied and j.pp > 1 else []
        units = [s.first if virtual == 0 else [], *[s.layer] * j.split[virtual], s.last + tied if virtual == len(j.split) - 1 else []]
        for number, unit in enumerate(units):
            for index, p in enumerate(unit):
                isTied, local = p in tied, p.elements // (j.tp if p.over_tp else 1)
                rest = [axis for axis in ("replica", "dp", "cp", "uly") if j.zero == 0 or axis not in ("dp", "cp")]
                rest += ["tp"] * (p.partial and j.sequence)
                read = p.read or isTied and number > 0 or unit is s.layer and (
                    j.recompute == "full" or j.recompute == "lean" and (index < len(unit) - 1 or j.model == "unfused"))
                isCopy = isTied and number > 0 and 0 in j.chunks[r]
                pieces.append(Piece(p, read, c, 0 if isTied and j.units else number, index, isTied, isCopy, local, -(-local // n),
                                    tuple(axis for axis in rest if getattr(j, axis) > 1)))
    return pieces


def is_kept(j, r, x):
    """Backward has what forward has gathered. A tied embedding is released last of all, and on several stages by each for itself."""
    if j.keep == "last":
        virtual = j.chunks[r][x.chunk]
        return x.unit == 0 and j.pp == 1 if j.isTied else virtual == len(j.split) - 1 and x.unit == j.split[virtual] + 1
    return j.keep


def add_states(j, traffic):
    """What parameters and gradients send, and what a rank of each stage has: elements, bytes of gradients and of states."""
    cut, n = ["dp", "cp"], j.product(["dp", "cp"])
    weight, wire = 4 if j.precision == "fp32" else 2, 2 if j.bf16 else 4
    inBackward = j.zero >= 2 or j.per_microbatch
    held = []
    for r in range(j.pp):
        pieces = find_pieces(j, r)

        def put(operation, axes, some, key, bytes, step):
            for c in {x.chunk for x in some}:
                mine = [x for x in some if x.chunk == c and not (x.copy and step)]
                total = sum(bytes * (n if operation == "reduce_scatter" else 1) * x.shard for x in mine)
                if step:  # what two stages do is by itself
                    traffic.put(r, operation, axes, len({(key(x), x.tied) for x in mine}), total)
                else:  # what is reduced in backward is at once what one half of it makes
                    split = halves(j, r, c) if operation != "all_gather" else 0
                    inHalves, inOne = len({(key(x), x.parameter.early) for x in mine}), len({key(x) for x in mine})
                    traffic.put(r, operation, axes, split * inHalves + (j.ofChunk - split) * inOne, j.ofChunk * total)

        def alone(x):
            return x.unit, x.index

        def reduced(x):  # behind the scatter, over axes of the rule
            return x.rest if set(x.rest) - {"tp"} else ()

        def span(x):  # a bucket ends with its layer, or with its group of layers
            behind = j.split[j.chunks[r][x.chunk]]
            return (x.unit + j.group - 1) // j.group if 0 < x.unit <= behind else -x.unit

        def scattered(x):
            if j.units:
                return x.unit
            return (span(x), reduced(x) if j.per_microbatch or not inBackward else ()) if j.bucket > 1 else alone(x)

        def completed(x):
            return (span(x), x.rest) if j.bucket > 1 else scattered(x)

        def gathered(x):  # what has been reduced at once in the step or, if nothing has, scattered at once before
            if reduced(x) and not j.per_microbatch:
                return completed(x)
            return scattered(x), inBackward and not j.units and j.hasHalves and x.parameter.early

        def unit(x):
            return (x.unit if j.units else alone(x)), x.tied

        if j.zero:
            put("reduce_scatter", cut, pieces, scattered, wire, not inBackward)
        if j.zero in (1, 2):
            put("all_gather", cut, pieces, gathered, weight, True)
        for rest in {x.rest for x in pieces}:
            # Over axes that are none of the rule's a gradient is reduced in its own type.
            some = [x for x in pieces if x.rest == rest]
            bytes = wire if reduced(some[0]) or j.per_microbatch else 4
            put("all_reduce", rest, some, completed if j.units or reduced(some[0]) else alone, bytes, not j.per_microbatch)
        if j.zero == 3:
            put("all_gather", cut, pieces, unit, weight, False)
            # A stage that does not read what it shares with another one gathers it with its own unit.
            shared = lambda x: (unit(x)[0], x.tied and x.read)
            put("all_gather", cut, [x for x in pieces if (x.read or j.again) and not is_kept(j, r, x)], shared, weight, False)
        if j.clip:
            traffic.put(r, "all_reduce", list(AXES), 1, 4)
        if j.copies > 1:  # what two copies of the model have added up, of a shard where it is cut
            own = [x for x in pieces if not x.copy]
            # By unit, as far as nothing else is reduced between the scatter and this.
            isAlone = lambda x: not j.units or bool(x.rest) and not j.per_microbatch
            bundles = {(x.chunk, isAlone(x), alone(x) if isAlone(x) else unit(x)) for x in own}
            traffic.put(r, "all_reduce", ["pp"], len(bundles), sum(x.shard for x in own) * 4)
        elif any(x.tied for x in pieces) and not any(x.copy for x in pieces):
            traffic.put(r, "all_reduce", ["pp"], 1, sum(x.local if j.strategy == "megatron" and j.zero == 1 else x.shard for x in pieces if x.tied) * 4)
        own = [x for x in pieces if not x.copy]
        held.append((sum(x.shard if j.zero == 3 else x.local for x in own), sum(4 * (x.shard if j.zero >= 2 else x.local) for x in own),
                     sum((8 if j.precision == "fp32" else 12) * x.shard for x in own)))
    return held


def count_host(j, r):
    """What a stage has on the host, bytes of parameters, gradients and states, and copies to it and from it, bytes."""
    weight, wire = 4 if j.precision == "fp32" else 2, 2 if j.bf16 else 4
    own = [x for x in find_pieces(j, r) if not x.copy]
    shards = sum(x.shard for x in own)
    if j.offload == "optimizer":  # reduced gradients go and new values come; a copy of the parameter is the master, of whatever type
        return (0, 0, 12 * shards), (4 * shards + 4 * j.clip, weight * shards)
    # Contributions go once per microbatch, in the type in which they have been reduced. What is reduced once per step comes and goes for that; what
    # is not comes for the norm.
    m, isCut = j.ofChunk, j.zero == 3
    reduced = lambda x: bool(x.rest) and not j.per_microbatch or j.copies > 1
    # An embedding that is the output layer, too, has two, which are added up where they are reduced, or else on the host.
    parts = lambda x: 2 if j.isTied and x.unit == x.index == 0 and not isCut and not j.per_microbatch else 1
    to = sum(x.shard * (m * parts(x) * (wire if isCut or j.per_microbatch and x.rest else 4) + 4 * reduced(x)) for x in own) + 4 * j.clip
    back = sum(x.shard * (m * weight * (1 + ((x.read or j.again) and not is_kept(j, r, x))) + 4 * (reduced(x) or j.clip)) for x in own)
    return (weight * shards, 4 * shards, (8 if weight == 4 else 12) * shards), (to, back)


def count_in_flight(j, r):
    """Microbatches, or chunks of them; of schedules in a V on the stage with the most."""
    p, m = j.pp, j.microbatches
    return {"gpipe": m, "one_f_one_b": min(m, p - r), "interleaved": min(j.v * m, 2 * (p - r - 1) + (j.v - 1) * p + 1),
            "zb_h1": min(m, p), "zb_h2": 2 * p - 1,
            "zb_v": min(2 * m, 2 * p), "dualpipe_v": 2 * p + 1, "dualpipe": p + 1}[j.schedule]


def count_moved(j, rows):
    """Bytes over tp that leave a rank."""
    g = j.tp
    parts = {"all_gather": (g - 1, 1), "reduce_scatter": (g - 1, g), "all_reduce": (2 * (g - 1), g)}
    return sum(bytes * parts[operation][0] // parts[operation][1] for (operation, axes, what), bytes in rows.items()
               if axes == ("tp",) and what == "bytes")


#===--- comparisons ----------------------------------------------------------------------------------------------------------------===#

def compare(j, report, traffic):
    """What differs, as lines."""
    wrong = []

    def check(what, found, expected):
        if found != expected:
            wrong.append(f"{what}: found {found}, expected {expected}")

    expected, padding = count_flops(j)
    for kind, value in expected.items():  # what is made again, on each rank that does
        again = report["duplicated_flops"][kind] if kind == "recomputed" else 0
        check(kind, report["flops"][kind] + again, value)
    check("padding", report["padding_flops"]["contraction"], padding)
    add_activations(j, traffic)
    held = add_states(j, traffic)
    for r, stage in enumerate(report["stages"]):
        rows = collections.Counter()
        for row in stage["communication"]:
            for what in ("count", "bytes"):
                rows[row["operation"], tuple(axis for axis in AXES if axis in row["axes"]), what] += row[what]
        keys = rows.keys() | traffic.rows[r].keys()
        if j.asynchronous:  # as many bytes leave a rank as if it were not, in whatever parts
            check(f"stage {r} moved over tp", sum(row["moved"] for row in stage["communication"] if row["axes"] == ["tp"]),
                  count_moved(j, traffic.rows[r]))
            keys = [key for key in keys if key[1] != ("tp",)]
        for key in sorted(keys):
            check(f"stage {r} {key[0]} over {'+'.join(key[1])}, {key[2]}", rows[key], traffic.rows[r][key])
        memory = stage["memory"]
        check(f"stage {r} parameters", stage["parameters_per_rank"], held[r][0])
        isHosted = j.offload == "parameters"
        check(f"stage {r} gradients", memory["gradients"], (0 if isHosted else held[r][1]) + 4 * j.clip)
        check(f"stage {r} optimizer", memory["optimizer"], 0 if j.offload in ("optimizer", "parameters") else held[r][2])
        copies = {row["operation"]: row["bytes"] for row in stage.get("copies", [])}
        if j.offload in ("optimizer", "parameters"):
            onHost, (to, back) = count_host(j, r)
            for what, bytes in zip(("parameters", "gradients", "optimizer"), onHost):
                check(f"stage {r} {what} of the host", stage["host_memory"][what], bytes)
            check(f"stage {r} to the host", copies["offload"], to)
            check(f"stage {r} from the host", copies["fetch"], back)
        if j.schedule not in ("zb_v", "dualpipe_v", "dualpipe"):
            check(f"stage {r} in flight", memory["in_flight"], count_in_flight(j, r) if j.pp > 1 else 1)
        saved = count_saved(j)
        if saved and j.offload == "activations" and j.group == 1 and len(j.chunks[r]) == 1 and j.precision != "fp32" and 0 < r < j.pp - 1 and not halves(j, r, 0):
            check(f"stage {r} kept on the host", copies["offload"], j.microbatches * saved * j.split[r])
        for virtual, bytes in zip(j.chunks[r], memory["saved_per_microbatch"]):
            if saved and j.keep is not True and j.offload != "activations" and j.precision != "fp32" and 0 < virtual < len(j.split) - 1 and not halves(j, r, 0):
                check(f"stage {r} saved", bytes, saved * -(-j.split[virtual] // j.group))
    if j.schedule in ("zb_v", "dualpipe_v", "dualpipe"):
        check("in flight", max(stage["memory"]["in_flight"] for stage in report["stages"]), count_in_flight(j, 0))
    return wrong


def count_traces(j, folder, stage_trace, traffic):
    """Of the first rank of each stage, what its trace sends."""
    types = {"all_gather": "ALL_GATHER", "all_reduce": "ALL_REDUCE", "reduce_scatter": "REDUCE_SCATTER", "all_to_all": "ALL_TO_ALL"}
    wrong = []
    for r in range(j.pp):
        expected = collections.Counter()
        for (operation, _, what), value in traffic.rows[r].items():
            expected[types.get(operation, "SEND"), what] += value
        found = collections.Counter()
        dump = run([stage_trace, "dump", os.path.join(folder, f"workload.{r * j.product(AXES) // j.pp}.et")])
        for kind, size in re.findall(r"COMM_(?:COLL|SEND) .*?(?:comm_type=(\w+) )?comm_size=(\d+)", dump):
            found[kind or "SEND", "count"] += 1
            found[kind or "SEND", "bytes"] += int(size)
        for key in sorted(found.keys() | expected.keys()):
            if found[key] != expected[key]:
                wrong.append(f"trace of stage {r}, {key}: found {found[key]}, expected {expected[key]}")
    return wrong


def main():
    stagec, stage_trace, strategy, scratch, shard, shards = sys.argv[1:]
    rng = random.Random(SEED)
    drawn = [draw(rng) for _ in range(JOBS)]
    more = random.Random(SEED + 1)
    for j in drawn:
        draw_more(j, more)
    apart = random.Random(SEED + 2)
    for j in drawn:
        draw_last(j, apart)
    kinds = random.Random(SEED + 3)
    for j in drawn:
        draw_kinds(j, kinds)
    jobs = {f"job{i}": j for i, j in enumerate(drawn) if i % int(shards) == int(shard)}
    program = os.path.join(scratch, "jobs.stg")
    os.makedirs(scratch, exist_ok=True)
    with open(strategy) as head, open(program, "w") as file:
        file.write(head.read() + "".join(text(name, j) for name, j in jobs.items()))
    plans = json.loads(run([stagec, program, "--all-jobs", "--report=json"]))["plans"]
    assert [plan["job"] for plan in plans] == list(jobs)
    failed = 0
    for number, plan in enumerate(plans):
        name, j = plan["job"], jobs[plan["job"]]
        traffic = Traffic(j)
        wrong = [f"refused: {plan['refused']}"] if "refused" in plan else compare(j, plan["report"], traffic)
        if not wrong and not os.environ.get("COUNT_ONLY"):
            folder = os.path.join(scratch, name)
            assert "proved on mesh" in run([stagec, program, "--job", name, "--prove"])
            run([stagec, program, "--job", name, "-o", folder])
            assert "finishes with buffered and with waiting sends" in run([stage_trace, "verify", folder])
            if number % 4 == 0 and not j.asynchronous:
                wrong = count_traces(j, folder, stage_trace, traffic)
        if wrong:
            failed += 1
            print(text(name, j) + "".join(f"  {line}\n" for line in wrong))
    print(len(plans) - failed, "of", len(plans), "jobs counted, proved and verified")
    sys.exit(failed != 0)


main()
