"""A draft model's proposals, against closed forms. draft.py STAGEC STAGE-TRACE FOLDER

Leviathan et al., Fast Inference from Transformers via Speculative Decoding (2023): a round proposes k tokens, one after the other, and the model checks all of
them at once, with the token before the first: k + 1 positions. What is accepted and one token more is kept. Of the first d proposals floor(A d) are accepted. The draft model
sees its own proposals but for the last, which it sees with the next token if it was accepted.
A token costs two FLOPs per weight that multiplies it, and four per element of all heads and pair of positions; a triangle of side n has n n / 2 pairs."""

import json
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

STAGEC, TRACE, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
MODEL = dict(L=4, D=64, H=8, KV=4, F=128, V=256)
DRAFT = dict(L=2, D=32, H=4, KV=2, F=64, V=256)


def llama(sizes):
    return "Llama(" + ", ".join(f"{name} = {value}" for name, value in sizes.items()) + ")"


def run(step, strategy="megatron(tp = 2)", *arguments, draft=llama(DRAFT)):
    path = FOLDER / "job.stg"
    path.write_text(f"import std.transformer;\nimport std.parallel;\nimport std.schedules;\nimport std.sampling;\n"
                    "strategy on_first(pp, tp) { megatron(pp = pp, tp = tp); pipeline layers over pp { schedule = one_f_one_b; place draft = first; } }\n"
                    "strategy apart(pp, tp) { megatron(pp = pp, tp = tp); let second = 1; pipeline layers over pp { schedule = one_f_one_b; split = [0, 2, 2]; "
                    "place draft = first; place embed = second; } }\n"
                    f"job j {{ model = {llama(MODEL)}; step = infer({step.replace('DRAFT', draft)}); "
                    f"precision = bf16_mixed; strategy = {strategy}; }}\n")
    return subprocess.run([STAGEC, str(path), *arguments], check=True, capture_output=True, text=True).stdout


def layers(L, D, H, KV, F, V):
    E = D // H
    return L * (D * (H + 2 * KV) * E + H * E * D + 3 * D * F)


def products(sizes, positions, logits):
    return 2 * layers(**sizes) * positions + 2 * sizes["D"] * sizes["V"] * logits


def attention(sizes, n, cached):
    pairs = cached + 1 if n == 1 else n * cached + Fraction(n * n, 2)
    return 4 * sizes["L"] * sizes["D"] * pairs


def list_rounds(begin, end, k, share):
    """(positions that both know, how many of them the draft model has not seen) of each round."""
    proposed, accepted, behind, rounds = 0, 0, 0, []
    while begin < end:
        rounds.append((begin, behind))
        proposed += k
        now = int(share * proposed) - accepted
        accepted += now
        behind = int(now == k)
        begin += now + 1
    return rounds


