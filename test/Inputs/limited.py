"""Runs a command with 2 GB of memory and 20 seconds of CPU, and passes on what it says and returns.

    limited.py [--brief] command...

With --brief it must do with 200 MB and one second of CPU: if not, this ends by a signal, which `not` takes for a failure.
Where STAGE_SANITIZED is set memory is not limited, and CPU to twenty times as much: sanitizers take terabytes of addresses.
"""
import os
import resource
import signal
import sys

brief = sys.argv[1] == "--brief"
command = sys.argv[2:] if brief else sys.argv[1:]
sanitized = "STAGE_SANITIZED" in os.environ
child = os.fork() if brief else 0
if child == 0:
    if not sanitized:
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (400, 400) if sanitized else (20, 20))
    os.execv(command[0], command)
_, status, usage = os.wait4(child, 0)
seconds, megabytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
if not sanitized and (seconds > 1 or megabytes > 200):
    print("limited.py: %.2f s of CPU and %.0f MB; 1 s and 200 MB were given" % (seconds, megabytes), file=sys.stderr)
    os.kill(os.getpid(), signal.SIGKILL)
if os.WIFSIGNALED(status):
    os.kill(os.getpid(), os.WTERMSIG(status))
sys.exit(os.WEXITSTATUS(status))
