"""Gives a tool arguments that hold a control sequence, and says of each whether the message shows it escaped.

    escapes.py command... [--values]
"""
import subprocess
import sys

values = sys.argv[-1] == "--values"
command = sys.argv[1:-1] if values else sys.argv[1:]
sequence, shown = "\x1b[2J", "\\1B[2J"
if values:
    cases = {f"{name}={shown}": command + [f"{name}={sequence}"] for name in ["--report", "--steps", "--force"]}
else:
    cases = {f"--{shown}name": command + [f"--{sequence}name"], "subcommand": [command[0], sequence, f"-{sequence}", "--no"]}
for name, arguments in cases.items():
    process = subprocess.run(arguments, capture_output=True, text=True)
    text = process.stdout + process.stderr
    print(f"{name}: {'escaped' if process.returncode and shown in text and sequence not in text else repr(text)}")
