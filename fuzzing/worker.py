"""The child of a campaign: judges cases under a limit of memory, and writes a line of JSON for each."""

from __future__ import annotations

import json
import os
import resource
import sys
import warnings

from fuzzing.campaign import find, generator, verdict_of


def main() -> None:
    """Judge the cases that the command line names: target, seed, first, last."""
    name, seed, first, last = sys.argv[1], *map(int, sys.argv[2:5])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is no answer
    target = find(name)
    warnings.simplefilter("ignore")
    target.warm_up()
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    limit = taken + target.memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(json.dumps({"ready": True}), file=answers)
    for number in range(first, last):
        verdict, what = verdict_of(target, target.make(generator(target.name, seed, number)))
        print(json.dumps({"verdict": verdict, "what": what}), file=answers)


if __name__ == "__main__":
    main()
