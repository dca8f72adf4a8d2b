"""Runs a command with 2 GB of memory and 20 seconds of CPU, and passes on what it says and returns.

    limited.py command...
"""
import os
import resource
import sys

resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
os.execv(sys.argv[1], sys.argv[1:])
