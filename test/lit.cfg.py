# Configuration of the lit tests.
#
# Substitutions: %stagec %stagec-opt %stage-trace, %stdlib (the standard library's sources), %utils, %python, %lit, %cmake, %build;
# the tools of this build, FileCheck, not, count and split-file are on the PATH as well. What stands in a folder
# named Inputs is read by tests and is no test itself.
import os
import resource
import shutil
import subprocess
import tempfile

import lit.formats

config.name = "stagec"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".stg", ".test", ".sir"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.stage_binary_dir, "test")

bin_dir = os.path.join(config.stage_binary_dir, "bin")

# A tool that is not built is a command that is not found, hence a failed test.
# `%stagec` comes last: it is the beginning of `%stagec-opt`.
for tool in ["stagec-opt", "stage-trace", "stagec"]:
    config.substitutions.append(("%" + tool + r"\b", os.path.join(bin_dir, tool)))
config.substitutions.append((r"%stdlib\b", os.path.join(config.stage_source_dir, "stdlib")))
config.substitutions.append((r"%utils\b", os.path.join(config.stage_source_dir, "utils")))
# Without what is installed beside it Python starts in a fifth of the time.
config.substitutions.append((r"%python\b", config.stage_python + " -S"))
config.substitutions.append((r"%lit\b", config.stage_lit))
config.substitutions.append((r"%cmake\b", config.stage_cmake))
config.substitutions.append((r"%build\b", config.stage_binary_dir))

config.environment["PATH"] = os.pathsep.join([bin_dir, config.stage_test_tools_dir, config.environment["PATH"]])
# No test reads what another one, or the user, has left in a cache (test/Driver/cache.test has its own).
config.environment["XDG_CACHE_HOME"] = os.devnull
# A variable without `$` ends at the next CHECK-LABEL: no match leaks from one case into another.
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"

# `%limited COMMAND...` runs a command with 2 GB of memory and 20 seconds of CPU, `%brief COMMAND...` one that must do with
# 200 MB and one second.
# `%on-tmpfs FOLDER SIZE COMMAND...` runs a command where FOLDER is a file system of its own in memory, which no other
# process sees. It takes a kernel that lets this user mount: root outside of most containers.
limited = os.path.join(config.test_source_root, "Inputs", "limited.py")
config.substitutions.append(("%limited", config.stage_python + " -IS " + limited))
config.substitutions.append(("%brief", config.stage_python + " -IS " + limited + " --brief"))
on_tmpfs = os.path.join(config.test_source_root, "Inputs", "on-tmpfs")
config.substitutions.append(("%on-tmpfs", on_tmpfs))
with tempfile.TemporaryDirectory() as folder:
    if subprocess.run([on_tmpfs, folder, "64k", "true"], capture_output=True).returncode == 0:
        config.available_features.add("tmpfs")

# What tests of the scripts need beside the tools: utils/nightly, utils/check-format, utils/check-tidy. `astra-sim` is
# its AstraSim_Analytical_Congestion_Unaware by that name, which is no part of a build. `browser`: the site is used in one.
for feature, tools in {
    "git": ["git"], "clang-14": ["clang-format-14", "clang-tidy-14"], "astra-sim": ["astra-sim"],
    "browser": ["chromium"]
}.items():
    if all(shutil.which(tool, path=config.environment["PATH"]) for tool in tools):
        config.available_features.add(feature)

# Long random series run here too: `utils/run-tests --all-cases`.
if "all-cases" in lit_config.params:
    config.available_features.add("all-cases")

# A sanitizer wants more memory than a limit leaves it.
config.available_features.add("sanitizer" if config.stage_sanitize else "not-sanitizer")
if config.stage_sanitize:  # and a stack several times as large
    config.environment["STAGE_SANITIZED"] = "1"
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = 64 << 20
    resource.setrlimit(resource.RLIMIT_STACK, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
