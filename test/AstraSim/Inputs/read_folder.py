"""Reads what --astra-sim writes as ASTRA-sim's parsers do, and says what it comes to.

  read_folder.py FOLDER TRACES

Checked: keys that the simulator reads, of the types that it reads; one entry per dimension in each list; sizes that
multiply to the number of traces; lists of algorithms with one entry per dimension, or one that treats all ranks as one
dimension; as many chunks in flight as there are, and one; links of rings in one dimension alone, but for one of a ring
over an odd number of groups. Printed: dimensions with rates in 1e9 bytes per second and latencies of messages, the
roofline, the memory, and how many groups have members in how many dimensions.
"""
import json
import re
import sys
from collections import Counter
from math import prod
from pathlib import Path

folder, traces = Path(sys.argv[1]), Path(sys.argv[2])


def read_network(path):
    entries = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            key, values = re.fullmatch(r"(\w+): \[ (.*) \]", line).groups()
            entries[key] = values.split(", ")
    assert entries.keys() == {"topology", "npus_count", "bandwidth", "latency"}, entries
    assert len({len(values) for values in entries.values()}) == 1, entries
    return entries


network = read_network(folder / "network.yml")
sizes = [int(text) for text in network["npus_count"]]
assert all(size > 1 for size in sizes), sizes
num_ranks = len(list(traces.glob("*.et")))
assert prod(sizes) == num_ranks, (sizes, num_ranks)
links = {"Switch": 2}  # that a message passes
for number, (block, size, rate, latency) in enumerate(zip(*network.values())):
    print(f"dim {number}: {block} {size}, {float(rate) * 2**30 / 1e9:.9g} GB/s, {float(latency) * links[block]:.9g} ns")

system = json.loads((folder / "system.json").read_text())
assert system["scheduling-policy"] in ("FIFO", "LIFO")
assert system["collective-optimization"] == "localBWAware"  # else phases of an all_reduce move the whole tensor
assert system["active-chunks-per-dimension"] == system["preferred-dataset-splits"] == 1
assert system["endpoint-delay"] >= 1
for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all"):
    algorithms = system[kind + "-implementation"]
    assert len(algorithms) == len(sizes) or (len(algorithms) == 1 and algorithms[0].startswith("one")), algorithms
    print(f"{kind}: {' '.join(algorithms)}")
print(f"peak {system['peak-perf']} TFLOP/s, memory {system['local-mem-bw']} GB/s, roofline {system['roofline-enabled']}"
      f"{', tracks memory' if system.get('track-local-mem') else ''}")

memory = json.loads((folder / "memory.json").read_text())
assert memory["memory-type"] in ("NO_MEMORY_EXPANSION", "PER_NPU_MEMORY_EXPANSION")
if memory["memory-type"] == "PER_NPU_MEMORY_EXPANSION":
    assert isinstance(memory["remote-mem-bw"], int) and memory["remote-mem-bw"] >= 1
print("memory:", memory["memory-type"], memory.get("remote-mem-bw", "-"))

groups = json.loads((folder / "comm_group.json").read_text())
written = json.loads((traces / "comm_group.json").read_text())
assert {key: sorted(ranks) for key, ranks in groups.items()} == {key: sorted(ranks) for key, ranks in written.items()}


def locate(rank):
    place = []
    for size in sizes:
        place.append(rank % size)
        rank //= size
    return place


def differing(a, b):
    return [dim for dim, (x, y) in enumerate(zip(locate(a), locate(b))) if x != y]


spans = Counter()
for ranks in groups.values():
    spanned = [dim for dim in range(len(sizes)) if len({locate(rank)[dim] for rank in ranks}) > 1]
    spans[len(spanned)] += 1
    if len(ranks) == num_ranks:
        continue
    crooked = [link for link in zip(ranks, ranks[1:] + ranks[:1]) if len(differing(*link)) > 1]
    odd = len({locate(rank)[spanned[-1]] for rank in ranks}) % 2
    if "--crooked" not in sys.argv:
        assert len(crooked) <= odd, (ranks, crooked)
print("groups by dimensions:", ", ".join(f"{dims}: {count}" for dims, count in sorted(spans.items())))
script = (folder / "run.sh").read_text()
assert str(traces.parent.resolve()) not in script, "a path of this machine"
print(re.search(r"traces=\$here/'(.*)'", script).group(1))
