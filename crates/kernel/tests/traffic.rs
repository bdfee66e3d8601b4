//! Real connections: under the policy, and through everything that can happen to them.

mod support;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use astraea_emu::{Config, Emulator, Route, receiver_address, sender_address};
use astraea_kernel::intf::{self, Counters};
use astraea_kernel::{Attachment, Decider, layout};
use astraea_policy::{Activation, Form, Layer, Metadata, Network, Policy};
use serde_json::json;

use support::transfer::{fallbacks, ms, over, over_a_link, transfer, transfer_while, until};
use support::{Flow, Own, cannot_run, choose, connected, disconnect, emulator, info, link, shipped, socket};

#[test]
fn a_flow_is_driven_by_the_policy() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let emulator = link(4e7, ms(10), 150_000, 1);
    let flow = Flow::start(&emulator, 0, own.name(), ms(0), ms(2500));
    until("decisions", || attached.counters().unwrap().decisions > 20);
    let views = attached.flows().unwrap();
    let view = views.iter().find(|view| view.peer == (receiver_address(0).into(), 5001)).expect("the flow is listed");
    assert_eq!(view.view.reason, intf::REASON_NONE);
    assert!((20_000_000..40_000_000).contains(&view.view.base), "{view:?}");
    let (bytes, info) = flow.finish().unwrap();
    assert!(bytes > 5_000_000, "{bytes} bytes of 12.5 million that fit");
    assert!(info.tcpi_total_retrans < 100, "{}", info.tcpi_total_retrans);
    until("flows that have ended to go", || attached.flows().unwrap().is_empty());
    let counters = attached.counters().unwrap();
    assert_eq!(counters.fallbacks, [0; 6]);
    assert!(counters.decision_ns > 0 && counters.periods >= counters.decisions);
}

#[test]
fn the_first_flight_grows_the_window_and_what_is_sent_now_and_then_does_not() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let _attached = own.attach("astraea");
    let emulator = link(4e7, ms(10), 150_000, 1);
    let (mut sender, mut receiver) = connected(&emulator, own.name(), |_| {});
    let segment = info(&sender).tcpi_snd_mss as usize;
    let mut send = |segments: usize| {
        sender.write_all(&vec![0x5a; segments * segment]).unwrap();
        receiver.read_exact(&mut vec![0; segments * segment]).unwrap();
        until("acknowledgements", || info(&sender).tcpi_unacked == 0);
        info(&sender).tcpi_snd_cwnd
    };
    assert_eq!(send(10), 20, "slow start");
    assert_eq!(send(1), 20, "the application has less to send than the window holds");
}

#[test]
fn policies_are_swapped_under_a_flow() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    over_a_link(own.name(), 6_000_000, || {
        for index in 0..60 {
            attached.swap(&shipped(["astraea-pure", "astraea", "astraea-paper"][index % 3])).unwrap();
            std::thread::sleep(ms(15));
        }
    });
    assert!(attached.counters().unwrap().decisions > 10);
}

/// A policy that answers everything with an action near this end of its range.
fn stubborn(end: f32) -> Box<intf::Policy> {
    let layer = Layer { inputs: 25, weights: vec![0.0; 25], bias: vec![3.0 * end] };
    let network = Network::new(vec![layer], Activation::Relu).unwrap();
    let metadata = Metadata { form: Form::Pure, alpha: 0.1, period: 20_000_000, notes: [].into() };
    layout::policy(&Policy::new(network, metadata).unwrap(), 1).unwrap()
}

