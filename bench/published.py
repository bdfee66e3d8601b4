"""Do the published behaviours come out? `python bench/published.py [--trials N] [--only NAME,...] [--json FILE]`.

Each statement is one that the Astraea paper (Liao et al., EuroSys 2024) makes about another scheme, or that of Aurora
(Jay et al., ICML 2019), MOCC (Ma et al., EuroSys 2022), Antelope (Zhou et al., ICNP 2021) or HACC (Peng et al.) about
its own, measured in the simulator in the paper's setting. What is printed is a table: what was published, what was
measured, and whether the statement holds by the bound that is written beside it here. Metrics are those of
docs/metrics.md, as means over trials. With `--orca FILE` what is said of Orca is measured with the policy in that file.
"""

import argparse
import functools
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

import astraea
from astraea import _native
from astraea.errors import UserError
from astraea.eval import registry


@dataclass(frozen=True)
class Finding:
    """One statement and what became of it."""

    statement: str
    published: str
    measured: str
    holds: bool
    bound: str


@functools.cache
def points(scenario: str, schemes: str, trials: int, settings: tuple[tuple[str, Any], ...]) -> list[dict[str, Any]]:
    """The summary at each point of a scenario's sweep."""
    results = astraea.run(scenario, schemes, settings=dict(settings), trials=trials).content
    return [point["summary"] for point in results["points"]] or [results["summary"]]


def means(scenario: str, schemes: str, metric: str, trials: int, **settings: Any) -> dict[str, list[float]]:
    """Mean of a metric at each point of a scenario's sweep, by scheme; `__` in the name of a setting is a dot."""
    changed = tuple((key.replace("__", "."), value) for key, value in settings.items())
    found = points(scenario, schemes, trials, changed)
    return {cc: [point[cc][metric]["mean"] for point in found] for cc in registry.split([schemes])}


def alone(scenario: str, schemes: str, metric: str, trials: int) -> dict[str, float]:
    """Mean of a metric in a scenario that has one point, by scheme."""
    return {cc: values[0] for cc, values in means(scenario, schemes, metric, trials).items()}


def listed(values: list[float], form: str = "{:.2f}") -> str:
    """Numbers as text."""
    return ", ".join(form.format(value) for value in values)


def friendliness(trials: int) -> Iterator[Finding]:
    """Figure 14: one flow beside 1, 2, 3, 4, 5, 6, 8 and 10 CUBIC flows, 100 Mbit/s, 30 ms, 1 BDP."""
    ratio = means("friendliness", "bbr,bbr3,vivace", "throughput_ratio", trials)
    yield Finding(
        "BBR takes 10 times and more of a CUBIC flow's throughput (fig. 14)",
        "10 to 60 (with Aurora)",
        listed(ratio["bbr"], "{:.1f}"),
        max(ratio["bbr"]) >= 10,
        "10 with some number of flows",
    )
    four: dict[str, Any] = {"flow__competitors__count": 4}
    shallow = {
        buffer: means("friendliness", "bbr", "throughput_ratio", trials, link__bottleneck__buffer=buffer, **four)[
            "bbr"
        ][0]
        for buffer in ("0.1bdp", "0.3bdp", "0.5bdp", "2bdp")
    }
    yield Finding(
        "… because the buffer decides: with 4 CUBIC flows and a buffer of 0.1, 0.3, 0.5, 2 BDP",
        "",
        listed(list(shallow.values()), "{:.1f}"),
        shallow["0.1bdp"] >= 10 > shallow["2bdp"],
        "10 at 0.1 BDP, less at 2 BDP",
    )
    yield Finding(
        "BBRv3 coexists with CUBIC better than BBR",
        "draft-ietf-ccwg-bbr",
        listed(ratio["bbr3"], "{:.1f}"),
        all(three < one for three, one in zip(ratio["bbr3"], ratio["bbr"], strict=True)),
        "less than BBR beside any number of flows",
    )
    yield Finding(
        "Vivace yields to CUBIC (fig. 14)",
        "below 1",
        listed(ratio["vivace"], "{:.3f}"),
        max(ratio["vivace"]) < 0.5,
        "0.5 at most",
    )


