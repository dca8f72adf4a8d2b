"""Draws programs with experts and meshes for them, and proves each; of those whose tokens all ranks have their own, counts what moves, too.

    random_moe.py stagec program.stg number seed [program ...]; with numbers behind the seed those programs alone are proved, and kept

A program is a few layers of experts of std.moe: how many, how wide and of which kind, how many a token goes to, in groups or not, beside shared
ones or narrower than the model, with softmax or sigmoid scores, with a capacity, loads, in two steps, or sent once to each rank or node. A mesh is pp, dp, cp and tp, the ranks of a stage read
again as edp, ep and etp, or as edp, nodes and ranks of a node, in sizes of 1 to 6. A token goes to fewer experts than there are. Counted by hand: tokens go to experts and back by one all_to_all each
way, forward and backward, of the slots that there are; in two steps by two, and numbers and weights beside them (DeepSeek-V3, arXiv 2412.19437, section 3.2.2).
"""
import concurrent.futures
import fractions
import json
import math
import os
import random
import subprocess
import sys

HEAD = """import std.loads (of_layer);
import std.moe;
import std.nn;
import std.schedules (gpipe, one_f_one_b);
import std.transformer (SwiGLU);

/// Experts of two products, with biases.
module Plain(t: [X, C, D], FE) -> [X, C, D] {
  param up: [X, D, FE];
  param bias: [X, FE];
  param down: [X, FE, D];
  let u[x, c, f] = sum[d](t[x, c, d] * up[x, d, f]) + bias[x, f];
  let h = u * u;
  return [x, c, d] = sum[f](h[x, c, f] * down[x, f, d]);
}
"""


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def fits(load, k, groups, top_groups):
    """No expert gets more choices than there are tokens, and no groups more than tokens can go to."""
    block = len(load) // groups
    return max(load) * k <= sum(load) and sum(max(load[g * block:][:block]) for g in range(groups)) * k <= top_groups * sum(load)


def nest(first, second):
    """Whether the axes of two readings of the same ranks can be cut into common ones: of neighbouring places each divides the next."""
    places = set()
    for sizes in (first, second):
        inner = 1
        for size in reversed(sizes):
            inner *= size
            places.add(inner)
    places = sorted(places)
    return all(after % before == 0 for before, after in zip(places, places[1:]))


