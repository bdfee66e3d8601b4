"""What a build by profile (`pgo.sh`) runs to learn where time goes: a little of all roll-outs, and of some schemes."""

import json
import sys
import time
from pathlib import Path

from astraea import _native

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
from rollouts import DOMAINS, round_of
from sim import three_flows

SECONDS = 1.0
"""Of processor time for each domain of the roll-outs."""

for domain in DOMAINS.values():
    round_of(_native.Rollout(json.dumps(domain), "guided", 0.1, threads=1, seed=1), SECONDS, time.process_time)
for scheme in ("astraea", "bbr", "bbr3", "copa", "cubic", "newreno", "vegas"):
    _native.bench(three_flows(scheme), 1)