def convergence(trials: int) -> Iterator[Finding]:
    """Figures 6 and 12: three flows 40 s apart, 100 Mbit/s, 30 ms, 1 BDP."""
    schemes = "vivace,copa,cubic,vegas"
    first = alone("three-flows", schemes, "convergence_first_s", trials)
    yield Finding(
        "Vivace takes 3.4 s to converge at 30 ms (fig. 12)",
        "3.44 s",
        f"{first['vivace']:.2f} s",
        2 <= first["vivace"] <= 7,
        "2 to 7 s",
    )
    yield Finding(
        "Copa reacts fast (fig. 6, 12)",
        "comparable with 0.41 s",
        f"{first['copa']:.2f} s, Vivace {first['vivace']:.2f} s, CUBIC {first['cubic']:.2f} s",
        first["copa"] < first["vivace"],
        "faster than Vivace",
    )
    spread = alone("three-flows", schemes, "stability_mbps", trials)
    yield Finding(
        "… and oscillates",
        "visible in fig. 6",
        f"{spread['copa']:.1f} Mbit/s, Vivace {spread['vivace']:.1f}, Vegas {spread['vegas']:.1f}",
        spread["copa"] > 5 and spread["copa"] > spread["vivace"],
        "5 Mbit/s, and more than Vivace",
    )
    wait = alone("three-flows", schemes, "queue_delay_ms", trials)
    yield Finding(
        "Vegas and Copa keep the delay low (fig. 19, 21)",
        "low",
        f"{wait['vegas']:.1f} and {wait['copa']:.1f} ms in the queue, CUBIC {wait['cubic']:.1f}",
        max(wait["vegas"], wait["copa"]) < 0.2 * wait["cubic"],
        "a fifth of CUBIC's",
    )


def vivace(trials: int) -> Iterator[Finding]:
    """Figures 1b and 2: three flows 40 s apart, 100 Mbit/s, 1 BDP, at 120 ms and at 12 ms."""
    plain, twice, five = "vivace", "vivace:factor=2", "vivace:factor=5"
    first, settle, jain = (
        means("vivace-tuned", f"{plain},{twice},{five}", metric, trials)
        for metric in ("convergence_first_s", "convergence_settle_s", "jain")
    )
    yield Finding(
        "Vivace hardly reaches its fair share at 120 ms (fig. 1b)",
        "not before the flows end",
        f"after {first[plain][0]:.0f} s of 40, Jain {jain[plain][0]:.2f} "
        f"(at 12 ms {first[plain][1]:.1f} s, {jain[plain][1]:.2f})",
        first[plain][0] > 3 * first[plain][1] and jain[plain][0] < 0.9,
        "three times as long as at 12 ms, Jain below 0.9",
    )
    yield Finding(
        "a larger conversion factor makes it faster there (fig. 2a)",
        "quick and fair",
        f"twice the factor: {first[twice][0]:.0f} s, Jain {jain[twice][0]:.2f}",
        first[twice][0] < first[plain][0] and jain[twice][0] > jain[plain][0],
        "faster and fairer than with the default",
    )
    yield Finding(
        "… and unstable at 12 ms (fig. 2b)",
        "hardly converges",
        f"five times the factor: settles after {settle[five][1]:.1f} s instead of {settle[plain][1]:.1f} s, "
        f"Jain {jain[five][1]:.2f} instead of {jain[plain][1]:.2f}",
        settle[five][1] > 1.5 * settle[plain][1] and jain[five][1] < jain[plain][1],
        "half as long again, and less fair than with the default",
    )
    yield Finding(
        "… with one and the same factor",
        "enlarged properly",
        f"twice the factor: settles after {settle[twice][1]:.1f} s at 12 ms; "
        f"five times: Jain {jain[five][0]:.2f} at 120 ms",
        any(jain[cc][0] > jain[plain][0] and settle[cc][1] > 1.5 * settle[plain][1] for cc in (twice, five)),
        "both of the above",
    )


def satellite(trials: int) -> Iterator[Finding]:
    """Figure 20: 42 Mbit/s, 800 ms, 1 BDP, 0.74 % random loss, 100 s."""
    found = means("satellite", "cubic,vegas,vivace,copa,bbr,bbr3,allegro", "utilization", trials)
    used = {cc: 100 * values[0] for cc, values in found.items()}
    yield Finding(
        "CUBIC and Vegas collapse on the satellite link (fig. 20)",
        "low throughput",
        f"{used['cubic']:.1f} and {used['vegas']:.1f} % of the link",
        max(used["cubic"], used["vegas"]) < 10,
        "10 % at most",
    )
    for cc, title in {"vivace": "Vivace", "copa": "Copa", "bbr": "BBR", "bbr3": "BBRv3", "allegro": "Allegro"}.items():
        yield Finding(
            f"… {title} holds" if cc in ("vivace", "copa", "bbr") else f"… {title}, not in the paper",
            "high throughput" if cc in ("vivace", "copa", "bbr") else "",
            f"{used[cc]:.1f} % of the link",
            used[cc] > 10 * used["cubic"],
            "ten times CUBIC's",
        )