def check(B, S, made, k, share, batches=1):
    rounds = list_rounds(S, S + made, k, Fraction(share))
    found = json.loads(run(f"B = {B}, S = {S}, for T in {S}..{S + made}, draft = DRAFT, tokens = {k}, accept = {share}, microbatch = {B // batches}",
                           "megatron(tp = 2)", "--report=json"))
    units = {"prefill": [products(MODEL, S, 1) + products(DRAFT, S, 0) + attention(MODEL, S, 0) + attention(DRAFT, S, 0)], "draft": [], "decode": []}
    for begin, behind in rounds:
        units["draft"].append(products(DRAFT, 1 + behind, 1) + attention(DRAFT, 1 + behind, begin - behind))
        units["draft"] += [products(DRAFT, 1, 1) + attention(DRAFT, 1, begin + i) for i in range(1, k)]
        units["decode"].append(products(MODEL, k + 1, k + 1) + attention(MODEL, k + 1, begin))
    room = rounds[-1][0] + k + 1
    total = [found["flops"]["model"], [(one["phase"], one["units"]) for one in found["phases"]], found["caches"]["bytes"], found["caches"]["positions"]]
    expected = [B * sum(sum(of) for of in units.values()), [(name, batches * len(of)) for name, of in units.items()],
                B * room * sum(2 * of["L"] * of["KV"] * of["D"] // of["H"] * 2 for of in (MODEL, DRAFT)), room]
    # Two reductions per layer, and that of the embedding, of all positions of a batch.
    reduced = {phase["phase"]: phase["communication"][-1] for phase in found["phases"]}
    total += [reduced["decode"]["most_count"], reduced["decode"]["most_bytes"], reduced["draft"]["most_count"], reduced["draft"]["least_bytes"], reduced["draft"]["most_bytes"]]
    mL, mD, dL, dD = MODEL["L"], MODEL["D"], DRAFT["L"], DRAFT["D"]
    most = 2 if any(behind for _, behind in rounds) else 1
    expected += [2 * mL + 1, (2 * mL + 1) * B // batches * (k + 1) * mD * 2, 2 * dL + 1, (2 * dL + 1) * B // batches * dD * 2, (2 * dL + 1) * B // batches * dD * 2 * most]
    what = f"{k} proposals, {share} accepted: {len(rounds)} rounds"
    print(what if total == expected else f"{what}: found {total}, expected {expected}")
    return found


def check_stages(B, S, made, k, share, batches, where="last", samples=False):
    """The draft model is on the last stage, which makes what it goes on from, or where the strategy places it: beside layers of the model, or alone."""
    rounds = list_rounds(S, S + made, k, Fraction(share))
    strategy = {"last": "megatron(pp = 2, tp = 2)", "first": "on_first(pp = 2, tp = 2)", "alone": "apart(pp = 3, tp = 2)"}[where]
    step = f"B = {B}, S = {S}, for T in {S}..{S + made}, draft = DRAFT, tokens = {k}, accept = {share}, microbatch = {B // batches}" + ", sample = Greedy" * samples
    shutil.rmtree(FOLDER / "staged", ignore_errors=True)
    stages = json.loads(run(step, strategy, "--report=json", "-o", str(FOLDER / "staged")))["stages"]

    def weights(L, D, H, KV, F, V):
        return layers(L, D, H, KV, F, V) // 2 + 2 * L * D

    def caches(L, D, H, KV, F, V):
        return B * (rounds[-1][0] + k + 1) * L * 2 * KV // 2 * D // H * 2

    half, words, draft_words = dict(MODEL, L=MODEL["L"] // 2), MODEL["D"] * MODEL["V"] // 2, 2 * DRAFT["D"] * DRAFT["V"] // 2
    parameters = [words + weights(**half), words + MODEL["D"] + weights(**half)]
    kept, sent = [caches(**half)] * 2, [[batches * (1 + len(rounds)), B * MODEL["D"] * 2 * (S // 2 + len(rounds) * (k + 1))], []]
    if where == "alone":
        parameters, kept, sent = [0, *parameters], [0, *kept], [[], *sent]
    if samples and where == "last":  # each unit's tokens, of 4 bytes, go to the first stage
        sent[1] = [batches * (1 + len(rounds) * (k + 1)), 4 * B * (1 + len(rounds) * (2 * k + 1))]
    elif samples:  # each proposal goes to where the model begins; what the model makes, to the draft model, too
        sent[0] = [batches * len(rounds) * k, 4 * B * len(rounds) * k]
        sent[2] = [2 * batches * (1 + len(rounds)), 2 * 4 * B * (1 + len(rounds) * (k + 1))]
    home = 1 if where == "last" else 0
    parameters[home] += draft_words + DRAFT["D"] + weights(**DRAFT)
    kept[home] += caches(**DRAFT)
    sends = [[one for one in stage["communication"] if one["operation"] == "send"] for stage in stages]
    found = [[one["parameters_per_rank"] for one in stages], [one["memory"]["caches"] for one in stages], [[sum(row[of] for row in rows) for of in ("count", "bytes")] if rows else [] for rows in sends]]
    expected = [parameters, kept, sent]
    # Behind each step of a batch stand the proposals that go on from it.
    number, order = iter(range(10**6)), []
    for kind in ["F" * batches] + ["P" * k * batches] + ["D"] * batches * len(rounds):
        order += [f"{one}{next(number)}" for one in kind]
        if kind == "D" and sum(one[0] == "D" for one in order) <= batches * (len(rounds) - 1):
            order += [f"P{next(number)}" for _ in range(k)]
    for stage in range(len(stages)):
        names = subprocess.run([TRACE, "dump", str(FOLDER / "staged"), "--rank", str(2 * stage)], check=True, capture_output=True, text=True).stdout
        names = "\n".join(line for line in names.splitlines() if "token" not in line)
        found += [list(dict.fromkeys(re.findall(r' ([FPD]\d+)"', names))), '"draft.' in names, re.search(r'"(layers|embed|logits)', names) is not None]
        runs = "FP" if where == "alone" and stage == home else "FPD" if stage == home else "FD"
        expected += [[one for one in order if one[0] in runs], stage == home, "D" in runs]
    what = f"{len(stages)} stages, {len(rounds)} rounds of {batches} batches, on the {where} one" if where != "alone" else f"{len(rounds)} rounds of {batches} batches, on a stage alone"
    what += ", with tokens" * samples
    print(what if found == expected else f"{what}: found {found}, expected {expected}")


check(4, 64, 40, 4, "0.75")
check(4, 64, 80, 4, "0.75")
check(4, 64, 40, 4, "1")
check(4, 64, 40, 4, "0")
check(8, 64, 30, 1, "0.5", batches=2)
check(2, 32, 30, 3, "0.6")
check_stages(8, 16, 20, 4, "0.75", 2)
check_stages(8, 16, 40, 4, "0.75", 2)
check_stages(8, 16, 20, 3, "1", 4)
check_stages(8, 16, 20, 2, "0.5", 2, "first")
check_stages(6, 16, 20, 4, "0.75", 3, "alone")
check_stages(6, 16, 40, 4, "0.75", 3, "alone")
check_stages(6, 16, 20, 4, "0.75", 3, "alone", samples=True)
check_stages(6, 16, 40, 4, "0.75", 3, "alone", samples=True)
check_stages(8, 16, 20, 4, "0.5", 1, samples=True)
# A step that verifies is what a step of as many tokens is.
both = [json.loads(run(f"B = 4, for T in 64..65, {words}", "megatron(tp = 2)", "--report=json"))["phases"][-1] for words in
        ("draft = DRAFT, tokens = 4, accept = 0", "tokens = 5")]
print("verified as five tokens" if both[0] == both[1] else f"verified as five tokens: {both}")
run("B = 4, S = 8, for T in 8..20, draft = DRAFT, tokens = 2, accept = 0.75, microbatch = 1", "megatron(tp = 2, dp = 2)", "-o", str(FOLDER / "traces"))
print(subprocess.run([TRACE, "verify", str(FOLDER / "traces")], check=True, capture_output=True, text=True).stdout, end="")
GPT = "GPT(L = 2, D = 32, H = 4, V = 256, T = 512, rate = 0)"
for step, strategy, draft in (("B = 4, S = 64, for T in 64..100, draft = DRAFT, tokens = 4, accept = 0.75", "megatron(tp = 2)", llama(DRAFT)),
                              ("B = 4, S = 64, chunk = 16, for T in 64..100, draft = DRAFT, tokens = 4, accept = 1, microbatch = 1", "megatron(dp = 2, tp = 2)", llama(DRAFT)),
                              ("B = 4, S = 64, for T in 64..100, draft = DRAFT, tokens = 1, accept = 0.5", "megatron(tp = 2, sequence_parallel = false)", GPT),
                              ("B = 4, S = 64, chunk = 16, for T in 64..100, draft = DRAFT, tokens = 2, accept = 1", "megatron(pp = 2, tp = 2)", llama(DRAFT)),
                              ("B = 4, S = 64, for T in 64..100, draft = DRAFT, tokens = 2, accept = 0.5", "on_first(pp = 2, tp = 2)", GPT),
                              ("B = 6, S = 64, for T in 64..100, draft = DRAFT, tokens = 2, accept = 1, sample = Greedy", "apart(pp = 3, tp = 2)", llama(DRAFT))):
    print(run(step, strategy, "--prove", draft=draft).splitlines()[-1])
