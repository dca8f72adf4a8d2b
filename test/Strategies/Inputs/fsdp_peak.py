"""Compares the bytes of gathered parameters in traces of FSDP with the largest d + 1 consecutive units.

    fsdp_peak.py STAGEC STAGE_TRACE FOLDER

A layer has two matrices, [D, F] and [F, D], whose width F differs by layer: a unit of 2 * D * F elements of f32. What a gather makes is there from its node up to the
last node that has it among its inputs.
"""
import json
import pathlib
import re
import subprocess
import sys

stagec, stage_trace, folder = sys.argv[1:]
D, WIDTHS = 64, [8, 40, 24, 72, 16, 56, 32]
pathlib.Path(folder).mkdir()
program = pathlib.Path(folder, "units.stg")
program.write_text(f"""import std.nn (linear);
import std.parallel (fsdp);
import std.precision (fp32);
op total(x: [b, f]) -> [] = mean[b, f](x * x);
model Units(D, W) {{
  dim B;
  dim E = D;
  input x0: [B, D];
  var x = x0;
  repeat layers[i in 0..{len(WIDTHS)}] {{ dim F = W[i]; param v: [D, F]; param u: [F, E]; x = linear(linear(x, v), u); }}
  return total(x);
}}
job units {{ model = Units(D = {D}, W = {WIDTHS}); step = train(B = 4, microbatch = 2, optimizer = none); precision = fp32; strategy = fsdp(dp = 2, prefetch = 1, keep = last); }}
""")
sizes = [2 * D * width * 4 for width in WIDTHS]
found = 0
for keep in ("last", "false"):
    for ahead in range(6):
        traces = f"{folder}/{keep}{ahead}"
        subprocess.run([stagec, program, "-D", f"prefetch={ahead}", "-D", f"keep={keep}", "--tracker", "-o", traces], check=True)
        nodes = subprocess.run([stage_trace, "dump", "--rank", "0", traces], check=True, capture_output=True, text=True).stdout.splitlines()
        made, used = {}, {}
        for number, node in enumerate(nodes):
            lists = re.search(r"inputs=(\[.*\]) outputs=(\[.*\])$", node)
            if not lists:
                continue
            inputs, outputs = (json.loads(text) for text in lists.groups())
            if "all_gather" in node:
                made.update({name: (number, int(size)) for name, size in zip(outputs[::2], outputs[1::2])})
            used.update({name: number for name in inputs[::2] + outputs[::2]})
        peak = max(sum(size for name, (begin, size) in made.items() if begin <= time <= used[name]) for time in range(len(nodes)))
        largest = max(sum(sizes[first:first + ahead + 1]) for first in range(len(sizes)))
        assert peak == largest, (keep, ahead, peak, largest)
        found += 1
print(found, "peaks are those of the largest units in a row")