def cellular(trials: int) -> Iterator[Finding]:
    """Figures 13 and 21: a cellular trace, 40 ms, a deep buffer."""
    schemes = "vivace,copa,vegas,cubic"
    inflation = alone("cellular", schemes, "rtt_inflation", trials)
    used = {cc: 100 * v[0] for cc, v in means("cellular", schemes, "utilization", trials).items()}
    yield Finding(
        "Copa and Vegas have low delay and utilization on a cellular link (fig. 21)",
        "low delay, less utilization",
        f"RTT x {inflation['copa']:.1f} and {inflation['vegas']:.1f}, {used['copa']:.0f} and {used['vegas']:.0f} %; "
        f"CUBIC x {inflation['cubic']:.1f}, {used['cubic']:.0f} %",
        max(inflation["copa"], inflation["vegas"]) < 0.5 * inflation["cubic"]
        and max(used["copa"], used["vegas"]) < used["cubic"],
        "half of CUBIC's delay, less utilization",
    )
    yield Finding(
        "Vivace does not follow a cellular link: high delay (fig. 13, 21)",
        "high throughput, high delay",
        f"RTT x {inflation['vivace']:.1f}, {used['vivace']:.0f} %",
        inflation["vivace"] > 2 * inflation["copa"],
        "twice Copa's delay",
    )


def aurora(trials: int) -> Iterator[Finding]:
    """What the Astraea paper says of Aurora in figures 1a, 14 and 19."""
    series = astraea.run("aurora-unfair", "aurora", trials=trials).series
    # All three are there from 80 to 120 s.
    rates = series.filter(pl.col("t").is_between(85, 115)).group_by("flow").agg(pl.col("throughput").mean())
    first = rates.filter(pl.col("flow") == 0)["throughput"].item() / rates["throughput"].sum()
    yield Finding(
        "Aurora lets no other flow have a share (fig. 1a)",
        "the first of three keeps the link",
        f"{100 * first:.0f} % for the first while all are there",
        first > 2 / 3,
        "twice the others' together",
    )
    ratio = means("friendliness", "aurora", "throughput_ratio", trials)["aurora"]
    yield Finding(
        "Aurora takes 10 to 60 times a CUBIC flow's throughput (fig. 14)",
        "10 to 60 (with BBR)",
        listed(ratio, "{:.0f}"),
        min(ratio) >= 10,
        "10 with any number of flows",
    )
    utilization, queue = (
        means("buffers", "aurora,cubic", metric, trials) for metric in ("utilization", "queue_delay_ms")
    )
    yield Finding(
        "Aurora's latency grows with the buffer (fig. 19)",
        "full link from 0.1 BDP, delay with the buffer",
        f"{100 * min(utilization['aurora'][1:]):.0f} % at least, {listed(queue['aurora'], '{:.0f}')} ms in the queue",
        min(utilization["aurora"][1:]) > 0.9 and queue["aurora"][-1] > 10 * queue["aurora"][2],
        "90 % from the second buffer on, at 16 BDP ten times the queue of the third buffer",
    )


