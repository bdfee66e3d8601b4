//! A mesh does what the simulator's link does, however its clock is driven.

use proptest::prelude::*;

use super::*;
use crate::link::Link;
use crate::network::stream_seed;

const SEED: u64 = 3;
const DELAY: Nanos = 2_000_000;

fn link(rate: &str, queue: &str, limit: &str) -> LinkConfig {
    let json = format!(
        r#"{{"name": "a", "rate": {rate}, "delay": {{"constant": {DELAY}}}, "limit": {limit}, "queue": {queue},
            "loss": {{"bernoulli": 0.02}}}}"#
    );
    serde_json::from_str(&json).unwrap()
}

/// What became of each packet: the time of its departure and whether it was marked, or nothing.
type Fates = Vec<Option<(Nanos, bool)>>;

fn account() -> Account {
    Account { recorder: None, gone: Vec::new() }
}

fn parcel(id: usize, size: u32, flow: u32) -> Parcel {
    Parcel { flow, ecn_capable: flow == 0, ..Parcel::new(id as u32, 0, size) }
}

/// The simulator's link, driven event by event.
fn by_link(config: &LinkConfig, arrivals: &[(Nanos, u32, u32)]) -> Fates {
    let mut link = Link::new(0, config, config.rate.build().unwrap(), stream_seed(SEED, 0));
    let mut books = account();
    let mut fates = vec![None; arrivals.len()];
    let mut service = None;
    let serve_until = |link: &mut Link<Parcel>, service: &mut Option<Nanos>, fates: &mut Fates, until: Nanos| {
        while let Some(at) = service.filter(|at| *at <= until) {
            if let Some((packet, departure)) = link.serve(at, &mut account()) {
                fates[packet.id as usize] = Some((departure, packet.marked));
            }
            *service = link.schedule_service(at);
        }
    };
    for (id, &(at, size, flow)) in arrivals.iter().enumerate() {
        serve_until(&mut link, &mut service, &mut fates, at);
        match link.offer(at, parcel(id, size, flow), &mut books) {
            Offer::Departs(departure) => fates[id] = Some((departure, false)),
            Offer::Served(packet, departure) => fates[id] = Some((departure, packet.marked)),
            Offer::Queued => service = link.schedule_service(at).or(service),
            Offer::Gone => {}
        }
    }
    serve_until(&mut link, &mut service, &mut fates, Nanos::MAX);
    fates
}

/// The mesh, whose clock moves on in steps of `tick` ns, and with each arrival.
fn by_mesh(config: &LinkConfig, arrivals: &[(Nanos, u32, u32)], tick: Nanos) -> (Fates, usize) {
    let path = Path { links: vec![0], ..Path::default() };
    let mut mesh = Mesh::new(std::slice::from_ref(config), &[path], 0, 0, SEED).unwrap();
    let mut fates = vec![None; arrivals.len()];
    let mut gone = 0;
    let mut now = 0;
    let mut step = |mesh: &mut Mesh, to: Nanos| {
        mesh.advance(to, |due, parcel| fates[parcel.id as usize] = Some((due - DELAY, parcel.marked)));
        gone += mesh.take_gone().count();
    };
    for (id, &(at, size, flow)) in arrivals.iter().enumerate() {
        while now + tick < at {
            now += tick;
            step(&mut mesh, now);
        }
        step(&mut mesh, at);
        mesh.offer(at, parcel(id, size, flow));
    }
    while let Some(next) = mesh.next_event() {
        now = now.max(next) + tick;
        step(&mut mesh, now);
    }
    step(&mut mesh, now);
    (fates, gone)
}

