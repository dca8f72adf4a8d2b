"""Compares the peaks of a report with measured ones.

    within.py report.json percent MiB [MiB ...]; a number per stage, in order
"""
import json
import sys

report, percent, *measured = sys.argv[1:]
with open(report) as file:
    stages = json.load(file)["stages"]
assert len(stages) == len(measured), (len(stages), measured)
for stage, mebibytes in zip(stages, measured):
    error = 100 * (stage["memory"]["peak"] / 2**20 / float(mebibytes) - 1)
    print("%+.2f %%" % error)
    assert abs(error) <= float(percent), "more than %s %%" % percent
print("all within %s %%" % percent)