#[test]
fn the_policy_that_came_last_decides_for_flows_that_there_are() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let (falling, rising) = (stubborn(-1.0), stubborn(1.0));
    let attached = Attachment::attach(&own.place, &falling, Decider::Kernel).unwrap();
    let emulator = link(4e7, ms(10), 150_000, 1);
    let (mut sender, reader) = connect(&emulator, own.name(), 0);
    let ending = Arc::new(AtomicBool::new(false));
    let ended = ending.clone();
    let sending = std::thread::spawn(move || {
        let data = vec![1; 1 << 16];
        while !ended.load(Ordering::Relaxed) {
            sender.write_all(&data).unwrap();
        }
    });
    let view = || attached.flows().unwrap().first().map(|flow| flow.view);
    let window = || view().map_or(0, |view| view.window >> 20);
    let decisions = || view().map_or(0, |view| view.decisions);
    until("decisions", || decisions() > 10);
    until("a window that falls", || window() < 10);
    for (policy, reached) in [(&rising, 41..=u64::MAX), (&falling, 0..=9), (&rising, 41..=u64::MAX)] {
        let before = decisions();
        attached.swap(policy).unwrap();
        until("a window by the policy that came last", || reached.contains(&window()));
        assert!(decisions() > before);
    }
    assert_eq!(attached.counters().unwrap().fallbacks, [0; 6]);
    ending.store(true, Ordering::Relaxed);
    sending.join().unwrap();
    reader.join().unwrap().unwrap();
}

#[test]
fn a_flow_outlives_its_controller() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    over_a_link(own.name(), 6_000_000, || {
        until("decisions", || attached.counters().unwrap().decisions > 5);
        Attachment::detach(&own.place).unwrap();
        until("the change to CUBIC", || fallbacks(&attached.counters().unwrap(), intf::REASON_DETACHED) == 1);
    });
}

#[test]
fn a_path_outside_the_domain_is_left_to_cubic() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let connect = || socket(to, own.name()).unwrap().connect(None, to).unwrap();
    let (least, most) = (30_000_000, 10_000_000_000);
    let seen = Attachment::open(&own.place).unwrap();
    // A path is outside for some periods before it is left, in which a fast machine sends more than a slow one.
    let left = move |sent: u64| {
        let inside = fallbacks(&seen.counters().unwrap(), intf::REASON_OUTSIDE) == 0;
        if inside { most - sent } else { least.max(sent) - sent }
    };
    let sent = transfer_while(connect, listener, left, || ());
    let counters = attached.counters().unwrap();
    assert_eq!((fallbacks(&counters, intf::REASON_OUTSIDE), counters.failed), (1, 0), "{sent} bytes: {counters:?}");
    until("the flow to go", || attached.flows().unwrap().is_empty());
}

#[test]
fn a_path_that_becomes_longer_comes_into_the_domain() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let mut policy = shipped("astraea");
    policy.domain.rtt_min = 15_000_000;
    let attached = Attachment::attach(&own.place, &policy, Decider::Kernel).unwrap();
    let delay = json!({"schedule": [(0, 5_000_000), (1_500_000_000, 15_000_000)]});
    let rate = json!({"constant": 4e7});
    let emulator = emulator(json!({"name": "link", "rate": rate, "delay": delay, "limit": {"bytes": 150_000}}), 1);
    let flow = Flow::start(&emulator, 0, own.name(), ms(0), ms(14_000));
    until("CUBIC", || fallbacks(&attached.counters().unwrap(), intf::REASON_OUTSIDE) == 1);
    // What was seen is forgotten after five to ten seconds.
    std::thread::sleep(ms(4000));
    until("the way back", || attached.counters().unwrap().returns == 1);
    let base = attached.flows().unwrap()[0].view.base;
    assert!(base >= 20_000_000, "{base} ns");
    flow.finish().unwrap();
    assert_eq!(fallbacks(&attached.counters().unwrap(), intf::REASON_OUTSIDE), 1);
}

/// A connection over loopback whose policy is asked there too, with something set on its socket.
fn over_loopback(to: &str, length: u64, set: impl FnOnce(&support::Socket)) -> Counters {
    let own = Own::new();
    let mut policy = shipped("astraea");
    policy.domain.rtt_min = 0;
    policy.domain.rate_max = u64::MAX;
    let attached = Attachment::attach(&own.place, &policy, Decider::Kernel).unwrap();
    let listener = TcpListener::bind(to).unwrap();
    let to = listener.local_addr().unwrap();
    let unconnected = socket(to, own.name()).unwrap();
    set(&unconnected);
    transfer(|| unconnected.connect(None, to).unwrap(), listener, length, || {});
    attached.counters().unwrap()
}

