"""A server, written from the rules of docs/Serving.md (S1 to S39) and from nothing else.

    serving.py STAGEC FOLDER SEED COUNT

Draws COUNT files of requests with options, serves each here and with `stagec serve`, and compares every iteration and
every number of the report. Here tokens and blocks are things: a cache is a list of (position, block) and blocks come
from a list of free ones. Times are whole nanoseconds.
"""
import heapq
import json
import math
import random
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path


class Request:
    def __init__(self, index, arrival, prompt, output, cached, names=()):
        self.index, self.arrival, self.prompt, self.output = index, arrival, prompt, output
        self.cached, self.names = cached, list(names)
        self.known = ["prompt"] * prompt                            # S7
        self.cache = 0                                              # positions 0..cache-1 are computed
        self.under_way = []                                         # S37: how many of each iteration in flight
        self.will_sample = False
        self.seen = set()                                           # positions that were ever in the cache
        self.blocks = []
        self.host = None
        self.sent = False                                           # S31
        self.drafting = False                                       # S16
        self.offered = self.taken = 0
        self.begin = self.first = self.end = None
        self.times_preempted = 0

    def generated(self):
        return len(self.known) - self.prompt


class Replica:
    def __init__(self, number, o, hands_over):
        self.number, self.o, self.hands_over = number, o, hands_over
        self.free = list(range(o["cache_blocks"] or 10**6))
        self.running, self.waiting = [], []
        self.filled = []                                            # S40: for the store, with the next iteration
        self.store = []                                             # S29: used longest ago first
        self.flying = []

    def load(self):
        return len(self.running) + len(self.waiting)

    def take_blocks(self, request, tokens):                         # S12
        need = math.ceil(Fraction(tokens, self.o["block"])) - len(request.blocks)
        if need > len(self.free):
            return False
        for _ in range(max(0, need)):
            request.blocks.append(self.free.pop())
        return True

    def touch(self, names):                                         # S29
        fresh = 0
        for name in reversed(names):
            if name in self.store:
                self.store.remove(name)
            else:
                fresh += 1
            self.store.append(name)
        if self.o["prefix_store"] is not None:
            while len(self.store) > self.o["prefix_store"]:
                self.store.pop(0)
        return fresh

    def stored(self, request):                                      # S28
        names = []
        for name in request.names[:request.prompt // self.o["prefix_block"]]:
            if name not in self.store:
                break
            names.append(name)
        return names

    def give_up(self, request, it):                                 # S13, S14
        used = {position // self.o["block"] for position in range(request.cache)}
        self.free += request.blocks
        request.blocks = []
        if self.o["preempt"] == "swap":
            it["blocks_out"] += len(used)
            request.host = len(used)
            it["stored"].append({"request": request.index, "tokens": len(used) * self.o["block"]})      # S40
        else:
            request.cache = 0
            request.drafting = False
        request.times_preempted += 1
        it["preemptions"] += 1
        self.waiting.insert(0, request)

    def tokens_of(self, request, cache, budget):                    # S9
        if request.will_sample:                                     # S37
            return 0
        n = len(request.known) - cache + (self.o["draft"] if request.drafting else 0)
        if self.o["chunk"]:
            n = min(n, self.o["chunk"])
        return min(n, budget)

    def put(self, request, n, it):
        if request.begin is None:
            request.begin = it["start"]
        cache = request.cache + sum(request.under_way)
        positions = range(cache, cache + n)
        drafts = n - 1 if request.drafting else 0
        it["recomputed_tokens"] += len(request.seen.intersection(positions))
        it["attended_pairs"] += sum(position + 1 for position in positions)
        it["twice_area"] += int(2 * (n * cache + (Fraction(n * n, 2) if n > 1 else 1)))
        samples = cache + n >= len(request.known)
        request.will_sample = samples
        request.under_way.append(n)
        it["logits"] += (1 + drafts) if samples else 0
        it["sequences"].append({"request": request.index, "new": n, "cached": cache, "drafts": drafts,
                                "samples": samples, "decodes": request.drafting})

    def begin(self, start, number):
        it = dict.fromkeys(["loaded_tokens", "recomputed_tokens", "attended_pairs", "twice_area", "logits", "blocks_out", "blocks_in", "preemptions"], 0)
        it.update(number=number, replica=self.number, start=start, sequences=[], stored=[], loaded=[])
        budget, turn = self.o["token_budget"], 0
        # S9: the running ones in order.
        stuck = False
        while turn < len(self.running) and budget > 0 and len(it["sequences"]) < self.o["max_sequences"]:
            request = self.running[turn]
            cache = request.cache + sum(request.under_way)
            n = self.tokens_of(request, cache, budget)
            if not n:
                turn += 1
                continue
            fits = self.take_blocks(request, cache + n)
            if not fits:                                            # S38
                gives, room = [], len(self.free) + len(request.blocks)
                while room < math.ceil(Fraction(cache + n, self.o["block"])) and len(self.running) - len(gives) > turn:
                    gives.append(self.running[-1 - len(gives)])
                    room += len(gives[-1].blocks)
                stuck = any(other.under_way for other in gives) or request in gives and self.flying
            while not fits and not stuck:
                if self.o["preempt"] == "refuse":
                    return None
                victim = self.running.pop()
                self.give_up(victim, it)
                if victim is request:
                    break
                fits = self.take_blocks(request, cache + n)
            if not fits:
                break
            self.put(request, n, it)
            budget -= n
            turn += 1
        # S10
        while (not it["preemptions"] and not stuck and self.waiting and budget > 0 and len(it["sequences"]) < self.o["max_sequences"]
               and len(self.running) < self.o["max_sequences"] * self.o["stages"]):
            request = self.waiting[0]
            names = [] if request.host is not None or request.sent else self.stored(request)
            cache = max(request.cached, len(names) * self.o["prefix_block"])
            cache = request.cache if request.host is not None or request.sent else min(cache, request.prompt - 1)     # S19
            n = self.tokens_of(request, cache, budget)
            if self.o["admit"] == "whole" and math.ceil(Fraction(len(request.known), self.o["block"])) > len(self.free):
                break
            if not self.take_blocks(request, cache + n):
                break
            if request.host is not None:
                it["blocks_in"] += request.host
                it["loaded"].append({"request": request.index, "tokens": request.host * self.o["block"]})
                request.host = None
            else:
                it["loaded_tokens"] += cache
                if cache:
                    it["loaded"].append({"request": request.index, "tokens": cache})
                self.touch(names)
                request.cache = cache
                request.sent = False
                request.seen.update(range(cache))
            self.running.append(self.waiting.pop(0))
            self.put(request, n, it)
            budget -= n
        it["blocks"] = sum(len(request.blocks) for request in self.running)
        for key, of in [("new_tokens", "new"), ("cached_tokens", "cached"), ("drafts", "drafts"), ("sampling", "samples")]:
            it[key] = sum(int(sequence[of]) for sequence in it["sequences"])
        if it["sequences"]:
            self.flying.append(it)
            it["stored"] += self.filled
            self.filled = []
        return it

    def finish(self, it, time, done):
        if it["sequences"]:
            assert self.flying.pop(0) is it
        by_index = {request.index: request for request in self.running}
        for sequence in it["sequences"]:
            request = by_index[sequence["request"]]
            assert request.under_way.pop(0) == sequence["new"]
            request.offered += sequence["drafts"]
            accepted = math.floor(self.o["acceptance"] * request.offered) - request.taken      # S17
            request.taken += accepted
            before = request.cache
            request.cache += sequence["new"] - (sequence["drafts"] - accepted)
            request.seen.update(range(before, request.cache))
            size = self.o["prefix_block"]
            fresh = self.touch([name for i, name in enumerate(request.names)
                                if before < (i + 1) * size <= min(request.cache, request.prompt)])
            if fresh:
                self.filled.append({"request": request.index, "tokens": fresh * size})
            if sequence["samples"]:
                request.will_sample = False
                if request.first is None:
                    request.first = time
                for _ in range(1 + accepted):
                    if request.generated() < request.output:
                        request.known.append("output")
                request.drafting = True
            else:
                request.drafting = False
            if request.generated() == request.output or self.hands_over and request.generated():     # S30
                request.end = time
                self.free += request.blocks
                request.blocks = []
                self.running.remove(request)
                done.append(request)


def name_of(it, replicas):                                          # S24
    words = [f"i{it['number']}"] + ([f"r{it['replica']}"] if replicas > 1 else [])
    chunks = [s for s in it["sequences"] if not s["decodes"]]
    decodes = [s for s in it["sequences"] if s["decodes"]]

    def total(sequences):
        return f"+{sum(s['new'] for s in sequences)}@{sum(s['cached'] for s in sequences)}"

    if len(chunks) > 4:
        words.append(f"{len(chunks)}p{total(chunks)}")
    else:
        words += [f"p{s['request']}+{s['new']}@{s['cached']}" for s in chunks]
    if decodes:
        words.append(f"{len(decodes)}d{total(decodes)}")
    return " ".join(words if it["sequences"] else words + ["idle"])


def serve(requests, o):
    """The steps, the complete requests, and the number of steps; None where a request is refused its blocks (S14)."""
    replicas = [Replica(i, o, i < o["prefill_replicas"]) for i in range(o["prefill_replicas"] + o["replicas"])]
    decoders = replicas[o["prefill_replicas"]:]
    pools = [pool for pool in [replicas[:o["prefill_replicas"]], decoders] if pool]
    groups = pools if o["lock_step"] else [[replica] for replica in replicas]                    # S22, S32
    # S21, S31: ends are 0, arrivals 1, caches 2, begins come after; S36: 3 is a first stage that becomes free
    events = [(request.arrival, 1, request.index) for request in requests]
    heapq.heapify(events)
    flying = [[] for _ in groups]
    free = [[0] * o["stages"] for _ in groups]
    steps, done, arrived = [], [], 0
    while events:
        time = events[0][0]
        while events and events[0][0] == time:
            _, kind, which = heapq.heappop(events)
            if kind == 0:
                for replica, it in zip(groups[which], flying[which].pop(0)):
                    ready = []
                    replica.finish(it, time, ready)
                    for request in ready:
                        if request.generated() == request.output:
                            done.append(request)
                        else:
                            lasts = math.floor((o["send_time"] + request.prompt * o["send_token_time"]) * 1e9 + 0.5)
                            heapq.heappush(events, (time + lasts, 2, request.index))
            elif kind < 3:                                          # S20, S31
                pool = pools[0] if kind == 1 else decoders
                place = which if kind == 1 else arrived
                arrived += kind == 2
                target = min(pool, key=lambda r: (r.load(), r.number)) if o["deal"] == "least-loaded" else pool[place % len(pool)]
                target.waiting.append(requests[which])
                requests[which].sent = kind == 2
        for g, group in enumerate(groups):
            # S36
            while free[g][0] <= time and len(flying[g]) < o["stages"] and any(replica.load() for replica in group):
                its = [replica.begin(time, len(steps)) for replica in group]
                if None in its:
                    return None
                if not any(it["sequences"] for it in its):
                    break
                # S11, S22, S39
                lasts = o["iteration_time"]
                last, at = max(time, free[g][-1]), time
                for stage in range(o["stages"]):
                    at = max(at, free[g][stage]) + math.floor(lasts * 1e9 + 0.5)
                    free[g][stage] = at
                for it in its:
                    it["duration"], it["busy"] = at - time, at - last
                steps.append(its)
                flying[g].append(its)
                heapq.heappush(events, (at, 0, g))
                heapq.heappush(events, (free[g][0], 3, g))
    return steps, done


def thousandths(a, b):
    return str(Decimal(a * 1000 // b) / 1000) if b else None


def summarize(times):                                               # S26
    times = sorted(times)
    at = lambda p: times[math.ceil(Fraction(len(times) * p, 100)) - 1]
    return {"mean": sum(times) // len(times), "p50": at(50), "p99": at(99)} if times else None


def report_of(steps, done, o):                                      # S25 to S27
    its = [it for step in steps for it in step]
    total = lambda key: sum(it[key] for it in its)
    span = max(request.end for request in done)
    second = 10**9
    weighted = sum(it["blocks"] * it["duration"] for it in its)
    return {
        "requests": len(done), "replicas": o["replicas"], "prefill_replicas": o["prefill_replicas"], "steps": len(steps),
        "iterations": sum(1 for it in its if it["sequences"]),
        "span_s": span, "busy_s": sum(step[0]["busy"] for step in steps), "stages": o["stages"],
        "mean_in_flight": thousandths(sum(step[0]["duration"] for step in steps), sum(step[0]["busy"] for step in steps)),
        "prompt_tokens": sum(r.prompt for r in done), "output_tokens": sum(r.output for r in done),
        "computed_tokens": total("new_tokens"), "recomputed_tokens": total("recomputed_tokens"),
        "loaded_tokens": total("loaded_tokens"), "cached_tokens_read": total("cached_tokens"),
        "drafts": total("drafts"), "accepted_drafts": sum(r.taken for r in done),
        "output_tokens_per_s": thousandths(sum(r.output for r in done) * second, span),
        "requests_per_s": thousandths(len(done) * second, span),
        "sequences": sum(len(it["sequences"]) for it in its), "most_sequences": max(len(it["sequences"]) for it in its),
        "preemptions": total("preemptions"), "blocks_out": total("blocks_out"), "blocks_in": total("blocks_in"),
        "block_tokens": o["block"], "cache_blocks": o["cache_blocks"],
        "mean_blocks": thousandths(weighted, sum(it["duration"] for it in its)),
        "most_blocks": max(it["blocks"] for it in its),
        "time_to_first_token_s": summarize([r.first - r.arrival for r in done]),
        "time_per_output_token_s": summarize([(r.end - r.first) // (r.output - 1) for r in done if r.output > 1]),
        "queueing_s": summarize([r.begin - r.arrival for r in done]),
        "latency_s": summarize([r.end - r.arrival for r in done]),
    }


# What the other program printed, in the same terms: seconds are nanoseconds, decimals are texts.
def normalize(value, key=""):
    if isinstance(value, dict):
        return {k: normalize(v, key if key.endswith("_s") and key != "" else k) for k, v in value.items()}
    if isinstance(value, list):
        return [normalize(v) for v in value]
    if value is None or isinstance(value, (bool, str)):
        return value
    if key.endswith("_per_s") or key in ("mean_blocks", "mean_in_flight"):
        return str(Decimal(value).normalize() + 0)
    if key.endswith("_s"):
        nanoseconds = Decimal(value) * 10**9
        assert nanoseconds == int(nanoseconds), (key, value)
        return int(nanoseconds)
    return int(value)


def plain(text):
    return str(Decimal(text).normalize() + 0) if text is not None else None


def draw(rng):
    tight = rng.random() < 0.7
    o = {
        "token_budget": rng.choice([8, 16, 64, 200, 2048]), "max_sequences": rng.choice([1, 2, 4, 16, 256]),
        "chunk": rng.choice([0, 0, 7, 32]), "block": rng.choice([1, 3, 16]), "cache_blocks": None,
        "preempt": rng.choice(["recompute", "swap"]) if tight else "recompute", "admit": rng.choice(["whole", "chunk"]) if tight else "whole",
        "draft": rng.choice([0, 0, 1, 3]), "acceptance": Fraction(0),
        "prefix_store": rng.choice([None, 0, 3, 20]), "prefix_block": rng.choice([1, 8, 50]),
        "replicas": rng.choice([1, 1, 1, 2, 3]), "deal": "round-robin", "lock_step": False,
        "iteration_time": rng.choice([20e-6, 1e-3, 12.5e-3]),
    }
    o["stages"] = rng.choice([1, 1, 2, 3, 4])
    o.update(prefill_replicas=rng.choice([0, 0, 1, 2]), send_time=0.0, send_token_time=0.0)
    flags = []
    if o["prefill_replicas"]:
        o["send_time"], o["send_token_time"] = rng.choice([0.0, 2e-3]), rng.choice([0.0, 3e-6])
        flags += [f"--prefill-replicas={o['prefill_replicas']}", f"--send-time={o['send_time'] * 1e3:g}ms",
                  f"--send-token-time={o['send_token_time'] * 1e6:g}us"]
    if o["stages"] > 1:
        flags.append(f"--stages={o['stages']}")
    if o["draft"]:
        text = rng.choice(["0", "0.5", "0.7", "1", "0.333"])
        o["acceptance"] = Fraction(text)
        flags += [f"--draft={o['draft']}", f"--acceptance={text}"]
    if o["replicas"] + o["prefill_replicas"] > 1:
        o["deal"], o["lock_step"] = rng.choice(["round-robin", "least-loaded"]), rng.random() < 0.5
        flags += [f"--replicas={o['replicas']}", f"--deal={o['deal']}"] + (["--lock-step"] if o["lock_step"] else [])
    count, longest = rng.choice([1, 5, 40, 120]), rng.choice([3, 40, 300])
    arrival, requests = rng.choice([0, 17]) * 10**6, []
    for _ in range(count):
        arrival += rng.choice([0, 0, 1, rng.randrange(10**5), rng.randrange(10**8)])
        prompt = rng.randint(1, longest)
        requests.append((arrival, prompt, rng.randint(1, 60), rng.choice([0, 0, 0, rng.randint(0, prompt)]), ()))
    if rng.random() < 0.4:
        # A tree of beginnings: a name tells all before it.
        for i, (at, p, out, _, _) in enumerate(requests):
            path = [rng.choice("ab") for _ in range(rng.randint(0, 6))]
            names = [int("".join(path[:k + 1]).translate(str.maketrans("ab", "12"))) for k in range(len(path))]
            requests[i] = (at, p, out, 0, names)
    if any(names for *_, names in requests):
        flags.append(f"--prefix-block={o['prefix_block']}")
        if o["prefix_store"] is not None:
            flags.append(f"--prefix-store={o['prefix_store']}")
    most = max(p + (out - 1 + o["draft"] if out > 1 else 0) for _, p, out, _, _ in requests)
    if tight:
        least = -(-most // o["block"])                              # S15
        o["cache_blocks"] = rng.choice([least, least + 3, 2 * least, 4 * least])
        flags += [f"--cache-blocks={o['cache_blocks']}", f"--preempt={o['preempt']}", f"--admit={o['admit']}"]
    if o["chunk"]:
        o["chunk"] = max(o["chunk"], 1 + o["draft"])
        flags.append(f"--chunk={o['chunk']}")
    flags += [f"--token-budget={o['token_budget']}", f"--max-sequences={o['max_sequences']}", f"--block={o['block']}"]
    flags.append(f"--iteration-time={o['iteration_time'] * 1e6:g}us")
    return requests, o, flags


# The fields of one trace or another; S3.
def write(path, requests, rng):
    scales = {"arrival_time_ns": lambda ns: ns, "timestamp": lambda ns: Fraction(ns, 10**6), "arrival": lambda ns: Fraction(ns, 10**9)}
    arrival, prompt, output = rng.choice([("arrival_time_ns", "input_toks", "output_toks"), ("timestamp", "input_length", "output_length"),
                                          ("arrival", "prompt", "output")])
    with open(path, "w") as file:
        for at, p, out, cached, names in requests:
            time = scales[arrival](at)
            row = {arrival: int(time) if time == int(time) else float(time), prompt: p, output: out}
            if cached:
                row["cached"] = cached
            elif names:
                row["hash_ids"] = names
            file.write(json.dumps(row) + "\n")


def main():
    stagec, folder, seed, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    folder.mkdir(parents=True, exist_ok=True)
    seen = dict.fromkeys(["preemptions", "blocks_in", "loaded_tokens", "accepted_drafts", "recomputed_tokens"], 0)
    for trial in range(count):
        rng = random.Random(1000 * seed + trial)
        rows, o, flags = draw(rng)
        path = folder / f"requests{trial}.jsonl"
        write(path, rows, rng)
        first = rows[0][0]
        requests = [Request(i, at - first, *rest) for i, (at, *rest) in enumerate(rows)]
        steps, done = serve(requests, o)
        command = [stagec, "serve", str(path), "--report=json", "--iterations=0..1000000", *flags]
        run = subprocess.run(command, capture_output=True, text=True)
        assert run.returncode == 0, (command, run.stderr)
        theirs = json.loads(run.stdout, parse_float=Decimal)
        listed = normalize(theirs.pop("listed"))
        ours = report_of(steps, done, o)
        for key in ["output_tokens_per_s", "requests_per_s", "mean_blocks", "mean_in_flight"]:
            ours[key] = plain(ours[key])
        theirs = normalize(theirs)
        assert theirs == ours, (command, {k: (theirs.get(k), ours.get(k)) for k in {*theirs, *ours} if theirs.get(k) != ours.get(k)})
        its = [it for step in steps for it in step]
        for it in its:
            del it["busy"]
            for moved in ["stored", "loaded"]:
                if not it[moved]:
                    del it[moved]
            it["name"], it["start_s"], it["duration_s"] = name_of(it, o["prefill_replicas"] + o["replicas"]), it.pop("start"), it.pop("duration")
        for mine, other in zip(its, listed):
            assert mine == other, (command, {k: (other.get(k), mine.get(k)) for k in {*mine, *other} if other.get(k) != mine.get(k)})
        assert len(its) == len(listed), command
        for key in seen:
            seen[key] += ours[key]
    # Draws in which nothing happens compare nothing.
    assert all(seen.values()) or count < 20, seen
    print(f"{count} files agree")


main()
