"""The peak of a rank's memory by the lists `inputs` and `outputs` of its trace, nodes in the order of their ids, against the report's.

    list_peak.py stage-trace folder report.json [rank stage]

A tensor takes memory from the node that writes it, or from the beginning, to the last that reads it. What is received
takes memory from where its recv is posted: behind the node that this depends on, the last computation of a unit, and behind the
messages with which that unit ends. What is loaded from the host does from
where the load may begin, if copies take no time: behind all that it depends on but copies, and that these depend on.
"""
import json
import re
import sys

from commands import run

stage_trace, folder, report = sys.argv[1:4]
rank, number = sys.argv[4:] or ("0", "0")
first, last, sizes, starts = {}, {}, {}, {}
lines = [line for line in run([stage_trace, "dump", "--rank", rank, folder]).splitlines() if "inputs=" in line]
for at, line in enumerate(lines):
    inputs, outputs = (json.loads(text) for text in re.search(r"inputs=(\[.*\]) outputs=(\[.*\])$", line).groups())
    awaited = re.findall(r"\d+", " ".join(re.findall(r" ctrl=\[([\d, ]+)\]", line)))
    begin = at
    if " COMM_RECV " in line:
        begin = max((int(node) + 1 for node in awaited), default=0)
        while ' COMM_SEND "send ' in lines[begin]:
            begin += 1
    if " MEM_LOAD " in line or " MEM_STORE " in line:
        awaited += re.findall(r"\d+", " ".join(re.findall(r" data=\[([\d, ]+)\]", line)))
        begin = starts[at] = max((starts.get(int(node), int(node) + 1) for node in awaited), default=0)
    for words, isWrite in (inputs, False), (outputs, True):
        for name, size in zip(words[::2], words[1::2]):
            sizes[name] = int(size)
            first.setdefault(name, begin if isWrite else 0)
            last[name] = at
peak = max(sum(size for name, size in sizes.items() if first[name] <= at <= last[name]) for at in range(len(lines)))
stage = json.load(open(report))["stages"][int(number)]
assert peak == stage["memory"]["peak"], (peak, stage["memory"]["peak"])
print("lists and report have the same peak:", peak)