#[test]
fn segments_of_all_sizes_and_both_protocols() {
    if cannot_run() {
        return;
    }
    let options: [(&str, i32); 4] = [("127.0.0.1:0", 536), ("127.0.0.1:0", 9000), ("[::1]:0", 0), ("127.0.0.1:0", 0)];
    for (to, size) in options {
        let counters = over_loopback(to, 4_000_000, |socket| {
            if size > 0 {
                socket.option(libc::IPPROTO_TCP, libc::TCP_MAXSEG, size).unwrap();
            }
        });
        assert_eq!(counters.fallbacks, [0; 6], "{to} with segments of {size}");
        assert!(counters.opened >= 1);
    }
}

#[test]
fn the_applications_own_limit_of_its_pace_holds() {
    if cannot_run() {
        return;
    }
    let begin = std::time::Instant::now();
    let counters = over_loopback("127.0.0.1:0", 4_000_000, |socket| {
        socket.option(libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, 4_000_000).unwrap();
    });
    // A second's worth, of which some leaves at once.
    assert!(begin.elapsed() > ms(700), "{:?}", begin.elapsed());
    assert_eq!(counters.fallbacks, [0; 6]);
}

#[test]
fn a_reader_that_stops_and_one_that_resets() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let emulator = link(4e7, ms(10), 150_000, 1);
    let (mut sender, mut receiver) = connected(&emulator, own.name(), |_| ());
    sender.set_nonblocking(true).unwrap();
    let data = vec![1; 1 << 16];
    // Nobody reads: the window of the receiver closes, and the sender is left with what it has.
    let mut blocked = 0;
    until("a closed window", || {
        match sender.write(&data) {
            Ok(_) => blocked = 0,
            Err(_) => blocked += 1,
        }
        blocked > 10
    });
    let at_rest = info(&sender).tcpi_snd_cwnd;
    std::thread::sleep(ms(300));
    assert!(info(&sender).tcpi_snd_cwnd <= 2 * at_rest, "a window that is not used does not grow");
    // It opens again.
    let mut buffer = vec![0; 1 << 20];
    until("room", || {
        let _ = receiver.read(&mut buffer);
        sender.write(&data).is_ok()
    });
    // Unread data makes closing a reset.
    drop(receiver);
    until("the reset", || matches!(sender.write(&data), Err(error) if error.kind() != std::io::ErrorKind::WouldBlock));
    drop(sender);
    until("the flow to go", || attached.flows().unwrap().is_empty());
}

/// A link of 40 Mbit/s and 20 ms over which from .6 s on nothing passes for so many ms.
fn with_an_outage(length: u64) -> Emulator {
    let pieces = [(0, 4e7), (600_000_000, 0.0), (600_000_000 + length * 1_000_000, 4e7)];
    let rate = json!({"schedule": pieces, "repeat_ns": 0});
    emulator(json!({"name": "link", "rate": rate, "delay": {"constant": 10_000_000}, "limit": {"bytes": 150_000}}), 1)
}

#[test]
fn a_timeout_in_an_outage_and_the_way_back() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    over(&with_an_outage(1000), own.name(), 6_000_000, || {});
    let counters = attached.counters().unwrap();
    assert!(counters.timeouts > 0, "{counters:?}");
    assert_eq!(counters.fallbacks, [0; 6], "silence is no reason to leave the policy");
}

#[test]
fn what_is_sent_again_after_a_timeout_ends_no_pause() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea-pure");
    // So long that the last timeout comes more than a second after the last acknowledgement, on a busy machine too.
    over(&with_an_outage(5000), own.name(), 4_000_000, || {
        until("timeouts", || attached.counters().unwrap().timeouts >= 3);
        let before = attached.counters().unwrap().periods;
        until("acknowledgements", || attached.counters().unwrap().periods > before);
        let window = || attached.flows().unwrap().iter().map(|flow| flow.view.window >> 20).max().unwrap_or(0);
        let mut largest = 0;
        // Eight periods: what it grows by in each is bounded, however slow this machine is.
        until("a few periods", || {
            let seen = window();
            let over = attached.counters().unwrap().periods > before + 8;
            largest = if over { largest } else { seen.max(largest) };
            over
        });
        assert!(largest < 6, "{largest} packets: this policy leaves slow start at a timeout");
    });
}

