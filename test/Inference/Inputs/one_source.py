"""Inference and training elaborate one model: no module of the library is written twice.

    one_source.py STAGEC MODELS.stg FOLDER

Each job of the file is compiled as it is and, in a copy, as a step of training. Of what prefill computes for all positions every op, with its name and the module in
which it stands, is one of training's forward, in the same order. Parameters are the same. What is said beside that: ops that leave a state for decode steps, and ops of decode steps
alone, of which latent attention and state space layers have a form of their own.
"""
import re
import subprocess
import sys
from pathlib import Path

stagec, source, folder = sys.argv[1:]
text = Path(source).read_text()
Path(folder).mkdir(parents=True, exist_ok=True)
training = Path(folder) / "train.stg"
training.write_text(re.sub(r"infer\(B = 4, S = 16, for T in 16\.\.20\)", "train(B = 4, S = 16, optimizer = adamw)", text))


def elaborate(path, job, *options):
    """Of each phase, the ops in order, each as its name and the module in which it stands; and the parameters."""
    run = subprocess.run([stagec, str(path), "--job", job, "--emit=graph", *options], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    phases, params, phase = {}, set(), None
    for line in run.stdout.splitlines():
        if match := re.match(r"  (forward|decode) \{", line):
            phase = phases.setdefault(match[1], [])
        match = re.match(r'\s+%(\S+?)(?: "([^"]*)")?(?:, %.*?)? = ([a-z]\w*)[\w.]*(.*)', line)
        if phase is None or not match:
            continue
        name, path_, op = match[1], match[2] or re.sub(r"\.\d+$", "", match[1]), match[3]
        scope = re.search(r' in "([^"]*)"', match[4])
        if op == "param":
            params.add(path_)
        elif op not in ("input", "cache", "append", "repeat", "buffer", "constant", "last"):
            phase.append((op, scope[1] if scope else path_.rpartition(".")[0]))
    return phases, params


jobs = re.findall(r"^job (\w+)", text, re.MULTILINE)
apart, beside = set(), set()
for job in jobs:
    trained, ofTraining = elaborate(training, job)
    inferred, ofInference = elaborate(source, job, "-D", "logits=all")
    # Models that train a layer of prediction beside call their last norm at two places, of which each step runs one.
    assert {param.replace("output_norm.", "norm.") for param in ofInference} <= ofTraining, (job, ofInference - ofTraining)
    place = 0
    for op, module in inferred["forward"]:
        key = (op, module.replace("output_norm", "norm"))
        if key in trained["forward"][place:]:
            place = trained["forward"].index(key, place) + 1
        else:
            beside.add(op)
    apart |= {op for op, _ in inferred["decode"]} - {op for op, _ in inferred["forward"]}
print(f"{len(jobs)} models: prefill computes what training's forward does; beside that: " + ", ".join(sorted(beside)))
print("decode steps alone: " + ", ".join(sorted(apart)))
