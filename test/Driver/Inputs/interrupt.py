"""Interrupts emission, and shows what is left.

    interrupt.py SIGNAL target-folder command...

The command writes into `target-folder`/new/traces (two folders that do not exist) or, with --force, over what is in
`target-folder`. It is stopped while its hidden folder exists, so that the signal surely arrives in the middle.
"""
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

number, target, command = getattr(signal, sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
force = "--force" in command
output = target if force else target / "new" / "traces"
watched = output.parent


def list_files():
    """Names and contents of all files below the folder around the target."""
    return {str(path.relative_to(target.parent)): path.read_bytes() if path.is_file() else None
            for path in target.parent.rglob("*")}


def heed():
    """Shells start what runs in the background with some signals ignored, which a program should leave so."""
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)


before = list_files()
for attempt in range(50):
    process = subprocess.Popen(command + ["-o", str(output)], preexec_fn=heed)
    caught = False
    while not caught and process.poll() is None:
        if watched.is_dir() and (hidden := [path for path in watched.iterdir() if ".partial-" in path.name]):
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.01)
            # Some files are there, and the folder has not got its name.
            caught = hidden[0].is_dir() and any(hidden[0].iterdir())
            if caught:
                process.send_signal(number)
            process.send_signal(signal.SIGCONT)
    code = process.wait()
    if caught:
        break
    if not force:
        subprocess.run(["rm", "-r", str(target / "new")], check=True)
    before = list_files()
else:
    sys.exit("emission was over each time before the signal")
if code != -number:
    sys.exit(f"exit code {code}, expected {-number}")
left = list_files()
changed = [name for name in before if left.get(name) != before[name]]
new = sorted(name for name in left if name not in before)
print("changed:", changed)
print("new:", [name for name in new if not name.endswith(".et")])
