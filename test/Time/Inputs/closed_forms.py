"""Steps whose time has a closed form: what the compiler says of them, and the timeline of the traces of some.

  closed_forms.py STAGEC STAGE_TRACE FOLDER

FOLDER has forms.stg, with the model and the machines. Times are in units of 10 us, which a product takes there: F a forward,
B the half of a backward for inputs, W the half for weights. Messages take no time, but in `hops`, where they take 0.1.

  FSDP           the first gather g is exposed, each other runs beside a block c: g + (n - 1) max(c + 0.30 min(c, g), g) + c
  GPipe, 1F1B    the bubble is (p - 1) (F + B + W): Huang et al., arXiv 1811.06965; Narayanan et al., arXiv 2006.09503
  interleaved    (p - 1) (F + B + W) of a chunk: Narayanan et al., arXiv 2104.04473
  ZB-H1          (p - 1) (F + B - W): Qi et al., arXiv 2401.10241
  ZB-H2, ZB-V, DualPipeV
                 no stage waits once it has begun, of F = B = W, and stage r begins at r F: Qi et al., arXiv 2401.10241 and 2405.15362
  DualPipe       DeepSeek-V3, arXiv 2412.19437, has (p / 2 - 1) (F&B + B - 3 W) with its backward B + W as B. That counts a forward and
                 a backward that run as one. Here a forward's message leaves before the backward beside it is computed, so that
                 stages wait for the first microbatch alone: (p / 2 - 1) F, which no schedule can avoid

1F1B with messages is walked below, unit by unit. Six of its times, and those of FSDP, are of a worked example: 34.6 and 211.0, 33.6
and 201.6 with 2 (p - r) - 1 forwards before the first backward, 34.4 and 210.8 with one more than 1F1B has.
"""
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

STAGEC, STAGE_TRACE, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
UNIT = Fraction(10, 1_000_000)  # s
MESSAGE = Fraction(1, 10)

jobs, expected, bubbles, traced = [], {}, {}, []


def add(name, model, step, strategy, time, machine="round", more="", bubble=None, with_traces=False):
    jobs.append(f"job {name} {{ model = {model}; step = {step}; precision = fp32; strategy = {strategy}; machine = {machine}; {more} }}")
    expected[name] = time
    if bubble is not None:
        bubbles[name] = bubble
    if with_traces:
        traced.append(name)


def add_pipeline(order, p, m, time, v=1, f=1, b=1, **options):
    """A layer on each of p v virtual stages; a forward takes f, and the half of backward for inputs b."""
    layers = p * v
    model = f"Plain(L = {layers})" if f == b == 1 else f"Chain(L = {layers}, f = {250 * (f - 1)}, b = {250 * (b - 1)})"
    step = f"train(B = {m}, S = 100, microbatch = 1, optimizer = nothing)"
    add(f"j{len(jobs)}", model, step, f"stages(pp = {p}, order = {order})", Fraction(time), **options)


def list_1f1b(p, m, r, ahead):
    """Units of stage r: `ahead` forwards, then a backward and a forward in turn."""
    units, forwards = [("F", i) for i in range(min(ahead, m))], min(ahead, m)
    for i in range(m):
        units.append(("B", i))
        if forwards < m:
            units.append(("F", forwards))
            forwards += 1
    return units


def walk(lists, takes, message):
    """When the last unit ends: a unit waits for the one before it on its stage, and for a message."""
    p, ends, done, free = len(lists), {}, [0] * len(lists), [Fraction(0)] * len(lists)
    while any(done[r] < len(lists[r]) for r in range(p)):
        before = sum(done)
        for r in range(p):
            while done[r] < len(lists[r]):
                kind, i = unit = lists[r][done[r]]
                sender = r - 1 if kind == "F" else r + 1
                begin = free[r]
                if 0 <= sender < p:
                    if (sender, unit) not in ends:
                        break
                    begin = max(begin, ends[sender, unit] + message)
                free[r] = ends[r, unit] = begin + takes[kind]
                done[r] += 1
        assert sum(done) > before
    return max(free)


# FSDP: four blocks of 10 us, forward alone; gathers of 30,000 bytes.
for rate, gather in (("7.5", "0.4"), ("2.5", "1.2"), ("1.5", "2.0")):
    g, c, tax = Fraction(gather), 1, Fraction(3, 10)
    add(f"fsdp_{len(jobs)}", "Bare(L = 4)", "infer(B = 4, S = 100)", "sharded(dp = 4)", g + 3 * max(c + tax * min(c, g), g) + c,
        machine=f"links_{rate.replace('.', '_')}", more="runtime = taxing;", with_traces=True)