def aurora_alone(trials: int) -> Iterator[Finding]:
    """What Aurora's own paper says of it in figures 2, 3, 6 and 7."""
    schemes = "aurora,cubic,vivace,copa,bbr,remy"
    used, wait = (
        means("aurora-sensitivity", "aurora,cubic,vivace", m, trials) for m in ("utilization", "queue_delay_ms")
    )
    rates, delays, queues, losses = slice(0, 8), slice(8, 18), slice(18, 23), slice(23, 32)
    yield Finding(
        "Aurora fills links of 1 to 128 Mbit/s (Aurora fig. 6a)",
        "near-perfect utilization",
        f"{listed([100 * u for u in used['aurora'][rates]], '{:.0f}')} %",
        min(used["aurora"][rates]) > 0.9,
        "90 % of each",
    )
    yield Finding(
        "… with latency far below TCP's",
        "far below TCP, comparable to Vivace",
        f"{listed(wait['aurora'][rates], '{:.0f}')} ms in the queue, CUBIC {listed(wait['cubic'][rates], '{:.0f}')}",
        all(2 * own < other for own, other in zip(wait["aurora"][rates], wait["cubic"][rates], strict=True)),
        "half of CUBIC's on each",
    )
    yield Finding(
        "… of 1 to 512 ms (fig. 6b)",
        "all but 1 ms",
        f"{listed([100 * u for u in used['aurora'][delays]], '{:.0f}')} %",
        min(used["aurora"][delays][1:]) > 0.9,
        "90 % from 2 ms on",
    )
    yield Finding(
        "… with queues of 1 to 10 000 packets (fig. 6c)",
        "as Vivace, far above CUBIC",
        f"{listed([100 * u for u in used['aurora'][queues]], '{:.0f}')} %, "
        f"Vivace {listed([100 * u for u in used['vivace'][queues]], '{:.0f}')}, "
        f"CUBIC {listed([100 * u for u in used['cubic'][queues]], '{:.0f}')}",
        min(used["aurora"][queues]) > min(used["cubic"][queues]),
        "more than CUBIC with the shortest",
    )
    yield Finding(
        "… and near capacity at higher loss than the others (fig. 6d)",
        "near capacity up to 8 %",
        f"at 0 to 8 %: {listed([100 * u for u in used['aurora'][losses]], '{:.0f}')} %, "
        f"Vivace {listed([100 * u for u in used['vivace'][losses]], '{:.0f}')}",
        used["aurora"][losses][5] > 0.85 and used["aurora"][losses][8] > used["vivace"][losses][8],
        "85 % at 5 % loss, more than Vivace at 8 %",
    )
    used, wait = (means("dynamic-link", schemes, metric, trials) for metric in ("utilization", "queue_delay_ms"))
    lossy, alternating, redrawn = ({cc: 100 * used[cc][index] for cc in used} for index in range(3))
    yield Finding(
        "Aurora holds a link with 1 % loss and 10 packets of buffer (Aurora fig. 2)",
        "near capacity, CUBIC far below",
        f"{lossy['aurora']:.0f} %, CUBIC {lossy['cubic']:.0f}",
        lossy["aurora"] > 85 and lossy["aurora"] > 1.5 * lossy["cubic"],
        "85 %, and half as much again as CUBIC",
    )
    yield Finding(
        "… follows one that alternates (fig. 3)",
        "near capacity",
        f"{alternating['aurora']:.0f} %",
        alternating["aurora"] > 85,
        "85 %",
    )
    last = {cc: wait[cc][2] for cc in wait}
    yield Finding(
        "… and on a link that is redrawn has more than Copa, Vivace and Remy, with less delay than BBR (fig. 7)",
        "Copa + 4.2 %, latency + 16 %",
        f"{redrawn['aurora']:.0f} %, {last['aurora']:.0f} ms in the queue; "
        + ", ".join(f"{cc} {redrawn[cc]:.0f} and {last[cc]:.0f}" for cc in ("copa", "vivace", "remy", "bbr")),
        all(redrawn["aurora"] > redrawn[cc] for cc in ("copa", "vivace", "remy")) and last["aurora"] < last["bbr"],
        "all of it",
    )