def count_most(choices, copies, blocks):
    """The most choices that a rank gets: these are numbered, a block of experts has as many numbers in a row, and ranks that have copies of it those of
    their own sources, each time the next one's."""
    starts = [-(-block * choices // blocks) for block in range(blocks + 1)]
    return max(sum(1 for number in range(begin, end) if number % copies == row) for begin, end in zip(starts, starts[1:]) for row in range(copies))


def share_of_place(places, experts, k, groups, top_groups):
    """Of tokens with k different experts those with one on a place. Of groups `top_groups` are drawn, and each has equally many of the k."""
    def share(all, own, drawn):
        return 1 - fractions.Fraction(math.comb(all - own, drawn), math.comb(all, drawn))
    if groups == 1:
        return share(experts, experts // places, k)
    if groups % places == 0:
        return share(groups, groups // places, top_groups)
    return fractions.Fraction(top_groups, groups) * share(experts // groups, experts // places, -(-k // top_groups))


def lie_evenly(groups, places):
    return groups == 1 or groups % places == 0 or places % groups == 0


class Program:
    def __init__(self, rng):
        self.steps = rng.choice([1, 1, 2])  # in which tokens go to experts
        while True:
            dp, cp, tp = (rng.choice([1, 1, 2, 2, 3, 4]) for _ in range(3))
            ranks = dp * cp * tp
            if not 1 < ranks <= 24:
                continue
            self.outer = rng.choice(divisors(ranks))  # nodes, or ep
            self.inner = rng.choice(divisors(ranks // self.outer))  # ranks of a node, or etp
            if self.steps == 2 and self.outer == 1:
                continue
            if nest((dp, cp, tp), (ranks // (self.outer * self.inner), self.outer, self.inner)):
                break
        self.dp, self.cp, self.tp, self.ranks = dp, cp, tp, ranks
        self.pp = rng.choice([1, 1, 1, 2]) if ranks <= 12 else 1
        self.layers = self.pp * rng.choice([1, 2])
        self.sequence = tp > 1 and (self.steps == 2 or self.outer * self.inner % tp != 0 or rng.random() < 0.8)  # tensor ranks have tokens of their own
        self.mirrored = cp > 1 and rng.random() < 0.4
        self.router = rng.choice(["SoftmaxRouter", "AllShareRouter", "SigmoidRouter"])
        self.scale = rng.choice([1, 2.5])
        self.recompute, self.zero = rng.random() < 0.25, rng.choice([0, 0, 1, 2, 3])
        self.overlaps = rng.random() < 0.2
        self.width, self.microbatch = rng.choice([6, 8, 12]), rng.choice([1, 1, 2])
        self.microbatches = self.pp * rng.choice([1, 2])
        self.capacity, self.load, self.narrow, self.expert = None, None, False, "Experts"
        self.kind = rng.choice(["TwoStepMoE", "TwoStepOnceMoE"]) if self.steps == 2 else rng.choice(["MoE", "MoE", "SharedMoE", "OnceMoE"])
        if self.kind == "OnceMoE" and self.outer == 1:
            self.kind = "MoE"
        self.once = self.kind in ("OnceMoE", "TwoStepOnceMoE")
        if self.steps == 2:
            self.draw_nodes(rng)
        else:
            self.draw_experts(rng)
        self.hidden = self.inner * rng.choice([2, 3]) if self.steps == 1 else 6
        self.sequence_length = cp * tp * rng.choice([2, 3, 4]) * (4 if self.mirrored else 1)
        if self.topk == 1:
            self.router = "AllShareRouter"  # one normalised share is 1, and has no gradient

    def draw_nodes(self, rng):
        """A token's experts are on as many nodes as can be, equally many on each."""
        while True:
            self.experts = self.outer * self.inner * rng.choice([1, 2, 3])
            self.groups = rng.choice([1, 1, self.outer, self.outer * 2])
            self.top_groups = rng.randint(1, self.groups)
            self.topk = rng.choice([1, 2, 3, 4, 6])
            copies = min(self.topk, self.outer) if self.groups == 1 else min(self.topk, self.outer, self.top_groups * -(-self.outer // self.groups))
            if self.experts % self.groups or self.topk % copies or self.topk > copies * self.experts // self.outer or self.topk >= self.experts:
                continue
            if self.once and not lie_evenly(self.groups, self.outer * self.inner):
                continue
            if self.topk <= self.top_groups * self.experts // self.groups:
                self.copies = copies
                return

    def draw_experts(self, rng):
        while True:
            self.experts = self.outer * rng.choice([1, 2, 3, 4])
            self.groups = rng.choice([1, 1, 1] + divisors(self.experts))
            self.top_groups = rng.randint(1, self.groups)
            self.topk = rng.choice([1, 2, 2, 3, 4])
            if self.once and not lie_evenly(self.groups, self.outer):
                continue
            if self.topk <= self.top_groups * self.experts // self.groups and self.topk < self.experts:
                break
        if self.once:
            return
        self.capacity = rng.choice([None, None, "1.25", "0.5", "2"])
        if rng.random() < 0.4:
            load = [rng.choice([0, 1, 1, 2, 3, 5]) for _ in range(self.experts)]
            self.load = load if sum(load) and fits(load, self.topk, self.groups, self.top_groups) else None
        if self.kind == "MoE":
            self.narrow, self.expert = rng.random() < 0.25, rng.choice(["Experts", "Plain"])

    def write(self):
        settings = f"route = {self.router}, scale = {self.scale}, groups = {self.groups}, top_groups = {self.top_groups}, ranks = ranks"
        if self.steps == 1 and not self.once:
            settings += f", capacity = {self.capacity or 'none'}, load = of_layer(loads, i)"
        if self.kind == "MoE":
            settings += f", expert = {self.expert}"
        layer = {"TwoStepMoE": f"TwoStepMoE(h, X, K, FE, nodes, {settings})", "OnceMoE": f"OnceMoE(h, X, K, FE, {self.outer}, {settings})",
                 "TwoStepOnceMoE": f"TwoStepOnceMoE(h, X, K, FE, nodes, {self.outer * self.inner}, {settings})", "SharedMoE": f"SharedMoE(h, X, K, FE, {6 * self.tp}, {settings})",
                 "MoE": f"MoE(h, X, K, FE, {settings})"}[self.kind]
        body = f"    h = h + {layer} as moe;\n"
        if self.narrow:
            body = ("    param into: [D, Z];\n    param out: [Z, D];\n"
                    f"    h = h + linear(MoE(h, X, K, FE, {settings}, sent = linear(h, into)) as moe, out);\n")
        axes = "ep_nodes, ep_local" if self.steps == 2 else "ep, etp"
        experts = "XO over ep_nodes, XI over ep_local" if self.steps == 2 else f"{'XO' if self.once else 'X'} over ep, FE over etp"
        where = self.ranks // (self.outer * self.inner)
        tokens = self.dp * self.cp * (self.tp if self.sequence else 1)
        rules = [f"mesh (pp, dp, cp, tp) = (pp, edp, {axes});", "shard B over dp;", f"shard S over cp order {'mirrored' if self.mirrored else 'blocked'};",
                 f"shard {experts};", f"pad ranks to {tokens};"]
        if self.kind == "SharedMoE":
            rules.append("shard F over tp;")
        if self.sequence:
            rules.append("at layers[*].h: shard S over (cp, tp);")
        if self.zero and self.dp * self.cp > 1:
            rules.append(f"partition {['optimizer', 'gradients', 'parameters'][self.zero - 1]} over (dp, cp);")
        if self.recompute:
            rules.append("recompute layers[*];")
        if self.overlaps:
            rules.append("overlap communication with compute;")
        rules.append(f"pipeline layers over pp {{ schedule = one_f_one_b; }}")
        steps = self.dp * self.microbatch * self.microbatches
        more = {"Z": "5"} if self.narrow else {}
        more |= {"nodes": self.outer} if self.steps == 2 else {} if self.once else {"loads": f"[{self.load}]" if self.load else "none"}
        return HEAD + f"""model M(L, D, X, K, FE, {"".join(name + ", " for name in more)}ranks = 1) {{
  dim B, S;
  input x: [B, S, D];
  param g: [D];
  var h = x * g;
  repeat layers[i in 0..L] {{
{body}  }}
  return [] = sum[b, s, d](h[b, s, d] * h[b, s, d]);
}}
strategy s(pp, dp, cp, tp, edp, {axes}) {{
  {chr(10).join('  ' + rule for rule in rules).strip()}
}}
job j {{
  model = M(L = {self.layers}, D = {self.width}, X = {self.experts}, K = {self.topk}, FE = {self.hidden}{"".join(f", {name} = {value}" for name, value in more.items())});
  step = train(B = {steps}, S = {self.sequence_length}, microbatch = {self.microbatch}, optimizer = adamw);
  precision = bf16_mixed;
  strategy = s(pp = {self.pp}, dp = {self.dp}, cp = {self.cp}, tp = {self.tp}, edp = {where}, {axes.split(', ')[0]} = {self.outer}, {axes.split(', ')[1]} = {self.inner});
}}
"""


    def count(self):
        """all_to_alls of a rank in a layer and microbatch, forward and backward, and the bytes of tokens that it puts into them; nothing where some ranks
        have the same tokens, and so other ways, or layers run again, or ranks differ."""
        if self.tp > 1 and not self.sequence or self.recompute or self.load or self.narrow:
            return None
        tokens, ranks = self.microbatch * self.sequence_length // (self.cp * self.tp), self.ranks
        if self.steps == 1 and self.outer == 1:
            return 0, 0
        if self.once:
            return self.count_once(tokens)
        if self.steps == 1 and self.capacity:
            slots = self.experts * -(-int(fractions.Fraction(self.capacity) * tokens * ranks * self.topk) // (ranks * self.experts))
            return 4, 4 * slots * self.width * 2
        if self.steps == 1:
            choices = tokens * self.topk
            return 4, 2 * (choices + count_most(choices * ranks, ranks // self.outer, self.outer)) * self.width * 2
        slots = self.outer * -(-tokens * self.copies // self.outer)
        choices = slots * self.topk // self.copies
        between = 4 * slots * self.width * 2 + 3 * choices * 4
        inside = choices + count_most(choices * ranks // self.outer, ranks // (self.outer * self.inner), self.inner)
        return (11, between + 2 * inside * self.width * 2) if self.inner > 1 else (7, between)

    def count_once(self, tokens):
        """Tokens go to places and come back, in forward and in backward; numbers and weights of their experts go along, and gradients of weights come back."""
        def slots_of(places):
            tenthousands = math.ceil(10_000 * share_of_place(places, self.experts, self.topk, self.groups, self.top_groups))
            return places * -(-tokens * tenthousands // 10_000)
        bytes_of_slot = 4 * self.width * 2 + 3 * self.topk * 4
        if self.steps == 1 or self.inner == 1:
            return 7, slots_of(self.outer) * bytes_of_slot
        return 14, (slots_of(self.outer) + slots_of(self.outer * self.inner)) * bytes_of_slot


def prove(stagec, folder, number, seed, keep):
    program = Program(random.Random(f"{seed} {number}"))
    path = os.path.join(folder, f"{number}.stg")
    with open(path, "w") as file:
        file.write(program.write())
    done = subprocess.run([stagec, path, "--verify-each", "--prove"], capture_output=True, text=True)
    said = done.stdout + done.stderr
    isProved = done.returncode == 0 and "proved on mesh" in done.stdout
    if isProved and program.count() is not None:
        report = subprocess.run([stagec, path, "--report=json"], capture_output=True, text=True)
        times = program.layers // program.pp * program.microbatches
        for stage in json.loads(report.stdout)["stages"]:
            moved = [of for of in stage["communication"] if of["operation"] == "all_to_all"]
            found = sum(of["count"] for of in moved), sum(of["bytes"] for of in moved)
            if found != tuple(number * times for number in program.count()):
                isProved, said = False, f"all_to_alls of a stage and their bytes are {found}, not {times} times {program.count()}\n"
    if isProved and not keep:
        os.remove(path)
    return number, isProved, said


def main():
    stagec, folder, count, seed, *chosen = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    numbers = [int(number) for number in chosen] or range(int(count))
    proved = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for number, isProved, said in pool.map(lambda number: prove(stagec, folder, number, seed, bool(chosen)), numbers):
            proved += isProved
            if not isProved:
                print(f"program {number} of seed {seed} is not as it should be:\n{said}")
    print(proved, "of", len(numbers), "programs with experts proved and counted")
    sys.exit(proved != len(numbers))


main()
