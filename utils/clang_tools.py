"""What utils/check-format and utils/check-tidy share: the programs of clang 14, and which files have changed."""

import re
import shutil
import subprocess
import sys

VERSION = 14
CANNOT_RUN = 77  # exit code of a check that cannot check anything here; utils/nightly knows it
SUFFIXES = (".cpp", ".h")


def give_up(why):
    print(why)
    sys.exit(CANNOT_RUN)


def find_tool(name):
    """A program of the right version: others find other things."""
    for candidate in (f"{name}-{VERSION}", name):
        path = shutil.which(candidate)
        if path and re.search(rf"version {VERSION}\.", subprocess.run([path, "--version"], capture_output=True, text=True).stdout):
            return path
    give_up(f"no {name} {VERSION} here")


def list_files(root, since=None):
    """Files of C++ that differ from a revision, or all that git knows; and new ones that git does not ignore."""
    def ask(*arguments):
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr.strip())
        return done.stdout.splitlines()
    if not since and not (root / ".git").exists():  # sources without their history
        return sorted(path for path in root.rglob("*") if path.suffix in SUFFIXES and not path.relative_to(root).parts[0].startswith("build"))
    known = ask("diff", "--name-only", "--diff-filter=d", since) if since else ask("ls-files")
    names = sorted(set(known + ask("ls-files", "--others", "--exclude-standard")))
    return [root / name for name in names if name.endswith(SUFFIXES) and (root / name).is_file()]


def read_names(paths):
    """Files that somebody named."""
    for path in paths:
        if not path.is_file():
            sys.exit(f"there is no file {path}")
    return [path.resolve() for path in paths]


def get_name(path, root):
    return path.relative_to(root) if path.is_relative_to(root) else path