fn arrivals() -> impl Strategy<Value = Vec<(Nanos, u32, u32)>> {
    let gap = prop_oneof![4 => Just(0_u64), 4 => 0_u64..400_000, 1 => 0_u64..20_000_000];
    prop::collection::vec((gap, 40_u32..=1500, 0_u32..3), 1..400).prop_map(|packets| {
        let mut now = 0;
        let at = packets.into_iter().map(|(gap, size, flow)| {
            now += gap;
            (now, size, flow)
        });
        at.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_mesh_drops_marks_and_delays_as_the_simulators_link(arrivals in arrivals(), tick in 1_000_u64..3_000_000) {
        for queue in [
            r#"{"kind": "droptail"}"#,
            r#"{"kind": "codel", "target_ns": 500000, "interval_ns": 2000000, "ecn": true}"#,
            r#"{"kind": "fq_codel", "target_ns": 500000, "interval_ns": 2000000}"#,
            r#"{"kind": "pie", "target_ns": 1000000, "tupdate_ns": 1000000, "burst_ns": 0, "ecn": true}"#,
            r#"{"kind": "red", "min_bytes": 3000, "max_bytes": 9000, "weight": 0.1}"#,
        ] {
            for rate in [r#"{"constant": 5e7}"#, r#"{"schedule": [[0, 8e7], [3000000, 1e7]], "repeat_ns": 6000000}"#] {
                let config = link(rate, queue, r#"{"bytes": 20000}"#);
                let expected = by_link(&config, &arrivals);
                let (fates, gone) = by_mesh(&config, &arrivals, tick);
                prop_assert_eq!(gone, expected.iter().filter(|fate| fate.is_none()).count());
                prop_assert_eq!(fates, expected, "{} at {}", queue, rate);
            }
        }
    }
}

fn through(links: &[LinkConfig], path: Path, sizes: &[u32]) -> (Vec<(Nanos, u32)>, Mesh) {
    let mut mesh = Mesh::new(links, &[path], 1_000_000, 100_000_000, SEED).unwrap();
    mesh.keep_log();
    for (id, &size) in sizes.iter().enumerate() {
        let mut parcel = Parcel::new(id as u32, 0, size);
        parcel.payload = size - 52;
        mesh.offer(0, parcel);
    }
    let mut delivered = Vec::new();
    mesh.advance(1_000_000_000, |due, parcel| delivered.push((due, parcel.id)));
    (delivered, mesh)
}

fn plain(mbps: u32, limit: &str) -> LinkConfig {
    let json = format!(
        r#"{{"name": "a", "rate": {{"constant": {mbps}e6}}, "delay": {{"constant": {DELAY}}}, "limit": {limit}}}"#
    );
    serde_json::from_str(&json).unwrap()
}

#[test]
fn delays_of_links_and_path_add_up() {
    // 1500 bytes take 120 us at 100 Mbit/s and 240 us at 50.
    let links = [plain(100, r#""infinite""#), plain(50, r#""infinite""#)];
    let path = Path { links: vec![0, 1], delay_of: vec![], extra_ns: 7 };
    let (delivered, mut mesh) = through(&links, path, &[1500, 1500]);
    assert_eq!(delivered, [(120_000 + 240_000 + 2 * DELAY + 7, 0), (120_000 + 480_000 + 2 * DELAY + 7, 1)]);
    assert_eq!(mesh.link_stats(1).waits.total(), 2);
    assert_eq!(mesh.link_stats(1).wait_sum, 120_000);
    let stats = PathStats { offered: 2, gone: 0, departed: 2, departed_bytes: 2896 };
    assert_eq!(mesh.path_stats(0), stats);
    let series = mesh.recorder().unwrap();
    assert_eq!(series.link(0)[0].served_bytes, 3000);
    // The last link's service ends at 2.36 and 2.6 ms.
    assert_eq!(series.flow(0).iter().map(|slot| slot.delivered).collect::<Vec<_>>(), [0, 0, 2896]);
}

#[test]
fn a_way_back_without_links_has_their_delays() {
    let links = [plain(100, r#""infinite""#), plain(50, r#""infinite""#)];
    let (delivered, _) = through(&links, Path { links: vec![], delay_of: vec![0, 1], extra_ns: 9 }, &[1500, 52]);
    assert_eq!(delivered, [(2 * DELAY + 9, 0), (2 * DELAY + 9, 1)]);
}

#[test]
fn what_happens_is_logged() {
    let (_, mut mesh) =
        through(&[plain(100, r#"{"packets": 1}"#)], Path { links: vec![0], ..Path::default() }, &[1500; 3]);
    let log: Vec<_> = mesh.take_log().map(|p| (p.at, p.size, p.incident)).collect();
    let expected = [
        (0, 1500, Incident::Arrival),
        (120_000, 1500, Incident::Departure(120_000)),
        (0, 1500, Incident::Arrival),
        (240_000, 1500, Incident::Departure(240_000)),
        (0, 1500, Incident::Arrival),
        (0, 1500, Incident::Gone),
    ];
    assert_eq!(log, expected);
    assert_eq!(mesh.take_log().count(), 0);
}

#[test]
fn paths_over_unknown_links_are_refused() {
    let path = Path { links: vec![], delay_of: vec![1], extra_ns: 0 };
    let error = Mesh::new(&[plain(1, r#""infinite""#)], &[path], 0, 0, 1).err().unwrap();
    assert_eq!(error.to_string(), "paths[0]: names link 1, but there are 1 links");
}
