"""Prints what a report in JSON says of a program, without what the model, its values and its layers are called.

    without_names.py < report.json
"""
import json
import sys

NAMES = {"name", "moment", "case", "iteration", "kind", "model", "job", "repeat", "traces"}


def strip(value):
    if isinstance(value, dict):
        return {key: strip(part) for key, part in value.items() if key not in NAMES}
    return [strip(part) for part in value] if isinstance(value, list) else value


print(json.dumps(strip(json.load(sys.stdin)), indent=1))
