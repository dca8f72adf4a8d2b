#!/usr/bin/env python3
"""Reads trace events, of a file or standard input, and prints a line per thread and per message.

Fails where the file is no JSON, or two events of a thread run at the same time. What stands before the JSON, as on
standard output, is skipped, and what stands behind it.
"""
import json
import sys

text = open(sys.argv[1]).read() if len(sys.argv) > 1 else sys.stdin.read()
events = json.JSONDecoder().raw_decode(text[text.index("{"):])[0]["traceEvents"]
labels = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"].endswith("_name")}


def show(event):
    return f'{labels["process_name", event["pid"], 0]} {labels["thread_name", event["pid"], event["tid"]]}'


threads = {}
for event in events:
    if event["ph"] == "X":
        threads.setdefault((event["pid"], event["tid"]), []).append(event)
for _, runs in sorted(threads.items()):
    runs.sort(key=lambda e: (e["ts"], e["dur"]))
    assert all(a["ts"] + a["dur"] <= b["ts"] for a, b in zip(runs, runs[1:])), runs
    print(show(runs[0]) + ": " + " ".join(f'{e["name"]} [{e["ts"]}, {e["ts"] + e["dur"]}]' for e in runs))
sends = {e["id"]: e for e in events if e["ph"] == "s"}
for event in events:
    if event["ph"] == "f":
        send = sends.pop(event["id"])
        print(f'message from {show(send)} at {send["ts"]} to {show(event)} at {event["ts"]}')
assert not sends
