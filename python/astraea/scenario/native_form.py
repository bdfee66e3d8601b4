"""Links and flows in the form that the simulator reads: integers, SI units, indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astraea.errors import UserError
from astraea.scenario.flows import Bulk, Flow, OnOff, Sized
from astraea.scenario.links import CoDel, DropTail, FqCoDel, GilbertElliott, Link, Pie, Red
from astraea.scenario.units import MTU, Buffer, format_buffer

if TYPE_CHECKING:
    from astraea.scenario.resolve import FlowPlan


def link(name: str, link: Link, rate: dict[str, Any], delay: dict[str, Any], limit: Any) -> dict[str, Any]:
    """One link; `rate`, `delay` and `limit` have been worked out."""
    reorder = link.reorder
    return {
        "name": name,
        "rate": rate,
        "delay": delay,
        "limit": limit,
        "queue": _queue(name, link, limit),
        "loss": _loss(link),
        "jitter_ns": link.jitter,
        "reorder": {
            "probability": reorder.probability if reorder else 0.0,
            "delay_ns": reorder.delay if reorder else 0,
        },
    }


def _queue(name: str, link: Link, limit: Any) -> dict[str, Any]:
    queue = link.queue
    match queue:
        case DropTail():
            return {"kind": "droptail"}
        case CoDel():
            return {
                "kind": "codel",
                "target_ns": queue.target,
                "interval_ns": queue.interval,
                "ecn": queue.ecn,
            }
        case FqCoDel():
            return {
                "kind": "fq_codel",
                "target_ns": queue.target,
                "interval_ns": queue.interval,
                "flows": queue.flows,
                "quantum": queue.quantum,
                "ecn": queue.ecn,
            }
        case Pie():
            return {
                "kind": "pie",
                "target_ns": queue.target,
                "tupdate_ns": queue.tupdate,
                "alpha": queue.alpha,
                "beta": queue.beta,
                "burst_ns": queue.burst,
                "ecn": queue.ecn,
            }
        case Red():
            return _red(name, queue, link.buffer, limit)


def _red(name: str, queue: Red, buffer: Buffer, limit: Any) -> dict[str, Any]:
    if limit == "infinite":
        raise UserError(f"link.{name}.buffer: red needs a limit; expected e.g. 1bdp")
    size = limit["bytes"] if "bytes" in limit else limit["packets"] * MTU
    least, most = round(queue.min * size), round(queue.max * size)
    if not 0 < least < most:
        shares = f"min {_percent(queue.min)} and max {_percent(queue.max)} of the buffer {format_buffer(buffer)}"
        raise UserError(
            f"link.{name}.queue: {shares} are {least} and {most} bytes; expected 1 byte or more, and max above min"
        )
    return {
        "kind": "red",
        "min_bytes": least,
        "max_bytes": most,
        "max_p": queue.max_p,
        "weight": queue.weight,
        "gentle": queue.gentle,
        "ecn": queue.ecn,
    }


def _percent(share: float) -> str:
    return f"{100 * share:.12g}%"


def _loss(link: Link) -> Any:
    if isinstance(link.loss, GilbertElliott):
        chain = link.loss
        return {
            "gilbert_elliott": {
                "p": chain.enter,
                "r": chain.leave,
                "loss_good": chain.good,
                "loss_bad": chain.bad,
            }
        }
    return {"bernoulli": link.loss} if link.loss > 0 else "none"


def flow(flow: Flow, plan: FlowPlan, extra_delay: int, return_path: list[int]) -> dict[str, Any]:
    """One flow; `plan` has its times, path and scheme, `extra_delay` is in ns."""
    return {
        "scheme": {"name": plan.scheme.name, "params": dict(plan.scheme.params)},
        "start_ns": plan.start_ns,
        "stop_ns": plan.stop_ns,
        "path": list(plan.path),
        "return_path": return_path,
        "extra_delay_ns": extra_delay,
        "source": _source(flow),
        "ack": {
            "every": flow.ack.every,
            "timeout_ns": flow.ack.timeout,
            "aggregate_ns": flow.ack.aggregate,
            "loss": flow.ack.loss,
        },
        "ecn": flow.ecn,
        "burst_ns": flow.burst,
        "period_ns": flow.period,
    }


def _source(flow: Flow) -> Any:
    source = flow.source
    match source:
        case Bulk():
            return "bulk"
        case Sized():
            return {"sized": source.size}
        case OnOff():
            return {"on_off": {"on_ns": source.on, "off_ns": source.off, "exponential": source.exponential}}
        case _:
            return {source.kind: {"every_ns": source.every, "bytes": source.size}}
