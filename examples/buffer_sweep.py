"""How large a buffer CUBIC needs, and how long it then waits: one flow, 1/8 to 4 bandwidth-delay products."""

import astraea

for buffer in (0.125, 0.25, 0.5, 1, 2, 4):
    settings = {"link.bottleneck.buffer": f"{buffer}bdp", "flow.count": 1, "flow.start": "0s"}
    metrics = astraea.run("three-flows", cc="cubic", settings=settings, trials=1).trials[0]["metrics"]
    print(
        f"{buffer:5} bdp: {metrics['utilization']:6.1%} of the link, {metrics['queue_delay_ms']:5.1f} ms in the queue"
    )
