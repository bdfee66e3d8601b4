//! Real sockets over emulated links. Needs root and TUN; skipped elsewhere, saying so.

mod machine;

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use astraea_emu::{Config, Emulator, Error, Namespace, Route, Routing, Running, Tun, receiver_address, sender_address};
use astraea_sim::mesh::Incident;
use astraea_sim::{LinkConfig, Trace};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use machine::{missing_for_links, skipped};

const PORT: u16 = 5201;
const PATIENCE: Duration = Duration::from_secs(10);

/// A link from JSON, with everything else added.
fn link(rate: &str, delay_ms: u64, rest: &str) -> LinkConfig {
    let delay = delay_ms * 1_000_000;
    let json = format!(r#"{{"name": "link", "rate": {rate}, "delay": {{"constant": {delay}}}, {rest}}}"#);
    serde_json::from_str(&json).expect("the link is well written")
}

fn rate(mbps: u32) -> String {
    format!(r#"{{"constant": {mbps}e6}}"#)
}

fn routes(count: usize) -> Vec<Route> {
    vec![Route { path: vec![0], ..Route::default() }; count]
}

/// Starts, or says what is missing for that here.
fn start(config: Config) -> Option<Emulator> {
    if skipped(missing_for_links()) {
        return None;
    }
    Some(Emulator::start(config).expect("the emulation starts"))
}

fn udp(namespace: &Namespace, address: impl Into<IpAddr> + Send) -> UdpSocket {
    let socket = namespace.run(|| UdpSocket::bind((address.into(), PORT))).expect("a socket in the namespace");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout is set");
    socket
}

/// Sends back every datagram until an empty one comes.
fn echo(socket: &UdpSocket) {
    let mut buffer = [0; 2000];
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        if length == 0 {
            return;
        }
        socket.send_to(&buffer[..length], from).expect("the way back is open");
    }
}

/// Smallest of some round-trip times of a flow.
fn round_trip(emulator: &Emulator, flow: usize) -> Duration {
    let receiver = udp(emulator.receivers(), receiver_address(flow));
    let sender = udp(emulator.senders(), sender_address(flow));
    sender.connect((receiver_address(flow), PORT)).expect("there is a route");
    std::thread::scope(|scope| {
        scope.spawn(|| echo(&receiver));
        let one = |_| {
            let start = Instant::now();
            sender.send(&[1; 64]).expect("the network is up");
            sender.recv(&mut [0; 100]).expect("an answer comes");
            start.elapsed()
        };
        let shortest = (0..10).map(one).min().expect("there were some");
        sender.send(&[]).expect("the network is up");
        shortest
    })
}

/// Whether a time is at least what the links demand, and not far from it.
fn assert_about(time: Duration, expected_ms: u64) {
    let expected = Duration::from_millis(expected_ms);
    assert!(time >= expected && time < expected + Duration::from_millis(20), "{time:?}, expected {expected:?}");
}

/// Sends `bytes` over TCP and checks that they arrive as they were sent. The source is the namespace's first address.
fn transfer(from: &Namespace, to: &Namespace, destination: impl Into<IpAddr>, bytes: usize) {
    let data: Vec<u8> = (0..bytes as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let destination = SocketAddr::new(destination.into(), PORT);
    let listener = to.run(|| TcpListener::bind(destination)).expect("a listener in the namespace");
    let mut stream = from.run(|| TcpStream::connect_timeout(&destination, PATIENCE)).expect("a connection");
    std::thread::scope(|scope| {
        scope.spawn(|| stream.write_all(&data).and_then(|()| stream.shutdown(std::net::Shutdown::Write)));
        let (mut accepted, _) = listener.accept().expect("a connection comes");
        accepted.set_read_timeout(Some(PATIENCE)).expect("a timeout is set");
        let mut received = Vec::new();
        accepted.read_to_end(&mut received).expect("everything arrives");
        assert!(received == data, "{} of {bytes} bytes, or others", received.len());
    });
}

#[test]
fn round_trips_take_what_the_links_demand() {
    let links = vec![link(&rate(100), 15, r#""limit": "infinite""#), link(&rate(100), 10, r#""limit": "infinite""#)];
    let route = |path: &[usize], extra_ms: u64| Route {
        path: path.to_vec(),
        return_path: vec![],
        extra_delay_ns: extra_ms * 1_000_000,
    };
    let there_and_back = Route { path: vec![0], return_path: vec![1], extra_delay_ns: 0 };
    let routes = vec![route(&[0], 0), route(&[1], 0), route(&[0, 1], 0), route(&[1], 7), route(&[], 4), there_and_back];
    let Some(emulator) = start(Config { links, routes, ..Config::default() }) else { return };
    for (flow, expected) in [30, 20, 50, 34, 8, 25].into_iter().enumerate() {
        assert_about(round_trip(&emulator, flow), expected);
    }
    let report = emulator.stop();
    assert_eq!((report.unrouted, report.refused, report.device_dropped), (0, 0, 0));
}

#[test]
fn two_emulations_do_not_meet() {
    let config = |ms| Config {
        links: vec![link(&rate(100), ms, r#""limit": "infinite""#)],
        routes: routes(1),
        ..Config::default()
    };
    let (Some(one), Some(other)) = (start(config(5)), start(config(20))) else { return };
    assert_about(round_trip(&one, 0), 10);
    assert_about(round_trip(&other, 0), 40);
    drop(one);
    assert_about(round_trip(&other, 0), 40);
}

#[test]
fn a_thousand_flows_have_addresses_and_delays_of_their_own() {
    let flows = 1000;
    let delayed = |flow: u64| Route { path: vec![0], extra_delay_ns: flow * 10_000, ..Route::default() };
    let config = Config {
        links: vec![link(&rate(100), 1, r#""limit": "infinite""#)],
        routes: (0..flows).map(delayed).collect(),
        ..Config::default()
    };
    let Some(emulator) = start(config) else { return };
    let receiver = emulator.receivers().run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))).expect("a socket");
    receiver.set_read_timeout(Some(PATIENCE)).expect("a timeout is set");
    let senders: Vec<UdpSocket> =
        (0..flows as usize).map(|flow| udp(emulator.senders(), sender_address(flow))).collect();
    let mut last = Duration::ZERO;
    // A few at a time, as the receiver's socket has room for a few hundred.
    for (group, senders) in senders.chunks(50).enumerate() {
        let start = Instant::now();
        for (index, sender) in senders.iter().enumerate() {
            let destination = (receiver_address(50 * group + index), PORT);
            sender.send_to(&[0; 32], destination).expect("the network is up");
        }
        for _ in senders {
            let (_, from) = receiver.recv_from(&mut [0; 100]).expect("every packet arrives");
            assert!(senders.iter().any(|sender| sender.local_addr().is_ok_and(|address| address == from)));
            last = start.elapsed();
        }
    }
    assert!(last >= Duration::from_micros(1000 + 9990), "the last flow has 9.99 ms of its own: {last:?}");
    let report = emulator.stop();
    assert!((0..flows as usize).all(|flow| report.flow_stats(flow).departed == 1));
}

#[test]
fn tcp_arrives_whole_and_every_packet_is_accounted_for() {
    for queue in ["droptail", "codel", "fq_codel", "pie"] {
        let rest =
            format!(r#""limit": {{"bytes": 60000}}, "queue": {{"kind": "{queue}"}}, "loss": {{"periodic": 200}}"#);
        let config = Config {
            links: vec![link(&rate(200), 2, &rest)],
            routes: routes(1),
            slot_ns: 10_000_000,
            duration_ns: 5_000_000_000,
            ..Config::default()
        };
        let Some(emulator) = start(config) else { return };
        let begin = Instant::now();
        transfer(emulator.senders(), emulator.receivers(), receiver_address(0), 4_000_000);
        let took = begin.elapsed().as_secs_f64();
        assert!(took > 4e6 * 8.0 / 200e6, "{queue}: faster than the link, {took} s");
        let mut report = emulator.stop();
        let stats = report.link_stats(0).clone();
        let gone = stats.lost + stats.dropped;
        assert_eq!(stats.lost, stats.offered / 200, "{queue}");
        assert!(stats.offered - stats.served - gone <= 40, "{queue}: {stats:?}");
        assert!(stats.served_bytes > 4_000_000 + 52 * 2762, "{queue}: {stats:?}");
        let flow = report.flow_stats(0);
        assert_eq!((flow.offered, flow.gone), (stats.offered, gone), "{queue}");
        assert!(flow.departed_bytes >= 4_000_000);
        let series = report.link_series(0);
        assert_eq!(series.len(), 500);
        assert_eq!(series.iter().map(|slot| slot.served_bytes).sum::<u64>(), stats.served_bytes);
        assert_eq!(series.iter().map(|slot| u64::from(slot.dropped + slot.lost)).sum::<u64>(), gone);
        assert_eq!(report.flow_series(0).iter().map(|slot| slot.delivered).sum::<u64>(), flow.departed_bytes);
        assert!((report.capacity_bytes(0, 0, 1_000_000_000) - 25e6).abs() < 1.0);
        assert!(report.lateness.total() >= flow.departed);
    }
}

#[test]
fn a_queue_marks_packets_of_connections_that_understand_it() {
    let rest = r#""limit": {"bytes": 10000000},
        "queue": {"kind": "codel", "target_ns": 1000000, "interval_ns": 5000000, "ecn": true}"#;
    let config = Config { links: vec![link(&rate(50), 5, rest)], routes: routes(1), ..Config::default() };
    let Some(emulator) = start(config) else { return };
    for namespace in [emulator.senders(), emulator.receivers()] {
        namespace.sysctl("ipv4/tcp_ecn", "1").expect("a namespace has this setting");
    }
    transfer(emulator.senders(), emulator.receivers(), receiver_address(0), 3_000_000);
    let mut report = emulator.stop();
    let stats = report.link_stats(0);
    assert!(stats.marked > 0, "{stats:?}");
    assert_eq!((stats.dropped, stats.lost), (0, 0));
}

#[test]
fn a_link_that_is_crossed_both_ways_has_one_queue() {
    let route = Route { path: vec![0], return_path: vec![0], extra_delay_ns: 0 };
    let links = vec![link(&rate(400), 5, r#""limit": "infinite""#)];
    let Some(emulator) = start(Config { links, routes: vec![route], ..Config::default() }) else { return };
    assert_about(round_trip(&emulator, 0), 10);
    let mut report = emulator.stop();
    assert_eq!(report.link_stats(0).offered, 21, "ten packets out, ten back, and the last");
}

#[test]
fn a_receiver_gets_what_the_trace_allows() {
    let file = std::env::temp_dir().join(format!("astraea-emu-trace-{}", std::process::id()));
    std::fs::write(&file, "1\n1\n4\n9\n9\n9\n14\n").expect("a file can be written");
    let rate = format!(r#"{{"trace": {:?}}}"#, file.display().to_string());
    let config = Config {
        links: vec![link(&rate, 1, r#""limit": {"packets": 2000}"#)],
        routes: routes(1),
        log: true,
        ..Config::default()
    };
    let started = start(config);
    let trace = Trace::read(&file).expect("the trace is well written");
    std::fs::remove_file(&file).expect("the file is there");
    let Some(emulator) = started else { return };
    let receiver = udp(emulator.receivers(), receiver_address(0));
    setsockopt(&receiver, sockopt::ReceiveTimestampns, &true).expect("arrivals can be timed");
    let sender = udp(emulator.senders(), sender_address(0));
    let packets = 300;
    for _ in 0..packets {
        // 1472 bytes of payload make a full packet of 1500.
        sender.send_to(&[0; 1472], (receiver_address(0), PORT)).expect("the network is up");
    }
    let ahead = realtime_ahead();
    let arrived: Vec<u64> = (0..packets).map(|_| arrival(&receiver) - ahead - emulator.epoch()).collect();
    let report = emulator.stop();
    let incidents =
        |wanted: fn(&Incident) -> bool| report.log.iter().filter(move |p| wanted(&p.incident)).map(|p| p.at);
    let waiting = incidents(|i| *i == Incident::Arrival).max().expect("packets arrived");
    let mut departures: Vec<u64> = incidents(|i| matches!(i, Incident::Departure(_))).collect();
    departures.sort_unstable();
    assert_eq!(departures.len(), packets);
    // From the time at which the last one waits, each opportunity takes a packet, …
    let before = departures.iter().filter(|at| **at <= waiting).count();
    assert!(before < packets / 2, "{before} left before the last one came");
    for at in &departures[before..] {
        assert!(trace.opportunities_between(*at, at + 1) > 0, "an opportunity at {at}");
    }
    // … and the receiver has it 1 ms of delay later: at all times the sum of what it has differs from the trace's by a
    // packet, or what the trace has in 1 ms, at most. A machine that is late must have said how late.
    let late = report.lateness.quantile(1.0).expect("packets were delivered") as u64;
    let (delay, tolerance) = (1_000_000, 1_000_000 + late);
    for (index, at) in arrived.iter().enumerate().skip(before) {
        let (bytes, left) = ((index + 1 - before) as u64 * FULL, at.saturating_sub(delay));
        let most = trace.opportunities_between(waiting + 1, left + 1) * FULL;
        let least = trace.opportunities_between(waiting + 1, left.saturating_sub(tolerance)) * FULL;
        assert!(bytes <= most + FULL, "{bytes} bytes at {at}, the trace allows {most}");
        assert!(bytes + FULL >= least, "{bytes} bytes at {at}, {least} before; packets were {late} ns late at most");
    }
}

/// Bytes of a full packet.
const FULL: u64 = 1500;

/// What the clock of timestamps is ahead of the monotonic one, in ns.
fn realtime_ahead() -> u64 {
    let now = |clock| {
        let time = clock_gettime(clock).expect("every Linux has this clock");
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    };
    now(ClockId::CLOCK_REALTIME) - now(ClockId::CLOCK_MONOTONIC)
}

/// When the next datagram reached the receiver's kernel, however late the receiver reads it; in ns of the real-time clock.
fn arrival(socket: &UdpSocket) -> u64 {
    let mut bytes = [0; 2000];
    let mut parts = [io::IoSliceMut::new(&mut bytes)];
    let mut control = nix::cmsg_space!(TimeSpec);
    let message = recvmsg::<SockaddrIn>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty());
    let message = message.expect("every packet arrives");
    let stamps = message.cmsgs().expect("the control messages fit").filter_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(time) => Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64),
        _ => None,
    });
    stamps.last().expect("there is a timestamp")
}

#[test]
fn ipv6_and_udp_cross_links_as_well() {
    // A kernel can be started without IPv6.
    let no_ipv6 = || (!Path::new("/proc/net/if_inet6").exists()).then_some("IPv6");
    if skipped(missing_for_links().or_else(no_ipv6)) {
        return;
    }
    let (near, far) = (Ipv6Addr::new(0xFD61, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xFD61, 0, 0, 0, 0, 0, 0, 2));
    let end = |address| -> Result<_, Error> {
        let namespace = Namespace::new()?;
        let device = || Ok(Tun::create("astr0").and_then(|tun| tun.set_address_v6(address, 64).map(|()| tun)));
        let tun = namespace.run(device).expect("a namespace can be entered")?;
        Ok((namespace, tun))
    };
    let [(left, near_end), (right, far_end)] = [near, far].map(|address| end(address).expect("an end is made"));
    let links = vec![link(&rate(100), 2, r#""limit": {"bytes": 100000}"#)];
    let config = Config { links, routes: routes(1), routing: Routing::Single, ..Config::default() };
    let running = Running::start(config, near_end, far_end).expect("the emulation starts");
    transfer(&left, &right, far, 2_000_000);
    let (receiver, sender) = (udp(&right, far), udp(&left, near));
    std::thread::scope(|scope| {
        scope.spawn(|| echo(&receiver));
        let sent: Vec<u8> = (0..1400_u32).map(|i| i as u8).collect();
        sender.send_to(&sent, (far, PORT)).expect("the network is up");
        let mut buffer = [0; 2000];
        let length = sender.recv(&mut buffer).expect("an answer comes");
        assert_eq!(buffer[..length], sent);
        sender.send_to(&[], (far, PORT)).expect("the network is up");
    });
    let mut report = running.stop();
    let stats = report.link_stats(0);
    assert!(stats.served > 1400, "every segment is a packet: {stats:?}");
}

#[test]
fn nothing_is_left_of_a_namespace() {
    let Some(emulator) = start(Config { routes: vec![Route::default()], ..Config::default() }) else {
        return;
    };
    let inode = |namespace: &Namespace| namespace.run(|| std::fs::read_link("/proc/thread-self/ns/net"));
    let used = |of: &std::path::Path| -> io::Result<bool> {
        Ok(std::fs::read_dir("/proc/self/fd")?.flatten().any(|fd| std::fs::read_link(fd.path()).is_ok_and(|p| p == of)))
    };
    let inside = inode(emulator.senders()).expect("a namespace can be entered");
    assert!(used(&inside).expect("/proc is there"));
    drop(emulator.stop());
    assert!(!used(&inside).expect("/proc is there"), "no descriptor keeps {}", inside.display());
}

#[test]
fn bad_configurations_are_one_line() {
    let problem = |config: Config| match Emulator::start(config) {
        Err(Error::Config(error)) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it started"),
    };
    let good = || vec![link(&rate(1), 1, r#""limit": "infinite""#)];
    assert_eq!(problem(Config { links: good(), ..Config::default() }), "routes: there are 0, expected 1 to 65000");
    let config = Config { links: vec![], routes: routes(1), ..Config::default() };
    assert_eq!(problem(config), "paths[0]: names link 0, but there are 0 links");
    let links = vec![link(&rate(0), 1, r#""limit": "infinite""#)];
    let config = Config { links, routes: routes(1), ..Config::default() };
    assert_eq!(problem(config), "link link: rate: expected a rate of 1 to 1e13 bit/s, got 0");
}