#[test]
fn marks_instead_of_losses() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let queue = json!({"kind": "codel", "target_ns": 1_000_000, "interval_ns": 20_000_000, "ecn": true});
    let rate = json!({"constant": 4e7});
    for (ecn, name) in [("1", "with"), ("0", "without")] {
        let emulator = emulator(
            json!({"name": "link", "rate": rate, "delay": {"constant": 10_000_000}, "limit": {"bytes": 600_000}, "queue": queue}),
            1,
        );
        for namespace in [emulator.senders(), emulator.receivers()] {
            namespace.sysctl("ipv4/tcp_ecn", ecn).unwrap();
        }
        over(&emulator, own.name(), 6_000_000, || {});
        let mut report = emulator.stop();
        let stats = report.link_stats(0);
        assert_eq!(stats.marked > 0, ecn == "1", "{name} ECN: {stats:?}");
        assert_eq!(stats.dropped > 0, ecn == "0", "{name} ECN: {stats:?}");
    }
    assert_eq!(attached.counters().unwrap().fallbacks, [0; 6]);
}

/// A connection over the emulator's first route, and who reads from it, with a buffer of so many bytes; 0: as the kernel likes.
fn connect(emulator: &Emulator, name: &str, buffer: i32) -> (TcpStream, JoinHandle<std::io::Result<u64>>) {
    let (sender, mut receiver) = connected(emulator, name, |listener| {
        if buffer > 0 {
            support::option(listener, libc::SOL_SOCKET, libc::SO_RCVBUF, buffer).unwrap();
        }
    });
    (sender, std::thread::spawn(move || std::io::copy(&mut receiver, &mut std::io::sink())))
}

#[test]
fn each_second_of_a_pause_halves_the_window() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let emulator = link(4e7, ms(10), 150_000, 1);
    let (mut sender, reader) = connect(&emulator, own.name(), 0);
    let data = vec![1; 1 << 16];
    until("a window", || {
        sender.write_all(&data).unwrap();
        info(&sender).tcpi_snd_cwnd > 40
    });
    std::thread::sleep(ms(2500));
    let before = info(&sender).tcpi_snd_cwnd;
    sender.write_all(&data[..1000]).unwrap();
    let after = info(&sender).tcpi_snd_cwnd;
    let halved = (before / 4).max(10);
    assert!(before > 20 && halved.abs_diff(after) <= 1, "{before} packets before a pause of 2.5 s, {after} after it");
    drop(sender);
    reader.join().unwrap().unwrap();
    drop(attached);
}

/// The largest window in packets that a flow is seen with over three seconds, with what it sends every 100 ms (bytes) and the
/// buffer that the receiver has asked for (bytes), 0 for as much as it likes. 68 packets fill the path.
fn largest_window(message: usize, buffer: i32) -> u64 {
    let own = Own::new();
    let attached = own.attach("astraea");
    let emulator = link(4e7, ms(10), 150_000, 1);
    let (mut sender, reader) = connect(&emulator, own.name(), buffer);
    let data = vec![1; message];
    let (mut largest, begun) = (0, std::time::Instant::now());
    while begun.elapsed() < ms(3000) {
        let next = std::time::Instant::now() + ms(100);
        sender.write_all(&data).unwrap();
        std::thread::sleep(next.saturating_duration_since(std::time::Instant::now()));
        largest = attached.flows().unwrap().iter().map(|flow| flow.view.window >> 20).fold(largest, u64::max);
    }
    drop(sender);
    reader.join().unwrap().unwrap();
    largest
}