for p, m in ((1, 1), (2, 2), (2, 5), (4, 4), (4, 8), (4, 13), (8, 8), (8, 32)):
    for f, b in ((1, 1), (2, 3), (3, 2)):
        for order in ("gpipe", "one_f_one_b"):
            add_pipeline(order, p, m, (m + p - 1) * (f + b + 1), f=f, b=b, bubble=Fraction(p - 1, m + p - 1))
for p, m, v in ((2, 4, 2), (4, 4, 2), (4, 8, 2), (4, 8, 3), (4, 16, 4), (8, 16, 2)):
    add_pipeline(f"interleaved(v = {v})", p, m, (m * v + p - 1) * 3, v=v, bubble=Fraction(p - 1, m * v + p - 1))
for p, m in ((2, 2), (2, 6), (4, 4), (4, 8), (4, 17), (8, 8), (8, 20)):
    add_pipeline("zb_h1", p, m, 3 * m + (p - 1) * (1 + 1 - 1), bubble=Fraction(p - 1, 3 * m + p - 1))
for p, m in ((2, 6), (4, 8), (4, 17), (8, 20)):
    for f, b in ((2, 2), (2, 3), (3, 2)):
        add_pipeline("zb_h1", p, m, (f + b + 1) * m + (p - 1) * (f + b - 1), f=f, b=b)
for p, m in ((2, 3), (2, 8), (4, 7), (4, 16), (8, 15), (8, 24)):
    add_pipeline("zb_h2", p, m, 3 * m + p - 1)
    add_pipeline("zb_v", p, m, 6 * m + p - 1, v=2)
for p, m in ((2, 4), (2, 9), (4, 8), (4, 16), (8, 16), (8, 24)):
    add_pipeline("dualpipe_v", p, m, 6 * m + p - 1, v=2)
for p, m in ((2, 4), (4, 8), (4, 20), (8, 16), (8, 20), (8, 32)):
    add_pipeline("dualpipe", p, m, 3 * m + p // 2 - 1, bubble=Fraction(p // 2 - 1, 3 * m + p // 2 - 1))

worked = {("one_f_one_b", 8): "34.6", ("one_f_one_b", 64): "211.0", ("twice", 8): "33.6", ("twice", 64): "201.6",
          ("eager", 8): "34.4", ("eager", 64): "210.8"}
for order, ahead in (("one_f_one_b", lambda p, r: p - r), ("twice", lambda p, r: 2 * (p - r) - 1), ("eager", lambda p, r: p - r + 1)):
    for p, m in ((2, 2), (2, 7), (3, 9), (4, 8), (4, 64), (6, 20), (8, 8), (8, 32)):
        time = walk([list_1f1b(p, m, r, ahead(p, r)) for r in range(p)], {"F": 1, "B": 2}, MESSAGE)
        if p == 4 and (order, m) in worked:
            assert time == Fraction(worked[order, m]), (order, m, time)
        add_pipeline(order, p, m, time, machine="hops", with_traces=m <= 9)

program = (FOLDER / "forms.stg").read_text() + "\n" + "\n".join(jobs) + "\n"
(FOLDER / "jobs.stg").write_text(program)
arguments = [STAGEC, FOLDER / "jobs.stg", "--all-jobs", "--report=json"]
plans = json.loads(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout, parse_float=Fraction)["plans"]
numSteps = numDifferent = 0
for plan in plans:
    name = plan["job"]
    report = plan["report"]["time"]
    found = report["step_seconds"] / UNIT
    numSteps += 1
    wrong = found != expected[name]
    if name in bubbles:  # the share of the step in which stages wait, rounded to six digits
        wrong |= abs(report["bubble_fraction"] - bubbles[name]) > Fraction(1, 1_000_000)
        wrong |= any(stage["bubble_seconds"] != bubbles[name] * report["step_seconds"] for stage in report["stages"])
    numDifferent += wrong
    if wrong:
        print(f"{jobs[list(expected).index(name)]}: {float(found)}, expected {float(expected[name])}; bubble "
              f"{float(report['bubble_fraction'])}, expected {float(bubbles.get(name, -1))}")
for name in traced:
    traces = FOLDER / name
    subprocess.run([STAGEC, FOLDER / "jobs.stg", f"--job={name}", "--times", "-o", traces], capture_output=True, check=True)
    lines = subprocess.run([STAGE_TRACE, "timeline", traces], capture_output=True, text=True, check=True).stdout.splitlines()
    found = next(line.split()[1].replace(",", "") for line in lines if line.startswith("step:"))
    numSteps += 1
    if Fraction(found) != expected[name] * UNIT * 1_000_000:
        numDifferent += 1
        print(f"timeline of {name}: {found}, expected {float(expected[name] * UNIT * 1_000_000)}")
print(f"{numSteps} steps, {numDifferent} differ")
