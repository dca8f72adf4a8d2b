#!/usr/bin/env python3
"""The time of traces with durations, found again from the definitions: sets of ancestors, queues as lists, the
longest path by relaxation. It shares nothing with stage-trace, which it is compared with to the picosecond.

    surcharges.py check STAGE-TRACE FOLDER [OPTION...]      of `timeline`
    surcharges.py random STAGE-TRACE SCRATCH COUNT          makes traces and checks them, with and without streams
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from itertools import count


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


# ---- Reading --------------------------------------------------------------------------------------------------------


class Node:
    def __init__(self, rank, ident, kind, fields):
        number = lambda name, default=0: int(fields.get(name, default))
        listed = lambda name: [int(item) for item in re.findall(r"\d+", fields.get(name, ""))]
        self.rank, self.id, self.kind = rank, ident, kind
        self.deps = set(listed("ctrl") + listed("data"))
        self.duration, self.unit, self.level = number("duration_picos"), number("unit", -1), number("level", -1)
        self.stream, self.host = number("issue_stream"), fields.get("is_cpu_op") == "true"
        self.group, self.tag = fields.get("pg_name", "").strip('"'), number("comm_tag")
        self.peer = number("comm_dst" if kind == "COMM_SEND" else "comm_src")

    def is_communication(self):
        return self.kind in ("COMM_COLL", "COMM_SEND")

    def is_copy(self):
        return self.kind.startswith("MEM_") and not self.host

    def is_compute(self):
        return self.kind == "COMP" and not self.host


class Rank:
    def __init__(self, metadata):
        self.nodes = []
        text = lambda name, default: metadata.get(name, default).strip('"')
        self.launch = int(text("launch_picos", "0"))
        self.step_host = int(text("step_host_picos", "0"))
        self.tax = {kind: Fraction(text("tax_" + kind, "0")) for kind in ("collective", "send", "copy", "communication")}


def read(tool, folder):
    groups, ranks = {}, {}
    for line in run(tool, "dump", folder).splitlines():
        words = line.split()
        fields = dict(re.findall(r'(\w+)=("[^"]*"|\[[^]]*\]|\S+)', line))
        if words[0] == "group":
            groups[words[1]] = [int(item) for item in re.findall(r"\d+", line.split("=")[1])]
        elif words[0] == "rank":
            number = int(words[1])
            ranks[number] = Rank(fields)
        else:
            ranks[number].nodes.append(Node(number, int(words[0]), words[1], fields))
    return groups, ranks


# ---- Surcharges -----------------------------------------------------------------------------------------------------


def half_up(value):
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)


def surcharge(rank):
    """Final durations of a rank by ids."""
    nodes = sorted(rank.nodes, key=lambda node: node.id)
    alone = {node.id: node.duration for node in nodes}
    last = {}
    for unit in {node.unit for node in nodes}:
        work = [node.id for node in nodes if node.unit == unit and node.is_compute() and node.duration]
        if work:
            alone[work[-1]] += max(0, rank.launch * len(work) - sum(alone[ident] for ident in work))
    for node in [node for node in nodes if node.is_compute() and node.duration][-1:]:
        alone[node.id] += rank.step_host

    ancestors, before = {}, {}
    for node in nodes:
        direct = set(node.deps)
        if node.is_communication() or node.is_copy() or (node.is_compute() and node.stream == 0):
            room = (node.stream, node.is_communication(), node.is_copy())
            direct |= {before[room]} if room in before else set()
            before[room] = node.id
        ancestors[node.id] = direct.union(*(ancestors[dep] for dep in direct))

    def unrelated(a, b):
        return a.id not in ancestors[b.id] and b.id not in ancestors[a.id] and abs(a.unit - b.unit) <= 1

    shared = dict(alone)
    communications = [node for node in nodes if node.is_communication()]
    for node in communications:
        met = {}
        for other in communications:
            if other.stream != node.stream and other.level == node.level and unrelated(node, other):
                met[other.stream] = met.get(other.stream, 0) + alone[other.id]
        shared[node.id] += sum(min(alone[node.id], work) for work in met.values())

    final = dict(shared)
    main = [node for node in nodes if node.is_compute() and node.stream == 0]
    positions = {node.id: i for i, node in enumerate(main)}
    kinds = {
        "collective": lambda node: node.kind == "COMM_COLL",
        "send": lambda node: node.kind == "COMM_SEND",
        "copy": Node.is_copy,
    }
    queues = {
        (kind, stream): [node for node in nodes if test(node) and node.stream == stream]
        for kind, test in kinds.items()
        for stream in {node.stream for node in nodes}
    }
    waiting = {key: [] for key in queues}  # [id, left]
    gone = set()
    for i, node in enumerate(main):
        longest = {kind: 0 for kind in kinds}
        for (kind, stream), members in queues.items():
            awaited = [j for j, member in enumerate(members) if member.id in ancestors[node.id]]
            if awaited:
                gone |= {member.id for member in members[: awaited[-1] + 1]}
            queue = [entry for entry in waiting[kind, stream] if entry[0] not in gone]
            for member in members:
                if member.id in gone or member.id in (entry[0] for entry in queue):
                    continue
                if any(positions[a] >= i for a in ancestors[member.id] if a in positions):
                    continue
                queue.append([member.id, shared[member.id]])
            longest[kind] = max(longest[kind], sum(left for _, left in queue))
            room = alone[node.id]
            while queue and room >= queue[0][1]:
                room -= queue[0][1]
                gone.add(queue.pop(0)[0])
            if queue:
                queue[0][1] -= room
            waiting[kind, stream] = queue
        for kind in kinds:
            final[node.id] += half_up(rank.tax[kind] * min(alone[node.id], longest[kind]))
    for node in communications:
        beside = sum(alone[other.id] for other in main if unrelated(node, other))
        final[node.id] += half_up(rank.tax["communication"] * min(alone[node.id], beside))
    return final


# ---- The longest path -----------------------------------------------------------------------------------------------


def find_times(groups, ranks):
    """Durations, begins and ends by (rank, id). The begin of a recv is not defined, and left out."""
    nodes = {(node.rank, node.id): node for rank in ranks.values() for node in rank.nodes}
    final = {number: surcharge(rank) for number, rank in ranks.items()}
    durations = {place: final[place[0]][place[1]] for place in nodes}
    meetings = {}  # the k-th collective of a group, or a message
    uses = {}
    for number, rank in sorted(ranks.items()):
        for node in sorted(rank.nodes, key=lambda node: node.id):
            place = (number, node.id)
            if node.kind == "COMM_COLL":
                key = (node.group, number)
                uses[key] = uses.get(key, -1) + 1
                meetings.setdefault(("collective", node.group, uses[key]), []).append(place)
            elif node.kind in ("COMM_SEND", "COMM_RECV"):
                ends = (number, node.peer) if node.kind == "COMM_SEND" else (node.peer, number)
                key = ("message", ends, node.tag)
                uses[key, node.kind] = uses.get((key, node.kind), -1) + 1
                meetings.setdefault((key, uses[key, node.kind]), []).append(place)
    partners = {place: places for places in meetings.values() for place in places}
    for places in meetings.values():
        if nodes[places[0]].kind == "COMM_COLL":
            longest = max(durations[place] for place in places)
            durations.update({place: longest for place in places})

    begins = {place: 0 for place in nodes}
    ends = dict(durations)
    changed = True
    while changed:
        changed = False
        for place, node in nodes.items():
            begin = max([ends[node.rank, dep] for dep in node.deps], default=0)
            if node.kind == "COMM_COLL":
                begin = max([begin] + [begins[other] for other in partners[place]])
            end = begin + durations[place]
            if node.kind == "COMM_RECV":
                end = max([begin] + [ends[other] for other in partners[place] if other != place])
            if (begin, end) != (begins[place], ends[place]):
                begins[place], ends[place], changed = begin, end, True
    return durations, {p: b for p, b in begins.items() if nodes[p].kind != "COMM_RECV"}, ends


def check(tool, folder, *options):
    groups, ranks = read(tool, folder)
    merged = "--streams=one" in options
    if merged:
        for rank in ranks.values():
            for node in rank.nodes:
                node.stream = 0
    durations, begins, ends = find_times(groups, ranks)
    events_path = folder.rstrip("/") + ".json"
    summary = run(tool, "timeline", folder, "-o", events_path, "--force", *options)
    with open(events_path) as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    seen = 0
    for event in events:
        if event["ph"] != "X" or event["cat"] == "wait":
            continue
        place, seen = (event["pid"], event["args"]["node"]), seen + 1
        begin, duration = int(event["ts"] * 1000000), int(event["dur"] * 1000000)
        if place in begins:
            assert duration == durations[place], (folder, place, duration, durations[place])
        # On one stream nodes are no chains: what is ready first runs first, and no path says when.
        if not merged:
            assert begin == begins.get(place, begin), (folder, place, begin, begins[place])
            assert begin + duration == ends[place], (folder, place, begin + duration, ends[place])
    assert seen == len(ends), (folder, seen, len(ends))
    if not merged:
        nanos = half_up(Fraction(max(ends.values()), 1000))
        step = re.search(r"^step: (\S+) us", summary, re.M).group(1)
        assert step == f"{nanos // 1000:,}.{nanos % 1000:03}", (folder, step, nanos)
    return sum(durations[p] > n.duration for r in ranks.values() for n in r.nodes for p in [(n.rank, n.id)])


# ---- Random traces --------------------------------------------------------------------------------------------------


def generate(seed):
    """Nodes are made in an order in which all of them could run, so that no rank waits for ever."""
    random.seed(seed)
    pick = random.choice
    num_ranks, num_streams, num_levels = random.randint(2, 4), random.randint(1, 4), random.randint(1, 3)
    longest = pick([3, 20, 1000, 10**12])
    units = [0] * num_ranks
    lines = [[] for _ in range(num_ranks)]
    rooms = [{} for _ in range(num_ranks)]
    tags = count()

    def add(rank, kind, attributes, stream=None, room=None, level=None, duration=True):
        ident = len(lines[rank])
        deps = set(random.sample(range(ident), min(ident, pick([0, 0, 1, 1, 2]))))
        deps = {dep for dep in deps if ident - dep < 8 or random.random() < 0.2}
        if room is not None and room in rooms[rank]:
            deps.add(rooms[rank][room])
        if room is not None:
            rooms[rank][room] = ident
        control = {dep for dep in deps if random.random() < 0.5}
        fields = [f"{name}={sorted(some)}" for name, some in (("ctrl", control), ("data", deps - control)) if some]
        fields.append(attributes)
        if stream:
            fields.append(f"issue_stream={stream}")
        if duration:
            fields.append(f"duration_picos={pick([0, 1, random.randint(0, longest), random.randint(0, longest)])}")
        if level is not None:
            fields.append(f"level={level}")
        fields.append(f"unit={units[rank]}")
        lines[rank].append(f"{ident} {kind} " + " ".join(fields))

    groups = [list(range(num_ranks))]
    for _ in range(random.randint(0, 3)):
        groups.append(sorted(random.sample(range(num_ranks), random.randint(2, num_ranks))))
    of_group = [(random.randint(0, num_streams - 1), random.randint(0, num_levels - 1)) for _ in groups]
    for _ in range(random.randint(4, 60)):
        rank = random.randrange(num_ranks)
        what = random.random()
        if what < 0.35:
            add(rank, "COMP", "num_ops=1 tensor_size=1", room="compute")
        elif what < 0.42:
            stream = random.randint(1, 3)
            add(rank, "COMP", "num_ops=1 tensor_size=1", stream, ("compute", stream))
        elif what < 0.45:
            add(rank, "COMP", "is_cpu_op=true num_ops=1 tensor_size=1", room="host")
        elif what < 0.52:
            stream = random.randint(0, 1)
            add(rank, pick(["MEM_LOAD", "MEM_STORE"]), "tensor_size=1", stream, ("copy", stream))
        elif what < 0.75:
            group = random.randrange(len(groups))
            stream, level = of_group[group]
            for member in groups[group]:
                attributes = f'comm_type=ALL_REDUCE comm_size=8 pg_name="{group + 1}"'
                add(member, "COMM_COLL", attributes, stream, ("communication", stream), level)
        elif what < 0.92:
            peer = pick([other for other in range(num_ranks) if other != rank])
            stream, tag = random.randint(0, num_streams - 1), next(tags)
            level = random.randint(0, num_levels - 1)
            attributes = f"comm_dst={peer} comm_size=8 comm_tag={tag}"
            add(rank, "COMM_SEND", attributes, stream, ("communication", stream), level)
            attributes = f"comm_src={rank} comm_size=8 comm_tag={tag} level={level}"
            add(peer, "COMM_RECV", attributes, duration=False)
        else:
            units[rank] += pick([1, 1, 1, 2])
    text = [f"group {i + 1} = {members}" for i, members in enumerate(groups)]
    for rank in range(num_ranks):
        terms = f"launch_picos={pick([0, 0, 1, longest // 2])} step_host_picos={pick([0, 0, 1, longest])}"
        for kind in ("collective", "send", "copy", "communication"):
            if random.random() < 0.7:
                terms += f' tax_{kind}="{pick(["0.3", "3/10", "1/3", "0.05", "1", "0", "7/4", "0.5"])}"'
        text += [f"rank {rank} {terms}"] + (lines[rank] or ["0 COMP num_ops=1 tensor_size=1 duration_picos=1 unit=0"])
    return "\n".join(text) + "\n"


def main():
    if sys.argv[1] == "check":
        check(*sys.argv[2:])
        return
    tool, scratch, number = sys.argv[2], sys.argv[3], int(sys.argv[4])
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    dearer = merged = 0
    for seed in range(number):
        folder = os.path.join(scratch, str(seed))
        with open(folder + ".txt", "w") as file:
            file.write(generate(seed))
        run(tool, "assemble", folder + ".txt", "-o", folder)
        dearer += check(tool, folder)
        # On one stream groups may be used in orders in which ranks wait for each other for ever.
        command = [tool, "timeline", folder, "--streams=one"]
        trial = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if trial.returncode == 0:
            check(tool, folder, "--streams=one")
            merged += 1
        else:
            assert "[stall]" in trial.stderr, trial.stderr
    assert dearer > number, dearer
    print(f"{number} folders agree, {merged} of them on one stream, too")


if __name__ == "__main__":
    main()
