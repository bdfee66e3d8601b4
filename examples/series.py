"""Reads the files of a run: goodput of each flow in Mbit/s, every ten seconds, beside its mean over the flow's life."""

import json
from pathlib import Path

import polars as pl

import astraea

astraea.run("three-flows", cc="cubic", trials=1).write("out/series")
tenths = (pl.col("t") // 10 * 10).cast(int).alias("s")
series = pl.read_parquet("out/series/series.parquet").group_by(tenths, "flow").agg(pl.col("throughput").mean())
with pl.Config(tbl_rows=-1, float_precision=1):
    print(series.sort("s", "flow").pivot("flow", index="s", values="throughput"))
for flow in json.loads(Path("out/series/results.json").read_text())["trials"][0]["flows"]:
    print(f"flow {flow['flow']}: {flow['throughput_mbps']:.1f} Mbit/s")
