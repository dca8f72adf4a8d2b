"""What the compiler reports of models of the library: shared by the scripts that hold it against published figures."""
import json
import os
import subprocess


def report_steps(stagec, scratch, modules, models):
    """The report of a step of each model, by its name; its message instead of a model that is refused.

    `modules` of the library are imported; `models` are names, each with the model of a config and the arguments of its step."""
    os.makedirs(scratch, exist_ok=True)
    program = os.path.join(scratch, "jobs.stg")
    with open(program, "w") as file:
        for module in modules:
            print(f"import std.{module};", file=file)
        for name, (model, step) in models.items():
            print(f"job {name}_step {{ model = {model}; step = train({step}, microbatch = 4, optimizer = adamw); "
                  "precision = bf16_mixed; }", file=file)
    for name in models:
        done = subprocess.run([stagec, program, f"--job={name}_step", "--report=json"], capture_output=True, text=True)
        yield name, done.stderr if done.returncode else json.loads(done.stdout)
