"""One request alone costs what `infer` says of one sequence: each job of a file, with `infer(B = 4, ...)`, both ways.

    alone.py STAGEC JOBS.stg FOLDER
"""
import json, re, subprocess, sys
from pathlib import Path

stagec, source, folder = sys.argv[1], Path(sys.argv[2]).read_text(), Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
step = r"infer\(B = 4, S = 16, for T in 16\.\.20\)"
(folder / "alone.stg").write_text(re.sub(step, "infer(B = 1, S = 16, for T in 16..20)", source))
(folder / "served.stg").write_text(re.sub(step, "infer(S = requests)", source))
(folder / "one.jsonl").write_text('{"arrival": 0, "prompt": 16, "output": 5}\n')


def report(file, job, *more):
    return subprocess.run([stagec, folder / file, "--job=" + job, "--report=json", *more], capture_output=True, text=True)


equal = refused = 0
for job in re.findall(r"^job (\w+)", source, re.M):
    served = report("served.stg", job, f"--requests={folder}/one.jsonl", "--iteration-time=1ms")
    if served.returncode:
        print(f"{job}: {served.stderr.splitlines()[0].split(': ', 1)[1]}")
        refused += 1
        continue
    served, alone = json.loads(served.stdout)["model"], json.loads(report("alone.stg", job).stdout)
    for key in ("flops", "parameters", "phases"):
        if served[key] != alone[key]:
            print(f"{job}: {key} of a request {served[key]}, of a sequence {alone[key]}")
    for a, b in zip(served["stages"], alone["stages"]):
        if a["communication"] != b["communication"]:
            print(f"{job}: {a['communication']}, of a sequence {b['communication']}")
    equal += 1
print(f"{equal} models compared, {refused} refused")