def orca(trials: int, cc: str = "orca") -> Iterator[Finding]:
    """What the Astraea paper says of Orca in figures 6, 8, 12, 19 and 20; `cc` is the scheme or a policy in a file."""
    first, spread = (
        alone("three-flows", f"{cc},cubic,vivace", metric, trials)
        for metric in ("convergence_first_s", "stability_mbps")
    )
    yield Finding(
        "Orca converges faster than Vivace (fig. 12)",
        "1.5 s, Vivace 3.4",
        f"{first[cc]:.1f} s, Vivace {first['vivace']:.1f}",
        first[cc] < first["vivace"],
        "faster than Vivace",
    )
    yield Finding(
        "… and is steadier than CUBIC (fig. 6)",
        "5.5 Mbit/s",
        f"{spread[cc]:.1f} Mbit/s, CUBIC {spread['cubic']:.1f}",
        spread[cc] < spread["cubic"],
        "less than CUBIC",
    )
    used, wait, loss = (
        means("buffers", f"{cc},cubic", metric, trials) for metric in ("utilization", "queue_delay_ms", "loss")
    )
    percent = [100 * share for share in used[cc]]
    yield Finding(
        "Orca needs a buffer of 0.8 BDP for a full link (fig. 19a)",
        "high utilization from 0.8 BDP on",
        f"{listed(percent, '{:.0f}')} % with 0.05 to 16 BDP",
        percent[0] < 90 and min(percent[4:]) > 95,
        "below 90 % with the smallest, above 95 % from 0.8 BDP on",
    )
    yield Finding(
        "… has much delay in buffers of more than 4 BDP (fig. 19b)",
        "dominated by CUBIC there",
        f"{listed(wait[cc], '{:.0f}')} ms in the queue",
        wait[cc][-1] > 4 * wait[cc][5],
        "at 16 BDP four times that at 1 BDP",
    )
    pairs = list(zip(loss[cc][:7], loss["cubic"][:7], strict=True))
    yield Finding(
        "… and loses more than CUBIC in smaller ones (fig. 19c)",
        "more below 4 BDP",
        f"{listed([100 * own for own, _ in pairs])} % with 0.05 to 2 BDP, CUBIC {listed([100 * c for _, c in pairs])}",
        all(own > cubic for own, cubic in pairs),
        "more with each",
    )
    share = alone("satellite", f"{cc},cubic", "utilization", trials)
    yield Finding(
        "Orca does as CUBIC does on the satellite link (fig. 20)",
        "similar",
        f"{100 * share[cc]:.1f} % of the link, CUBIC {100 * share['cubic']:.1f}",
        0.5 < share[cc] / share["cubic"] < 2,
        "half to twice CUBIC's",
    )
    jain = alone("rtt-fairness", f"{cc},astraea", "jain", trials)
    yield Finding(
        "Orca is less fair to different round-trip times than Astraea (fig. 8)",
        "less fair",
        f"Jain {jain[cc]:.2f}, Astraea {jain['astraea']:.2f}",
        jain[cc] < jain["astraea"],
        "below Astraea",
    )


def mocc(trials: int) -> Iterator[Finding]:
    """What the abstract of MOCC's paper says of it, but for how soon it learns of a new objective while it runs."""
    throughput, latency = (f"mocc:throughput={t},latency={d},loss=0.1" for t, d in ((0.8, 0.1), (0.1, 0.8)))
    others = ("aurora", "bbr", "copa", "cubic", "vegas", "vivace")
    schemes = ",".join((throughput, latency, *others))
    used, rtt = (means("aurora-sensitivity", schemes, m, trials) for m in ("utilization", "rtt_inflation"))
    mean_used, mean_rtt = ({cc: statistics.fmean(of[cc]) for cc in of} for of in (used, rtt))
    heeded = [
        used[throughput][link] > used[latency][link] and rtt[throughput][link] > rtt[latency][link]
        for link in range(len(used[latency]))
    ]
    yield Finding(
        "One policy of MOCC's serves different objectives (abstract)",
        "supports multi-objective",
        f"weights .8, .1, .1: {100 * mean_used[throughput]:.0f} % and RTT x {mean_rtt[throughput]:.2f}; .1, .8, .1: "
        f"{100 * mean_used[latency]:.0f} % and x {mean_rtt[latency]:.3f}; so on {sum(heeded)} of {len(heeded)} links",
        sum(heeded) >= 0.9 * len(heeded),
        "more throughput, and a longer RTT, with the former weights on nine links of ten",
    )
    best = max(others, key=mean_used.__getitem__)
    yield Finding(
        "… competes with the best in throughput",
        "competes with or outperforms the best on individual objectives",
        f"{100 * mean_used[throughput]:.1f} % in the mean of {len(heeded)} links; {best} {100 * mean_used[best]:.1f}",
        mean_used[throughput] > 0.98 * mean_used[best],
        "98 % of the best of " + ", ".join(others),
    )
    best = min(others, key=mean_rtt.__getitem__)
    yield Finding(
        "… and in latency",
        "likewise",
        f"RTT x {mean_rtt[latency]:.3f}, {best} {mean_rtt[best]:.3f}",
        mean_rtt[latency] - 1 < 1.02 * (mean_rtt[best] - 1),
        "a queue no longer than the shortest of theirs, by 2 %",
    )


