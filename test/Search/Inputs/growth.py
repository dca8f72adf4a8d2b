"""Eight times the candidates, GPUs or layers: a search does at most eight times the work.

    growth.py STAGEC FOLDER

Work is counted: plans that are compiled, and the processor time of the user, which is eight times as long at most. The cube
or the square of eight would be far above it, so that noise of a few percent does not matter.
"""
import json
import resource
import subprocess
import sys

stagec, folder = sys.argv[1:]
PROGRAM = """import std.transformer (Llama);
import std.parallel (megatron);
import std.machines (h100);
job j {{
  model = Llama(L = {layers}, D = 64, H = 8, KV = 4, F = 128, V = 512);
  step = train(B = 32768, S = 64, microbatch = 1024, optimizer = adamw);
  precision = bf16_mixed;
  machine = h100;
  strategy = megatron(pp = 1, dp = gpus / (pp * tp), tp = 1);
  search {{
    gpus = {gpus};
    tp in [1, 2];
    pp in [1, 2, 4];
    zero in [0, 1, 2];
    cp = 1;
    recompute in [none, full];
    vocabulary_multiple in 1..{multiples};
    require vocabulary_multiple % 64 == 0;
  }}
}}
"""


def search(**sizes):
    path = folder + "/growth.stg"
    with open(path, "w") as file:
        file.write(PROGRAM.format(**{"layers": 8, "gpus": 16, "multiples": 129, **sizes}))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([stagec, "plan", path, "--report=json", "-j1"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    found = json.loads(done.stdout)
    return found, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before.ru_utime


small, seconds = search()
for name, sizes, candidates in [("candidates", {"multiples": 1025}, 8), ("GPUs", {"gpus": 128}, 1),
                                ("layers", {"layers": 64}, 1)]:
    large, needed = search(**sizes)
    assert large["candidates"] == small["candidates"] * candidates, (name, large["candidates"])
    assert large["compiled"] <= small["compiled"] * candidates, (name, small["compiled"], large["compiled"])
    assert needed <= 8 * seconds, (name, seconds, needed)
    print(f"8 times the {name}: at most 8 times the work")
