"""A third clock: how long the step of a folder of traces takes, from the prices of nodes.

  clock.py STAGE_TRACE FOLDER...      prints `step: 6.500 us on 4 ranks` for each, as `stage-trace timeline` does

Written from docs/internals/Surcharges.md and docs/Traces.md, without the code of the compiler and of the timeline: sets of ancestors, exact
fractions, and rounds over the ranks until all nodes have ended. Nothing is fast, so that nothing is clever.
"""
import json
import re
import subprocess
import sys
from collections import defaultdict
from fractions import Fraction

STAGE_TRACE = sys.argv[1]
WORD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\[[^\]]*\]|\S+)')


def round_half_up(x):
    return (2 * x.numerator + x.denominator) // (2 * x.denominator)


class Node:
    def __init__(self, line):
        number, self.kind, rest = line.split(" ", 2)
        self.id = int(number)
        rest = rest[rest.index('" ') + 2:] if rest.startswith('"') else rest
        self.fields = {key: value.strip('"') for key, value in WORD.findall(rest)}
        get = lambda key: [int(word) for word in self.fields.get(key, "[]").strip("[]").split(",") if word]
        self.deps = set(get("data") + get("ctrl"))
        self.stream = self.fields.get("issue_stream", "0")
        self.alone = int(self.fields.get("duration_picos", 0))
        self.unit = int(self.fields["unit"])
        self.level = self.fields.get("level")
        self.on_host = self.fields.get("is_cpu_op") == "true"
        self.is_compute = self.kind == "COMP" and not self.on_host
        self.is_main = self.is_compute and self.stream == "0"
        self.is_communication = self.kind in ("COMM_COLL", "COMM_SEND")
        self.begin = self.end = None

    def lane(self):
        if self.kind == "COMM_RECV":
            return None
        what = "network" if self.is_communication else "copy" if self.kind.startswith("MEM") else "host" if self.on_host else "device"
        return what, self.stream


class Rank:
    def __init__(self, number, text):
        first, *lines = text.splitlines()
        metadata = {key: value.strip('"') for key, value in WORD.findall(first)}
        tax = lambda name: Fraction(metadata.get(f"tax_{name}", "0"))
        self.number, self.launch = number, int(metadata.get("launch_picos", 0))
        self.step_host = int(metadata.get("step_host_picos", 0))
        self.taxes = {"COMM_COLL": tax("collective"), "COMM_SEND": tax("send"), "MEM": tax("copy")}
        self.tax_communication = tax("communication")
        self.nodes = [Node(line) for line in lines]
        last = {}
        for node in self.nodes:
            if node.lane() in last and node.lane():
                node.deps.add(last[node.lane()])
            last[node.lane()] = node.id
        self.ancestors = []  # as bits
        for node in self.nodes:
            bits = 0
            for dep in node.deps:
                bits |= self.ancestors[dep] | 1 << dep
            self.ancestors.append(bits)
        self.find_durations()

    def are_apart(self, a, b):
        """Neither waits for the other, and their units are neighbours at most."""
        return abs(a.unit - b.unit) <= 1 and not self.ancestors[a.id] >> b.id & 1 and not self.ancestors[b.id] >> a.id & 1

    def find_durations(self):
        for unit in {node.unit for node in self.nodes}:
            kernels = [node for node in self.nodes if node.unit == unit and node.is_compute and node.alone]
            if kernels:
                kernels[-1].alone += max(0, self.launch * len(kernels) - sum(node.alone for node in kernels))
        for node in [node for node in self.nodes if node.is_compute and node.alone][-1:]:
            node.alone += self.step_host
        communication = [node for node in self.nodes if node.is_communication]
        main = [node for node in self.nodes if node.is_main]
        for node in self.nodes:
            node.duration = node.shared = node.alone
        for node in communication:
            met = defaultdict(int)
            for other in communication:
                if other.stream != node.stream and other.level == node.level and self.are_apart(node, other):
                    met[other.stream] += other.alone
            node.shared += sum(min(node.alone, ticks) for ticks in met.values())
            beside = sum(other.alone for other in main if self.are_apart(node, other)) if self.tax_communication else 0
            node.duration = node.shared + round_half_up(self.tax_communication * min(node.alone, beside))
        of_main = sum(1 << node.id for node in main)
        queues = defaultdict(list)  # members, with what is left of them
        for node in self.nodes:
            kind = "MEM" if node.kind.startswith("MEM") else node.kind
            if self.taxes.get(kind):
                queues[kind, node.stream].append([node, node.shared])
        for compute in main:
            longest = defaultdict(int)
            passed = sum(1 << node.id for node in main if node.id < compute.id)
            for (kind, _), members in queues.items():
                awaited = [i for i, (node, _) in enumerate(members) if self.ancestors[compute.id] >> node.id & 1]
                del members[: awaited[-1] + 1 if awaited else 0]
                length, left = 0, compute.alone
                for member in members:
                    if self.ancestors[member[0].id] & of_main & ~passed:
                        break
                    length += member[1]
                    taken = min(left, member[1])
                    left, member[1] = left - taken, member[1] - taken
                longest[kind] = max(longest[kind], length)
            for kind, length in longest.items():
                compute.duration += round_half_up(self.taxes[kind] * min(compute.alone, length))


