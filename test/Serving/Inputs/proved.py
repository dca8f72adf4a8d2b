"""Each job of a file, serving requests, is proved.

    proved.py STAGEC JOBS.stg SERVED.stg
"""
import re, subprocess, sys
from pathlib import Path

stagec, source, served = sys.argv[1], Path(sys.argv[2]).read_text(), Path(sys.argv[3])
served.write_text(re.sub(r"infer\(B = 4, S = 16, for T in 16\.\.20\)", "infer(S = requests)", source))
proved = refused = 0
for job in re.findall(r"^job (\w+)", source, re.M):
    run = subprocess.run([stagec, served, "--job=" + job, "--prove"], capture_output=True, text=True)
    if run.returncode:
        print(f"{job}: {run.stderr.splitlines()[0].split(': ', 1)[1]}")
        refused += 1
    elif "; 9 outputs are what a pass" not in run.stdout:
        print(f"{job}: {run.stdout}")
    else:
        proved += 1
print(f"{proved} models proved, {refused} refused")
