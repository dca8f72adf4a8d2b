"""Runs a command with a standard stream closed, and prints its exit code.

    closed.py stream command...
"""
import os
import subprocess
import sys

stream, command = int(sys.argv[1]), sys.argv[2:]
print("exit code", subprocess.run(command, preexec_fn=lambda: os.close(stream)).returncode)
