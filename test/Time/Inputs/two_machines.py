"""Times of prefill and decode on machines of their own, against the timeline of the traces, which says the same to the byte.

    two_machines.py STAGEC STAGE_TRACE FOLDER FIRST COUNT

Plans of both pools, machines with one to three levels, and runtimes are drawn at random, one job per seed.
"""

import random
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import std.parallel (megatron);
import std.transformer (Llama);
{machines}
runtime eager {{ launch = 3us; tax.collective = 0.3; tax.send = 0.2; attention.kernel = 0.5; }}
runtime calm {{ launch = 1us; tax.send = 0.1; }}
job fill {{
  model = Llama(L = 4, D = 64, H = 8, KV = 4, F = 128, V = 256);
  step = infer(B = 8, S = 16, microbatch = {microbatch});
  precision = bf16_mixed;
  strategy = megatron(dp = {dp}, pp = {pp}, tp = {tp}, sequence_parallel = false);
  machine = {of_fill};
  {runtime_of_fill}
}}
job decode extends fill {{
  step = infer(B = 8, for T in 16..{last}, prefilled = fill);
  strategy = megatron(pp = {pp_of_decode}, tp = {tp_of_decode}, sequence_parallel = false);
  machine = {of_decode};
  runtime = {runtime_of_decode};
}}
"""


def draw_machine(draw, name):
    levels, ranks = "", 1
    for number in range(count := draw.randint(1, 3)):
        ranks *= draw.choice([2, 3, 4]) if number + 1 < count else 64
        levels += (f"  level l{number} {{ ranks = {ranks}; rate = {draw.randint(1, 400)}GB/s; base = {draw.randint(0, 9)}us; "
                   f"hop = {draw.randint(0, 5000)}ns; }}\n")
    return (f"machine {name} {{\n  flops.bf16 = {draw.randint(1, 900)}TFLOP/s; contraction.bf16 = 0.{draw.randint(1, 9)};\n"
            f"  memory.rate = {draw.randint(100, 5000)}GB/s;\n{levels}}}\n")


def run(*arguments):
    done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}\n{done.stderr}")
    return done.stdout


def main():
    stagec, stage_trace, folder, first, count = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    folder.mkdir(parents=True, exist_ok=True)
    apart = 0
    for seed in range(first, first + count):
        draw = random.Random(seed)
        of_fill, of_decode = draw.choice([("a", "b"), ("a", "b"), ("a", "a")])
        program = folder / f"{seed}.stg"
        program.write_text(PROGRAM.format(
            machines=draw_machine(draw, "a") + draw_machine(draw, "b"), microbatch=draw.choice([1, 2, 4]), dp=draw.choice([1, 2]),
            pp=draw.choice([1, 2]), tp=draw.choice([1, 2, 4]), last=draw.randint(17, 20), pp_of_decode=draw.choice([1, 2]),
            tp_of_decode=draw.choice([1, 2]), of_fill=of_fill, of_decode=of_decode,
            runtime_of_fill=draw.choice(["", "runtime = calm;", "runtime = eager;"]), runtime_of_decode=draw.choice(["calm", "eager"])))
        traces = folder / f"{seed}"
        run(stagec, program, "--job=decode", "-o", traces, "--times")
        time, timeline = run(stagec, program, "--job=decode", "--emit=time"), run(stage_trace, "timeline", traces)
        if time != timeline:
            sys.exit(f"{program}: its time is not that of its traces\n{time}\n{timeline}")
        if of_fill != of_decode and not time.startswith(f"machine: a (bf16), runtime: ") or time.count("machine: ") > 2:
            sys.exit(f"{program}: {time}")
        apart += "; machine: b (bf16)" in time
    print(f"{count} jobs agree, {apart} of them on two machines")


main()
