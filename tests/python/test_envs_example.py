"""The example that trains an agent: it runs, and the agent learns."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "train_throwaway.py"


def test_throwaway_agent_learns() -> None:
    run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    rewards = [float(reward) for reward in re.findall(r"mean reward (-?\d+)", run.stdout)]
    assert len(rewards) == 5
    # Sending at the drawn rate, between 0.3 and 1.5 of the capacity, is worth about 1300; filling the links 3000.
    assert rewards[-1] > 1.5 * rewards[0]