def selectors(trials: int) -> Iterator[Finding]:
    """What the abstract of Antelope's paper says of it, and figure 2 of HACC's of both."""
    schemes = "antelope,hacc,bbr,cubic,newreno"
    used, rtt = (
        {
            cc: means("aurora-sensitivity", schemes, metric, trials)[cc]
            + means("cellular", schemes, metric, trials)[cc]
            for cc in schemes.split(",")
        }
        for metric in ("utilization", "rtt_inflation")
    )

    def over(values: dict[str, list[float]], other: str) -> float:
        """Mean ratio of Antelope's values to another scheme's."""
        return statistics.fmean(own / its for own, its in zip(values["antelope"], values[other], strict=True))

    for other, published in (("bbr", 16), ("cubic", 19)):
        name = {"bbr": "BBR", "cubic": "CUBIC"}[other]
        yield Finding(
            f"Antelope has more throughput than {name} (abstract)",
            f"{published} % more on average, in WANs, data centers and cellular networks",
            f"{100 * (over(used, other) - 1):+.0f} % in the mean of {len(used[other])} links of one flow",
            over(used, other) > 1 + published / 200,
            "half of that",
        )
    yield Finding(
        "… with less delay than CUBIC",
        "10 % less",
        f"{100 * (over(rtt, 'cubic') - 1):+.0f} % of the round-trip time, there",
        over(rtt, "cubic") < 0.95,
        "half of that",
    )
    times = means("fct", schemes, "fct_s", trials)
    gains = {cc: values[0] / times["hacc"][0] - 1 for cc, values in times.items() if cc != "hacc"}
    yield Finding(
        "HACC has more throughput than CUBIC, NewReno, BBR and Antelope (HACC fig. 2)",
        "47, 35, 23 and 8 % more",
        ", ".join(f"{100 * gains[cc]:+.0f} %" for cc in ("cubic", "newreno", "bbr", "antelope"))
        + " for requests of 10 MB",
        min(gains.values()) > 0,
        "more than each",
    )
    first = {cc: 1000 * values[1] for cc, values in times.items()}
    yield Finding(
        "Antelope is worse than CUBIC and BBR with short flows (HACC fig. 2)",
        "worse than both",
        f"{first['antelope']:.2f} ms for 1 MB, CUBIC {first['cubic']:.2f}, BBR {first['bbr']:.2f}",
        first["antelope"] > 1.01 * max(first["cubic"], first["bbr"]),
        "by a hundredth longer than with both",
    )


GROUPS: dict[str, Callable[[int], Iterator[Finding]]] = {
    "friendliness": friendliness,
    "convergence": convergence,
    "vivace": vivace,
    "satellite": satellite,
    "cellular": cellular,
    "aurora": aurora,
    "aurora-alone": aurora_alone,
    "mocc": mocc,
    "orca": orca,
    "selectors": selectors,
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measures the published behaviours of the schemes.")
    parser.add_argument("--trials", type=int, default=10, metavar="N", help="trials of each setting (default 10)")
    parser.add_argument("--only", metavar="NAME,...", help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--orca", metavar="FILE", help="another policy of Orca's for its statements, NAME.orca")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured to a file")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(GROUPS)
    if unknown := [name for name in names if name not in GROUPS]:
        print(f"published.py: unknown group {unknown[0]!r}; expected some of {', '.join(GROUPS)}", file=sys.stderr)
        raise SystemExit(2)
    if options.orca and "orca" not in names:
        print("published.py: --orca: expected orca among the groups of --only", file=sys.stderr)
        raise SystemExit(2)
    try:
        registry.scheme(options.orca or "orca")
    except UserError as error:
        print(f"published.py: --orca: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    groups = GROUPS | ({"orca": functools.partial(orca, cc=options.orca)} if options.orca else {})
    findings: list[Finding] = []
    print("| statement | published | measured | holds if | |\n| --- | --- | --- | --- | --- |")
    for name in names:
        for finding in groups[name](options.trials):
            findings.append(finding)
            verdict = "yes" if finding.holds else "**no**"
            cells = (finding.statement, finding.published, finding.measured, finding.bound, verdict)
            print(f"| {' | '.join(cells)} |", flush=True)
    if options.json:
        content = {
            "command": f"bench/published.py --trials {options.trials}"
            + (f" --only {options.only}" if options.only else "")
            + (f" --orca {options.orca}" if options.orca else ""),
            "astraea": _native.__version__,
            "findings": [asdict(finding) for finding in findings],
        }
        options.json.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
