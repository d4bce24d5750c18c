"""Targets with faults of every kind, to see that a campaign finds them."""

import ctypes
import time

import numpy as np
from attack.campaign import Refused, Target, Unclear, Wrong

from rankrls import InputError


def judge(case):
    what = case.decode()
    if what == "hang":
        time.sleep(600)
    elif what == "abort":
        ctypes.string_at(1)
    elif what == "memory":
        np.ones(1 << 30)
    elif what == "error":
        raise InputError("alpha is wrong.", parameter="alpha")
    elif what == "refused":
        raise Refused
    elif what == "wrong":
        raise Wrong("1 and 2")
    elif what == "unclear":
        raise Unclear("who knows")


CASES = ["read", "hang", "refused", "abort", "wrong", "memory", "error", "unclear", "read"]


def make(rng):
    return str(CASES[rng.bit_generator.seed_seq.entropy[2] % len(CASES)]).encode()


TARGET = Target("planted", make, judge, seconds=2.0, memory=1 << 30)
