"""Emission with standard error on a terminal, and what was seen there.

    progress.py MODE scratch-folder command...

Modes: `slow`, emission is stopped for more than a second while it runs; `quick`, it is not; `pipe`, as `slow`, but
standard error is a pipe. Prints what came out of standard error, its control characters spelled.
"""
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

mode, scratch, command = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]


def find_hidden():
    return [path for path in scratch.iterdir() if ".partial-" in path.name]


def run():
    """Whether the process could be stopped in time, and what it wrote."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    ours, theirs = os.pipe() if mode == "pipe" else pty.openpty()
    process = subprocess.Popen(command + ["-o", str(scratch / "traces")], stderr=theirs)
    os.close(theirs)
    seen = bytearray()

    def read():
        try:
            while data := os.read(ours, 4096):
                seen.extend(data)
        except OSError:
            pass  # Linux: the other end of the terminal is closed

    reader = threading.Thread(target=read)
    reader.start()
    stopped = mode == "quick"
    while not stopped and process.poll() is None:
        if find_hidden():
            process.send_signal(signal.SIGSTOP)
            stopped = bool(find_hidden())
            time.sleep(1.2)
            process.send_signal(signal.SIGCONT)
    code = process.wait()
    reader.join()
    os.close(ours)
    if code:
        sys.exit(f"exit code {code}: {seen.decode()}")
    return stopped, bytes(seen)


for attempt in range(20):
    stopped, seen = run()
    if stopped:
        break
else:
    sys.exit("emission was over each time before it could be stopped")
shutil.rmtree(scratch)
print("seen:", seen.decode().replace("\r", "<CR>").replace("\033[K", "<WIPE>").replace("\n", "<LF>"))
