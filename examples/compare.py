"""Compares schemes on the papers' main scenario: means over three trials, with 95 % intervals."""

import astraea

results = astraea.run("three-flows", cc="cubic,newreno", trials=3)
for metric in ("jain", "utilization", "queue_delay_ms", "loss"):
    for scheme, summary in results.summary.items():
        found = summary[metric]
        print(f"{metric:15} {scheme:8} {found['mean']:8.5f} [{found['low']:.5f}, {found['high']:.5f}]")
results.write("out/compare")  # `astraea report out/compare` draws it
