"""What a prefill sends to the ranks that decode, from degrees and shapes alone.

Two pools of one model are compiled under a grid of meshes. For each rank that decodes, each layer and each batch this program lists what
the rank has to have of each cache: its sequences, and its heads (with fewer heads than ranks, one; of what has no heads all of it).
The messages in the traces must bring exactly that, each element once, from ranks that hold it, on the stage that has the layer; and
the report must say as many messages and bytes.

usage: pools.py STAGEC STAGE_TRACE FOLDER
"""
import json
import os
import re
import subprocess
import sys

stagec, stage_trace, folder = sys.argv[1:4]

LLAMA = "Llama(L = 4, D = 64, H = 8, KV = 4, F = 128, V = 64)"
WINDOW = "Mistral(L = 4, D = 64, H = 8, KV = 4, F = 128, V = 64, window = 3)"
LATENT = "DeepSeek(L = 4, D = 64, H = 8, QL = 16, KL = 8, E = 8, R = 4, EV = 8, F = 64, FE = 32, X = 8, K = 2, V = 64, dense = 4, shared = 1)"
STATE = "Mamba(L = 4, D = 64, H = 8, P = 16, N = 16, V = 64, groups = 4, Q = 4)"
S = 16
# By model: its caches, with heads (0: none) and bytes of a sequence and head.
CACHES = {
    LLAMA: {"attn.keys": (4, S * 8 * 2), "attn.vals": (4, S * 8 * 2)},
    WINDOW: {"attn.keys": (4, 3 * 8 * 2), "attn.vals": (4, 3 * 8 * 2)},
    LATENT: {"attn.latents": (0, S * 8 * 2), "attn.turned": (0, S * 4 * 2)},
    # 4 groups of 2 heads of 16: three last inputs of heads, and of what writes and reads, in 2 bytes, and a state in 4.
    STATE: {"mixer.tail_x": (4, 3 * 2 * 16 * 2), "mixer.tail_b": (4, 3 * 16 * 2), "mixer.tail_c": (4, 3 * 16 * 2),
            "mixer.state": (4, 2 * 16 * 16 * 4)},
}
LAYERS, SEQUENCES = 4, 16
# (pp, dp, tp, sequences of a batch per rank) of the prefill, and of those that decode.
GRID = [((1, 1, 2, 16), (1, 1, 4, 16)), ((1, 1, 4, 16), (1, 1, 2, 16)), ((2, 2, 1, 4), (1, 2, 2, 8)), ((1, 2, 2, 2), (2, 1, 2, 8)),
        ((2, 1, 4, 4), (4, 2, 1, 2)), ((1, 1, 1, 4), (1, 8, 1, 2)), ((1, 4, 1, 1), (1, 1, 8, 16)), ((1, 1, 8, 8), (1, 2, 1, 8)),
        ((4, 1, 1, 2), (2, 4, 2, 2)), ((1, 2, 1, 8), (1, 1, 1, 16)), ((1, 2, 4, 4), (1, 2, 4, 8))]


