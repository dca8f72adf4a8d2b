"""Runs a command whose standard output nobody reads, and says how it ends."""
import signal
import subprocess
import sys

process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
process.stdout.close()
message = process.stderr.read()
code = process.wait()
print(f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}", end=", ")
print(repr(message) if message else "without a message")