def find_step(folder):
    dump = lambda name: subprocess.run([STAGE_TRACE, "dump", f"{folder}/{name}"], capture_output=True, text=True, check=True).stdout
    with open(f"{folder}/comm_group.json") as file:
        groups = json.load(file)
    numbers = sorted({int(m) for members in groups.values() for m in members}) or [0]
    ranks = {}
    number = 0
    while True:
        try:
            open(f"{folder}/workload.{number}.et").close()
        except FileNotFoundError:
            break
        ranks[number] = Rank(number, dump(f"workload.{number}.et"))
        number += 1
    messages, meetings, counts = {}, defaultdict(list), defaultdict(int)
    for rank in ranks.values():
        counts.clear()
        for node in rank.nodes:
            if node.kind == "COMM_SEND":
                key = rank.number, int(node.fields["comm_dst"]), node.fields.get("comm_tag", "0")
                messages.setdefault(key, []).append(node)
            if node.kind == "COMM_COLL":
                group = node.fields["pg_name"]
                meetings[group, counts[group]].append((rank, node))
                node.meeting = group, counts[group]
                counts[group] += 1
    for members in meetings.values():
        longest = max(node.duration for _, node in members)
        for _, node in members:
            node.duration = longest
    done = {number: 0 for number in ranks}
    while any(done[number] < len(rank.nodes) for number, rank in ranks.items()):
        moved = False
        for number, rank in ranks.items():
            waiting = [node for node in rank.nodes if node.end is None]
            for node in waiting:
                if any(rank.nodes[dep].end is None for dep in node.deps):
                    continue
                node.ready = max((rank.nodes[dep].end for dep in node.deps), default=0)
                if node.kind == "COMM_COLL":
                    members = [other for _, other in meetings[node.meeting]]
                    if any(not hasattr(other, "ready") for other in members):
                        continue
                    node.begin = max(other.ready for other in members)
                    node.end = node.begin + node.duration
                elif node.kind == "COMM_RECV":
                    key = int(node.fields["comm_src"]), number, node.fields.get("comm_tag", "0")
                    sent = messages[key][0]
                    if sent.end is None:
                        continue
                    node.end = max(node.ready, sent.end)
                else:
                    node.end = node.ready + node.duration
                done[number] += 1
                moved = True
        assert moved, "nothing can run"
    step = max((node.end for rank in ranks.values() for node in rank.nodes), default=0)
    return step, len(ranks)


for folder in sys.argv[2:]:
    step, count = find_step(folder)
    nanos = round_half_up(Fraction(step, 1000))
    print(f"step: {nanos // 1000:,}.{nanos % 1000:03} us on {count} rank{'s' * (count != 1)}")
