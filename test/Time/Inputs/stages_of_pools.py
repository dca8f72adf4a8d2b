"""Prints what a report of two pools says of the times of their stages, without the name of the machine."""
import json, sys
for pool in json.load(sys.stdin)["parts"]:
    time = pool["time"]
    print(time["step_seconds"], json.dumps(time["stages"], indent=1))