/// Rate in bit/s of a download beside an upload that keeps a queue of 80 ms where its acknowledgements go, once something was
/// done with both ends of the download.
fn rate_beside_an_upload(prepare: impl FnOnce(&mut TcpStream, &mut TcpStream)) -> f64 {
    let own = Own::new();
    let attached = own.attach("astraea");
    let link = |name: &str, rate: f64, buffer: u64| {
        let (rate, delay) = (json!({"constant": rate}), json!({"constant": 10_000_000}));
        serde_json::from_value(json!({"name": name, "rate": rate, "delay": delay, "limit": {"bytes": buffer}})).unwrap()
    };
    let links = vec![link("down", 4e7, 150_000), link("up", 1e7, 100_000)];
    let routes =
        [(0, 1), (1, 0)].map(|(there, back)| Route { path: vec![there], return_path: vec![back], ..Route::default() });
    let emulator = Emulator::start(Config { links, routes: routes.to_vec(), ..Config::default() }).unwrap();
    let (mut sender, mut receiver) = connected(&emulator, own.name(), |_| ());
    prepare(&mut sender, &mut receiver);
    let upload = Flow::start(&emulator, 1, "cubic", ms(1500), ms(6000));
    let (received, ending) = (AtomicU64::new(0), AtomicBool::new(false));
    let rate = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(length @ 1..) = receiver.read(&mut buffer) {
                received.fetch_add(length as u64, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            let (mut sender, data) = (sender, vec![1; 1 << 16]);
            while !ending.load(Ordering::Relaxed) {
                sender.write_all(&data).unwrap();
            }
        });
        std::thread::sleep(ms(3000));
        let before = received.load(Ordering::Relaxed);
        std::thread::sleep(ms(2500));
        ending.store(true, Ordering::Relaxed);
        (received.load(Ordering::Relaxed) - before) as f64 * 8.0 / 2.5
    });
    upload.finish().unwrap();
    drop(attached);
    rate
}

#[test]
fn a_queue_on_the_way_back_is_not_its_own() {
    if cannot_run() {
        return;
    }
    let rate = rate_beside_an_upload(|_, _| ());
    assert!(rate > 2.4e7, "{rate:.2e} of 4e7 bit/s");
}

#[test]
fn the_receivers_clock_may_begin_at_zero_again() {
    if cannot_run() {
        return;
    }
    // It does so half a second before the rate is measured.
    let rate = rate_beside_an_upload(|sender, receiver| set_clock(receiver, sender, 2500_u32.wrapping_neg()));
    assert!(rate > 2.4e7, "{rate:.2e} of 4e7 bit/s");
}

/// Sets the clock of a connection's end, in ms, and tells the other end of it: in leaps that it takes for time that has passed.
fn set_clock(end: &mut TcpStream, other: &mut TcpStream, clock: u32) {
    let tcp = |name, value| support::option(end, libc::IPPROTO_TCP, name, value).unwrap();
    let (on, off_without_a_word, longest) = (1, -1, 1_u32 << 30);
    loop {
        let now = support::value(end, libc::IPPROTO_TCP, libc::TCP_TIMESTAMP).unwrap().cast_unsigned();
        let step = clock.wrapping_sub(now).min(longest);
        tcp(libc::TCP_REPAIR, on);
        // Its lowest bit is another option.
        tcp(libc::TCP_TIMESTAMP, (now.wrapping_add(step) & !1).cast_signed());
        tcp(libc::TCP_REPAIR, off_without_a_word);
        (&*end).write_all(b"!").unwrap();
        other.read_exact(&mut [0]).unwrap();
        if step < longest {
            return;
        }
    }
}

#[test]
fn windows_that_are_not_used_do_not_grow() {
    if cannot_run() {
        return;
    }
    let limited = largest_window(50_000, 0);
    assert!(limited <= 60, "{limited} packets for messages of 35");
    let limited = largest_window(400_000, 20_000);
    assert!(limited <= 40, "{limited} packets for a receiver that takes a dozen");
}

