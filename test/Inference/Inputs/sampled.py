"""Who waits for which token, in the traces of a job that samples.

    sampled.py STAGE_TRACE FOLDER REQUESTS.jsonl|BATCHES

On the first stage what looks tokens up in a decode step waits for the last unit in which a sequence of it was sampled, and for no
later one: for the op that made its token, or for the message that brings it. Which unit that is follows from the names of units: of a
server's iterations, `i4 p1+20@12 2d+2@16`, the file says which sequences two of 16 positions are; of batches each has its turn.
"""
import json
import re
import subprocess
import sys

stage_trace, folder, what = sys.argv[1:]
dump = subprocess.run([stage_trace, "dump", folder + "/workload.0.et"], check=True, capture_output=True, text=True).stdout
nodes = {}
for line in dump.splitlines():
    match = re.match(r'(\d+) (\w+) "(.*?)"(.*)', line)
    if match:
        data = re.search(r"data=\[([\d, ]*)\]", match[4])
        nodes[int(match[1])] = (match[2], match[3], [int(n) for n in data[1].split(",")] if data else [])

units, tokens, lookups = [], {}, {}
for number, (kind, name, data) in nodes.items():
    for of, table in (("sample.token ", tokens), ("recv sample.token ", tokens), ("x ", lookups)):
        if name.startswith(of) and name[len(of)] in "FDi" and name[len(of) + 1].isdigit():
            table[name[len(of):]] = (number, data)
for name in lookups:
    units.append(name)

feeders = {}
if what.endswith(".jsonl"):
    requests = [json.loads(line) for line in open(what)]
    running = {}  # by request: positions in caches, tokens to come, and the unit that sampled it last
    for number, unit in enumerate(units):
        decodes = re.search(r" (\d+)d\+\d+@(\d+)", unit)
        taken = {}
        if decodes:
            # The first of those that run, but perhaps for those of the unit before, which may still be in flight. Lengths tell.
            others = {request: state for request, state in running.items() if state[2] != number - 1}
            choices = [dict(list(choice.items())[:int(decodes[1])]) for choice in (others, running)]
            fitting = [choice for choice in choices
                       if (len(choice), sum(state[0] for state in choice.values())) == (int(decodes[1]), int(decodes[2]))]
            assert fitting, (unit, running)
            taken = dict(fitting[0])
        feeders[unit] = units[max(state[2] for state in taken.values())] if taken else None
        for request, (context, left, _) in taken.items():
            running[request] = (context + 1, left - 1, number)
        for request, count, cached in re.findall(r" p(\d+)\+(\d+)@(\d+)", unit):
            prompt, output = requests[int(request)]["prompt"], requests[int(request)]["output"]
            if int(count) + int(cached) == prompt:
                running[int(request)] = (prompt, output - 1, number)
        running = {request: state for request, state in running.items() if state[1]}
else:
    batches = int(what)
    for number, unit in enumerate(units):
        feeders[unit] = units[number - batches] if number >= batches else None

waiting = 0
for unit, feeder in feeders.items():
    awaited = [name for name, (number, _) in tokens.items() if number in lookups[unit][1]]
    assert awaited == ([feeder] if feeder else []), (unit, awaited, feeder)
    waiting += feeder is not None
print(f"{waiting} of {len(units)} units wait for the tokens of their sequences")
