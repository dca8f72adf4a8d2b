"""For the scripts beside this one."""
import subprocess
import sys


def run(arguments):
    """What a command prints; the script ends if the command fails."""
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}\n{done.stdout}{done.stderr}")
    return done.stdout