/// Short connections, one after the other: `CONNECTIONS=5000 cargo test -p astraea-kernel many_short` for a long burst.
fn connections() -> u64 {
    std::env::var("CONNECTIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(500)
}

#[test]
fn many_short_connections() {
    if cannot_run() {
        return;
    }
    let (own, count) = (Own::new(), connections());
    let attached = own.attach("astraea");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        for _ in 0..count {
            let (mut stream, _) = listener.accept().unwrap();
            let mut text = Vec::new();
            stream.read_to_end(&mut text).unwrap();
            assert_eq!(text.len(), 3000);
        }
    });
    for _ in 0..count {
        let mut stream = socket(to, own.name()).unwrap().connect(None, to).unwrap();
        stream.write_all(&[7; 3000]).unwrap();
    }
    server.join().unwrap();
    until("all flows to go", || attached.flows().unwrap().is_empty());
    let counters = attached.counters().unwrap();
    assert!(counters.opened >= count && counters.failed == 0, "{counters:?}");
}

#[test]
fn many_flows_are_listed() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    // More than are asked for at first. The receivers' ends are closed, lest a thousand files be open.
    let flows: Vec<_> = (0..800)
        .map(|_| {
            let stream = socket(to, own.name()).unwrap().connect(None, to).unwrap();
            listener.accept().unwrap();
            stream
        })
        .collect();
    let sorted = |mut ports: Vec<u16>| {
        ports.sort_unstable();
        ports
    };
    let listed = attached.flows().unwrap().iter().map(|view| view.local_port).collect();
    let expected = flows.iter().map(|flow| flow.local_addr().unwrap().port()).collect();
    assert_eq!(sorted(listed), sorted(expected), "each of them once");
}

/// What a socket had under the controller before is not taken over when it comes back to it.
#[test]
fn a_socket_that_comes_back_begins_anew() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let emulator = link(4e7, ms(10), 150_000, 1);
    let (to, from) = (SocketAddr::from((receiver_address(0), 5001)), SocketAddr::from((sender_address(0), 0)));
    let listener = emulator.receivers().run(|| TcpListener::bind(to)).unwrap();
    let receiver = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            // The first one ends with a reset.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    let decisions = || attached.flows().unwrap().first().map_or(0, |flow| flow.view.decisions);
    let all = || attached.counters().unwrap().decisions;
    let send_until = |stream: &mut TcpStream, least: u64| {
        let data = vec![0x5a; 1 << 16];
        while decisions() < least {
            stream.write_all(&data).unwrap();
        }
    };
    let anew = |stream: &mut TcpStream, before: u64| {
        send_until(stream, 1);
        let (of_the_flow, since) = (decisions(), all() - before);
        assert!(of_the_flow <= since, "{of_the_flow} decisions, {since} of them since it began");
    };
    let mut stream = emulator.senders().run(|| socket(from, own.name())).unwrap().connect(Some(from), to).unwrap();
    send_until(&mut stream, 20);
    choose(&stream, "reno").unwrap();
    assert!(attached.flows().unwrap().is_empty());
    let before = all();
    choose(&stream, own.name()).unwrap();
    anew(&mut stream, before);
    send_until(&mut stream, 20);
    let idle = disconnect(stream).unwrap();
    assert!(attached.flows().unwrap().is_empty());
    let before = all();
    let mut stream = idle.connect(None, to).unwrap();
    anew(&mut stream, before);
    drop(stream);
    receiver.join().unwrap();
}

#[test]
fn a_flow_that_nothing_can_be_kept_of_gives_way_to_losses() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let emulator = link(4e7, ms(10), 50_000, 1);
    if let Err(error) = emulator.senders().sysctl("core/optmem_max", "1000") {
        eprintln!("skipped: before Linux 6.8 this limit is the whole system's: {error}");
        return;
    }
    let flow = Flow::start(&emulator, 0, own.name(), ms(0), ms(3000));
    let (bytes, info) = flow.finish().unwrap();
    assert!(attached.counters().unwrap().failed > 0, "there was memory after all");
    assert!(bytes > 5_000_000, "{bytes} bytes of 15 million that fit");
    assert!(info.tcpi_total_retrans < 100, "{}: CUBIC's window falls at a loss", info.tcpi_total_retrans);
}
