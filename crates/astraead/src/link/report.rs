//! What the link did, as JSON.

use astraea_emu::Report;
use serde_json::{Map, Value, json};

use super::options::DIRECTIONS;

/// Times in µs and ms, sizes in bytes, shares of one core.
pub(super) fn json(report: &mut Report) -> Value {
    let mut links = Map::new();
    for (index, name) in DIRECTIONS.into_iter().enumerate() {
        let stats = report.link_stats(index);
        let mean = (stats.served > 0).then(|| stats.wait_sum as f64 / stats.served as f64 / 1e6);
        let link = json!({
            "offered_packets": stats.offered,
            "served_packets": stats.served,
            "served_bytes": stats.served_bytes,
            "dropped_packets": stats.dropped,
            "lost_packets": stats.lost,
            "marked_packets": stats.marked,
            "queue_delay_mean_ms": mean,
            "queue_delay_p95_ms": stats.waits.quantile(0.95).map(|wait| wait / 1e6),
        });
        links.insert(name.to_owned(), link);
    }
    let late = |share| report.lateness.quantile(share).map(|late| late / 1e3);
    json!({
        "links": links,
        "packets": report.lateness.total(),
        "late_us": {"p50": late(0.5), "p99": late(0.99), "p99.9": late(0.999), "max": late(1.0)},
        "unfaithful": report.problems(),
        "realtime": report.realtime,
        "elapsed_s": report.elapsed_ns as f64 / 1e9,
        "cpu_share": report.cpu_ns as f64 / report.elapsed_ns.max(1) as f64,
        "wakeups": report.wakeups,
        "device_dropped_packets": report.device_dropped,
        "on_the_way_packets": report.on_the_way,
    })
}
