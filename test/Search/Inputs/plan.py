"""Random small spaces: `stagec plan` finds what brute force finds, whatever the threads, and its bounds exclude nothing
that would have been among the best.

    plan.py STAGEC FOLDER FIRST COUNT

Brute force is a table of all combinations (`-D tp=1,2 -D ...`), each compiled alone. A plan counts there if its row has a
time, if the requirements hold, which this script evaluates by itself, and if its memory is below the limits. The model
is small, and so is the memory of the machine: between what the plans of the space need, so that some fit.
"""
import csv
import io
import itertools
import json
import random
import subprocess
import sys

stagec, folder, first, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

PROGRAM = """import std.transformer (Llama);
import std.parallel (megatron);
import std.schedules;
import std.machines (h100);
machine small extends h100 {{ memory.capacity = {capacity}B; }}
job j {{
  model = Llama(L = {layers}, D = {width}, H = 8, KV = 4, F = {hidden}, V = 512);
  step = train(B = {batch}, S = {length}, microbatch = 1, optimizer = adamw);
  precision = bf16_mixed;
  machine = small;
  strategy = megatron(pp = 1, dp = gpus / (pp * cp * tp), cp = 1, tp = 1);
  search {{
    gpus = {gpus};
{names}
    tp in [{tp}];
{requirements}
    objective = {objective};
  }}
}}
"""


def run(*arguments, check=True):
    done = subprocess.run([stagec, *arguments], capture_output=True, text=True)
    if check and done.returncode:
        sys.exit(done.stderr + done.stdout)
    return done


def make(seed):
    rng = random.Random(seed)
    space = {"pp": rng.sample([1, 2, 4], rng.randint(1, 3)), "cp": rng.sample([1, 2], rng.randint(1, 2)),
             "zero": rng.sample([0, 1, 2, 3], rng.randint(1, 3)), "microbatch": rng.sample([1, 2, 4], rng.randint(1, 2)),
             "recompute": rng.sample(["none", "selective", "full"], rng.randint(1, 2)),
             "tp": rng.sample([1, 2, 4], rng.randint(1, 3))}
    if rng.random() < 0.4:
        space["pipeline_schedule"] = ["one_f_one_b", "interleaved(v = 2)"]
    # Python's and the language's; all that a requirement asks for is an integer.
    choices = [("tp * cp <= 4", lambda v: v["tp"] * v["cp"] <= 4), ("pp > 1 || tp > 1", lambda v: v["pp"] > 1 or v["tp"] > 1),
               ("dp >= pp", lambda v: v["dp"] >= v["pp"]), ("zero < 2 || pp == 1", lambda v: v["zero"] < 2 or v["pp"] == 1)]
    return rng, space, rng.sample(choices, rng.randint(0, 2))


def key(values, names):
    return tuple(str(values[name]) for name in names)


def check(seed):
    rng, space, requirements = make(seed)
    gpus = rng.choice([4, 8, 16])
    sizes = dict(layers=rng.choice([4, 6, 8]), width=rng.choice([64, 128]), hidden=rng.choice([128, 384]),
                 length=rng.choice([32, 64]), batch=rng.choice([32, 48]), gpus=gpus)
    objective = rng.choice(["tokens_per_gpu", "tokens_per_gpu", "step", "memory"])
    path = f"{folder}/{seed}.stg"

    def write(capacity):
        with open(path, "w") as file:
            file.write(PROGRAM.format(
                capacity=capacity, objective=objective, tp=", ".join(map(str, space["tp"])),
                names="\n".join(f"    {name} in [{', '.join(map(str, values))}];" for name, values in space.items()
                                if name != "tp"),
                requirements="\n".join(f"    require {text};" for text, _ in requirements), **sizes))

    write(80_000_000_000)
    # Brute force: every combination, in the order of the names.
    names = list(space)
    defines = [f"-D{name}={','.join(map(str, space[name]))}" for name in names]
    rows = []
    if all(len(values) == 1 for values in space.values()):
        return "one"
    table = run(path, *defines, "--report=csv", check=False).stdout
    for row, values in zip(csv.DictReader(io.StringIO(table)), itertools.product(*space.values())):
        values = dict(zip(names, values))
        ranks = values["pp"] * values["cp"] * values["tp"]
        if gpus % ranks or row["refused_because"]:
            continue
        values["dp"] = gpus // ranks
        if all(holds(values) for _, holds in requirements):
            rows.append((values, row))
    if not rows:
        done = run("plan", path, check=False)
        assert done.returncode and "[empty-search]" in done.stderr, (seed, done.stderr)
        return "empty"
    # A memory that some plans do not fit into.
    peaks = sorted(int(row["peak_bytes"]) for _, row in rows)
    capacity = peaks[rng.randrange(len(peaks))] + rng.choice([-1, 0, 1])
    write(capacity)
    fitting = [(values, row) for values, row in rows if int(row["peak_bytes"]) <= capacity]
    misses = [int(row["peak_bytes"]) for _, row in rows if int(row["peak_bytes"]) > capacity]
    if not fitting:
        done = run("plan", path, check=False)
        assert done.returncode and "[nothing-fits]" in done.stderr, (seed, done.stderr)
        return "none fits"
    number = {"memory": lambda row: int(row["peak_bytes"])}.get(objective, lambda row: float(row["step_seconds"]))
    fitting.sort(key=lambda pair: number(pair[1]))
    top = rng.randint(1, 4)
    found = run("plan", path, f"--top={top}", "--report=json", "-j2").stdout
    assert found == run("plan", path, f"--top={top}", "--report=json", "-j1").stdout, (seed, "threads")
    found = json.loads(found)
    expected = fitting[:top]
    assert len(found["plans"]) == len(expected), (seed, len(found["plans"]), len(expected))
    known = {key(values, names): row for values, row in fitting}
    for plan, (_, row) in zip(found["plans"], expected):
        own = known[key(plan["values"], names)]
        assert number(own) == number(row), (seed, plan["values"], own, row)
        assert plan["time"]["step_seconds"] == float(own["step_seconds"]), (seed, plan["values"])
    # What is too slow is not asked whether it fits, and what is too large not whether the compiler would refuse it.
    assert found["fitting"] + found["too_slow"] + found["too_large"] >= len(rows), seed
    if not found["too_slow"]:
        assert found["too_large"] >= len(misses), (seed, found["too_large"], len(misses))
        assert not misses or found["nearest"]["needs_bytes"] == min(misses), (seed, found["nearest"], min(misses))
    best = f"{folder}/{seed}_best.stg"
    run("plan", path, f"--top={top}", "-o", best, "--force")
    alone = json.loads(run(best, "--report=json").stdout)
    assert alone["time"]["step_seconds"] == found["plans"][0]["time"]["step_seconds"], (seed, "written")
    return "good"


results = {}
for seed in range(first, first + count):
    result = check(seed)
    results[result] = results.get(result, 0) + 1
print(f"{count} spaces as brute force finds them; with a best plan: {'most' if results.get('good', 0) * 2 > count else results}")