class Pool:
    def __init__(self, degrees, first):
        self.pp, self.dp, self.tp, self.microbatch = degrees
        self.first, self.ranks = first, self.pp * self.dp * self.tp
        self.batch = self.microbatch * self.dp

    def place(self, rank):
        rank -= self.first
        return rank // (self.dp * self.tp), rank // self.tp % self.dp, rank % self.tp

    def has(self, rank, layer):
        return self.place(rank)[0] == layer * self.pp // LAYERS

    def heads(self, rank, heads):
        """Of each so many ranks one head, or several on each."""
        if not heads:
            return {0}
        turn = self.place(rank)[2]
        if self.tp >= heads:
            return {turn * heads // self.tp}
        return set(range(turn * heads // self.tp, (turn + 1) * heads // self.tp))

    def sequences(self, rank):
        """Of all, those that the rank has, whatever their batch."""
        turn = self.place(rank)[1]
        return {s for s in range(SEQUENCES) if s % self.batch // self.microbatch == turn}


def job(name, model, degrees, step):
    pp, dp, tp, microbatch = degrees
    return (f"job {name} {{ model = {model}; precision = bf16_mixed; step = infer(B = {SEQUENCES}, microbatch = {microbatch}, {step});\n"
            f"  strategy = megatron(pp = {pp}, dp = {dp}, tp = {tp}, sequence_parallel = false); }}\n")


def check(model, degrees, others, send, chunk):
    prefill, decode = Pool(degrees, 0), None
    decode = Pool(others, prefill.ranks)
    path, traces = os.path.join(folder, "pools.stg"), os.path.join(folder, "traces")
    with open(path, "w") as file:
        file.write("import std.transformer;\nimport std.llama;\nimport std.deepseek;\nimport std.ssm;\nimport std.parallel;\n")
        file.write(job("fill", model, degrees, f"S = {S}" + (f", chunk = {chunk}" if chunk else "")))
        file.write(job("serve", model, others, f"for T in {S}..{S + 2}, prefilled = fill, send = {send}"))
    run = subprocess.run([stagec, path, "--job=serve", "--report=json", "-o", traces, "--force"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)["sent_caches"]
    verified = subprocess.run([stage_trace, "verify", traces], capture_output=True, text=True)
    assert verified.returncode == 0 and "with buffered and with waiting sends" in verified.stdout, verified.stdout + verified.stderr

    # Messages: (sender, receiver, tag) on both ends.
    sent, received = {}, {}
    for rank in range(prefill.ranks + decode.ranks):
        text = subprocess.run([stage_trace, "dump", os.path.join(traces, f"workload.{rank}.et")], capture_output=True, text=True, check=True).stdout
        kinds = "send" if rank < prefill.ranks else "recv"
        for kind, layer, cache, phase, unit, peer, size, tag in re.findall(
                r'"(send|recv) layers\.(\d+)\.(\S+) ([FD])(\d+)".*comm_(?:dst|src)=(\d+) comm_size=(\d+) comm_tag=(\d+)', text):
            assert kind == kinds and phase == ("D" if kind == "send" and chunk else "F")
            batch = int(unit) // (-(-S // chunk) if kind == "send" and chunk else 1)  # sent by a unit behind the last chunk
            ends = (rank, int(peer)) if kind == "send" else (int(peer), rank)
            (sent if kind == "send" else received).setdefault(ends, []).append((int(tag), int(layer), cache, int(size), batch))
    assert {ends: sorted(m[:4] for m in messages) for ends, messages in sent.items()} == \
           {ends: sorted(m[:4] for m in messages) for ends, messages in received.items()}
    assert all(len({m[0] for m in messages}) == len(messages) for messages in sent.values()), "two messages of one tag"

    total, number, least, most = 0, 0, None, 0
    ofSender = {}
    for rank in range(decode.first, decode.first + decode.ranks):
        own = 0
        for cache, (heads, unit) in CACHES[model].items():
            for layer in range(LAYERS):
                if not decode.has(rank, layer):
                    continue
                wanted = {(s, h) for s in decode.sequences(rank) for h in decode.heads(rank, heads)}
                got = []
                for (sender, receiver), messages in sent.items():
                    if receiver != rank:
                        continue
                    for tag, ofLayer, name, size, batch in messages:
                        if (ofLayer, name) != (layer, cache):
                            continue
                        assert prefill.has(sender, layer), "sent by another stage"
                        # What the sender has of this batch of its own, and the receiver needs.
                        piece = {(s, h) for s in prefill.sequences(sender) if s // prefill.batch == batch
                                 for h in prefill.heads(sender, heads)} & wanted
                        assert piece and len(piece) * unit == size, (cache, layer, sender, rank, size, len(piece) * unit)
                        got += sorted(piece)
                        own += size
                        number += 1
                        ofSender.setdefault((cache, layer, batch), {}).setdefault(sender, 0)
                        ofSender[cache, layer, batch][sender] += 1
                assert sorted(got) == sorted(wanted), (cache, layer, rank)
        total += own
        least, most = own if least is None else min(least, own), max(most, own)
    # Ranks that hold the same send equally much, give or take a message.
    for (cache, layer, batch), counts in ofSender.items():
        heads = CACHES[model][cache][0]
        alike = {}
        for sender in range(prefill.ranks):
            if prefill.has(sender, layer):
                piece = (frozenset(prefill.sequences(sender)), frozenset(prefill.heads(sender, heads)))
                alike.setdefault(piece, []).append(counts.get(sender, 0))
        assert all(max(many) - min(many) <= 1 for many in alike.values())
    # And of all caches together, as they take turns: of 4 layers two or more caches are sharded alike.
    alike = {}
    for sender in range(prefill.ranks):
        piece = (prefill.place(sender)[0], frozenset(prefill.sequences(sender)), frozenset(prefill.heads(sender, max(h for h, _ in CACHES[model].values()))))
        alike.setdefault(piece, []).append(sum(len(messages) for ends, messages in sent.items() if ends[0] == sender))
    batches = SEQUENCES // prefill.batch
    assert all(max(many) - min(many) <= batches * len(CACHES[model]) / 2 for many in alike.values()), alike
    assert (report["bytes"], report["messages"]) == (total, number), (report, total, number)
    assert (report["receivers"]["least_bytes"], report["receivers"]["most_bytes"]) == (least, most)
    bySender = [sum(m[3] for ends, messages in sent.items() if ends[0] == rank for m in messages) for rank in range(prefill.ranks)]
    assert (report["senders"]["least_bytes"], report["senders"]["most_bytes"]) == (min(bySender), max(bySender))
    once = sum((heads or 1) * unit for heads, unit in CACHES[model].values()) * LAYERS * SEQUENCES
    assert report["cache_bytes"] == once, (report["cache_bytes"], once)


names = {LLAMA: "keys and values", WINDOW: "windows", LATENT: "latents", STATE: "states"}
for model, name in names.items():
    done = 0
    for number, (degrees, others) in enumerate(GRID):
        if model == STATE and max(degrees[2], others[2]) > 4:
            continue  # its groups are not split further
        try:
            check(model, degrees, others, "by_layer" if number % 2 else "at_end", 8 if number % 3 == 2 else None)
        except AssertionError as fault:
            sys.exit(f"{name}, {degrees} to {others}: {fault}")
        done += 1
    print(f"{name}: {done} pairs of meshes as counted")


def report(layers, sequences, fill, serve, time_limit=60):
    """What is sent, of meshes (pp, dp, tp, sequences of a batch per rank)."""
    path = os.path.join(folder, "growth.stg")
    model = f"Llama(L = {layers}, D = 2048, H = 64, KV = 64, F = 64, V = 64)"
    with open(path, "w") as file:
        file.write("import std.transformer;\nimport std.parallel;\n")
        for name, (pp, dp, tp, microbatch), step in (("fill", fill, f"S = {S}"), ("serve", serve, f"for T in {S}..{S + 2}, prefilled = fill")):
            file.write(f"job {name} {{ model = {model}; precision = bf16_mixed; step = infer(B = {sequences}, microbatch = {microbatch}, {step});\n"
                       f"  strategy = megatron(pp = {pp}, dp = {dp}, tp = {tp}, sequence_parallel = false); }}\n")
    run = subprocess.run([stagec, path, "--job=serve", "--report=json"], capture_output=True, text=True, timeout=time_limit)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["sent_caches"]


# n against 2n: layers; batches on both sides; sequences of a batch, which make messages larger.
small = (16, 32, (1, 2, 4, 4), (1, 4, 8, 4))
first = report(*small)
for what, more, messages in (("layers", report(32, *small[1:]), 2), ("batches", report(16, 64, *small[2:]), 2),
                             ("sequences of a batch", report(16, 64, (1, 2, 4, 8), (1, 4, 8, 8)), 1)):
    assert more["bytes"] == 2 * first["bytes"] and more["messages"] == messages * first["messages"], (what, first, more)
    print(f"twice the {what}: twice the bytes, {messages} times the messages")
# 8,192 ranks: 4,096 of 8 heads each for 4,096 of 4 heads. Each rank sends 2 messages per cache, of 80 layers.
many = report(80, 4096, (1, 512, 8, 8), (1, 256, 16, 16))
assert many["messages"] == 80 * 2 * 4096 * 2 and many["bytes"] == many["cache_bytes"], many
assert many["senders"] == {"ranks": 4096, "least_messages": 320, "most_messages": 320, "least_bytes": many["bytes"] // 4096,
                           "most_bytes": many["bytes"] // 4096}, many
print("8,192 ranks: as many messages as counted")


# Times by rates: 2 * 16 layers * 4,096 positions * 1,024 numbers of 2 bytes, half of them on each rank, take 13.4 ms; sent at the end they come behind all else,
# by layer beside it: what is left at the end are those of the last layer.
path = os.path.join(folder, "timed.stg")
with open(path, "w") as file:
    file.write("import std.transformer;\nimport std.parallel;\n")
    for name, step in (("fill", "S = 4096"), ("by_layer", "for T in 4096..4097, prefilled = fill"), ("at_end", "for T in 4096..4097, prefilled = fill, send = at_end")):
        file.write(f"job {name} {{ model = Llama(L = 16, D = 1024, H = 16, KV = 16, F = 4096, V = 1024); precision = bf16_mixed; step = infer(B = 1, {step}); strategy = megatron(tp = 2, sequence_parallel = false); }}\n")
times = {}
for name in ("fill", "by_layer", "at_end"):
    traces = os.path.join(folder, name)
    subprocess.run([stagec, path, f"--job={name}", "-o", traces, "--force"], check=True)
    text = subprocess.run([stage_trace, "timeline", traces, "--flops=100TFLOP/s", "--memory=3TB/s", "--link=10GB/s"], capture_output=True, text=True, check=True).stdout
    times[name] = float(re.match(r"step: ([\d,.]+) us", text)[1].replace(",", ""))
sends = 2 * 16 * 4096 * 1024 * 2 / 2 / 10e9 * 1e6
steps = times["at_end"] - times["fill"] - sends
assert 0 < steps < 1000, times
assert times["by_layer"] - times["fill"] - steps < sends / 16 * 1.01, times
print("sent by layer: beside what is computed")
