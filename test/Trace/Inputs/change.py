#!/usr/bin/env python3
"""Runs `STAGE-TRACE timeline FOLDER` where the trace of rank 1 is a pipe that gives a node less the second time."""
import os
import subprocess
import sys

tool, folder = sys.argv[1:]
path = os.path.join(folder, "workload.1.et")
whole = open(path, "rb").read()
metadata = whole[: 1 + whole[0]]
os.rename(path, path + ".kept")
os.mkfifo(path)
process = subprocess.Popen([tool, "timeline", folder, "-o", os.path.join(folder, "out.json")])
with open(path, "wb") as pipe:
    pipe.write(whole)
    # Another pipe, so that the reader comes to the end of this one.
    os.remove(path)
    os.mkfifo(path)
with open(path, "wb") as pipe:
    pipe.write(metadata)
process.wait()
assert process.returncode == 2 and not os.path.exists(os.path.join(folder, "out.json"))
os.rename(path + ".kept", path)
