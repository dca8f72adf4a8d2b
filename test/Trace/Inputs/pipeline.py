#!/usr/bin/env python3
"""Prints the traces of a pipeline as text for `stage-trace assemble`, made without stagec.

    pipeline.py gpipe|1f1b STAGES MICROBATCHES

Forward is one compute node, backward two; what a stage needs of another one is a message. GPipe runs all
forwards, then all backwards. 1F1B runs min(m, p - r) forwards first on stage r, then turns about.
"""
import sys

kind, stages, microbatches = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def units(stage):
    warmup = microbatches if kind == "gpipe" else min(microbatches, stages - stage)
    order = [("F", i) for i in range(warmup)]
    for i in range(microbatches - warmup):
        order += [("B", i), ("F", warmup + i)]
    return order + [("B", i) for i in range(microbatches - warmup, microbatches)]


for stage in range(stages):
    print("rank", stage)
    node, before = 0, None  # `before`: the compute node that the stage runs last
    for phase, microbatch in units(stage):
        step = 1 if phase == "F" else -1
        tag = 2 * microbatch + (phase == "B")
        deps = [] if before is None else [before]
        if 0 <= stage - step < stages:
            print(node, f"COMM_RECV comm_src={stage - step} comm_size=8 comm_tag={tag}")
            deps.append(node)
            node += 1
        for part in range(1 if phase == "F" else 2):
            print(node, f'COMP "{phase}{microbatch}" data={deps} num_ops=1 tensor_size=1'.replace("data=[] ", ""))
            before, deps = node, [node]
            node += 1
        if 0 <= stage + step < stages:
            print(node, f"COMM_SEND data=[{before}] comm_dst={stage + step} comm_size=8 comm_tag={tag}")
            node += 1
