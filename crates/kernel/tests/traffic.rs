//! Real connections: under the policy, and through everything that can happen to them.

mod support;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use astraea_emu::{receiver_address, sender_address};
use astraea_kernel::intf::{self, Counters};
use astraea_kernel::{Attachment, Decider, agent};
use astraea_policy::AgentConfig;
use astraea_serve::{Address, Client, Config, Service, Source};

use support::{Flow, Own, cannot_run, info, link, shipped, shipped_policy, socket};

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn fallbacks(counters: &Counters, reason: u32) -> u64 {
    counters.fallbacks[reason as usize]
}

/// Waits until something holds; a machine that is busy may take its time.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..400 {
        if holds() {
            return;
        }
        std::thread::sleep(ms(25));
    }
    panic!("{what}: not within ten seconds");
}

/// Bytes that tell whether one is missing or in the wrong place.
fn pattern(from: u64, length: usize) -> Vec<u8> {
    (from..from + length as u64).map(|index| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Sends a pattern over a connection while `disturb` does what it does; the receiver must get all of it.
fn transfer(connect: impl FnOnce() -> TcpStream, listener: TcpListener, length: u64, disturb: impl FnOnce()) {
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut place, mut buffer) = (0, vec![0; 1 << 16]);
        loop {
            let read = stream.read(&mut buffer).expect("the connection was not reset");
            if read == 0 {
                return place;
            }
            assert!(buffer[..read] == pattern(place, read), "wrong data after {place} bytes");
            place += read as u64;
        }
    });
    let mut stream = connect();
    let sender = std::thread::spawn(move || {
        let mut place = 0;
        while place < length {
            let data = pattern(place, (length - place).min(1 << 16) as usize);
            stream.write_all(&data).expect("the connection was not reset");
            place += data.len() as u64;
        }
    });
    disturb();
    sender.join().unwrap();
    assert_eq!(receiver.join().unwrap(), length);
}

/// A link of 40 Mbit/s and 20 ms, and a connection over it that carries a pattern.
fn over_a_link(name: &str, length: u64, disturb: impl FnOnce()) {
    let emulator = link(4e7, ms(10), 150_000, 1);
    let to = SocketAddr::from((receiver_address(0), 5001));
    let from = SocketAddr::from((sender_address(0), 0));
    let listener = emulator.receivers().run(|| TcpListener::bind(to)).unwrap();
    let unconnected = emulator.senders().run(|| socket(from, name)).unwrap();
    transfer(|| unconnected.connect(Some(from), to).unwrap(), listener, length, disturb);
}

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
fn flows_of_an_agent_outlive_it_and_come_back() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = Attachment::attach(&own.place, &shipped("astraea"), Decider::Agent).unwrap();
    let policy = shipped_policy("astraea");
    let work = |until_silent: u64| {
        let ending = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| agent::answer(&attached, &policy, &ending));
            let before = attached.counters().unwrap().actions;
            until("actions", || attached.counters().unwrap().actions > before + until_silent);
            ending.store(true, std::sync::atomic::Ordering::Relaxed);
            serving.join().unwrap().unwrap();
        });
    };
    over_a_link(own.name(), 16_000_000, || {
        work(10);
        // As after a kill: nobody answers any more.
        until("the change to CUBIC", || fallbacks(&attached.counters().unwrap(), intf::REASON_SILENT) > 0);
        let returns = attached.counters().unwrap().returns;
        work(5);
        assert!(attached.counters().unwrap().returns > returns, "the agent is back");
    });
    assert_eq!(attached.counters().unwrap().decisions, 0, "the kernel does not decide");
}

#[test]
fn flows_of_an_agent_that_asks_a_service_outlive_the_service() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = Attachment::attach(&own.place, &shipped("astraea"), Decider::Agent).unwrap();
    let policy = shipped_policy("astraea");
    let directory = std::env::temp_dir().join(format!("{}_serve", own.name()));
    std::fs::create_dir(&directory).unwrap();
    let address = Address::Unix(directory.join("serve.sock"));
    let (service, control) = Service::bind(Config::new(Source::new("astraea"), vec![address.clone()])).unwrap();
    let running = std::thread::spawn(move || service.run());
    let mut client = Client::new(address, None, ms(15), AgentConfig::of(policy.metadata()));
    client.wait(ms(5000)).unwrap();
    client.check_policy("astraea", &policy).unwrap();
    let ending = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            agent::ask(&attached, &policy, &mut client, &ending).unwrap();
            client.counts()
        });
        over_a_link(own.name(), 16_000_000, || {
            let actions = || attached.counters().unwrap().actions;
            until("actions", || actions() > 20);
            control.stop();
            let before = actions();
            until("actions without the service", || actions() > before + 20);
        });
        ending.store(true, std::sync::atomic::Ordering::Relaxed);
        let counts = asking.join().unwrap();
        assert!(counts.answered > 0 && counts.ruled > 0, "{counts:?}");
    });
    running.join().unwrap().unwrap();
    let _ = std::fs::remove_dir_all(directory);
    assert_eq!(attached.counters().unwrap().decisions, 0, "the kernel does not decide");
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
    transfer(connect, listener, 30_000_000, || {
        until("periods", || {
            fallbacks(&attached.counters().unwrap(), intf::REASON_OUTSIDE) > 0 || attached.flows().unwrap().is_empty()
        });
    });
    assert_eq!(attached.counters().unwrap().failed, 0);
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
fn a_reader_that_stops_and_one_that_resets() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let emulator = link(4e7, ms(10), 150_000, 1);
    let to = SocketAddr::from((receiver_address(0), 5001));
    let from = SocketAddr::from((sender_address(0), 0));
    let listener = emulator.receivers().run(|| TcpListener::bind(to)).unwrap();
    let mut sender = emulator.senders().run(|| socket(from, own.name())?.connect(Some(from), to)).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
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

#[test]
fn a_pause_makes_the_window_start_again() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let emulator = link(4e7, ms(10), 150_000, 1);
    let to = SocketAddr::from((receiver_address(0), 5001));
    let from = SocketAddr::from((sender_address(0), 0));
    let listener = emulator.receivers().run(|| TcpListener::bind(to)).unwrap();
    let mut sender = emulator.senders().run(|| socket(from, own.name())?.connect(Some(from), to)).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    let reader = std::thread::spawn(move || std::io::copy(&mut receiver, &mut std::io::sink()));
    let data = vec![1; 1 << 16];
    until("a window", || {
        sender.write_all(&data).unwrap();
        info(&sender).tcpi_snd_cwnd > 40
    });
    std::thread::sleep(ms(2500));
    let before = info(&sender).tcpi_snd_cwnd;
    sender.write_all(&data[..1000]).unwrap();
    let after = info(&sender).tcpi_snd_cwnd;
    assert!(after <= 10 && before > 20, "{before} packets before a pause of many timeouts, {after} after it");
    drop(sender);
    reader.join().unwrap().unwrap();
    drop(attached);
}

/// Short connections, one after the other.
const COUNT: u64 = 500;

#[test]
fn many_short_connections() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        for _ in 0..COUNT {
            let (mut stream, _) = listener.accept().unwrap();
            let mut text = Vec::new();
            stream.read_to_end(&mut text).unwrap();
            assert_eq!(text.len(), 3000);
        }
    });
    for _ in 0..COUNT {
        let mut stream = socket(to, own.name()).unwrap().connect(None, to).unwrap();
        stream.write_all(&[7; 3000]).unwrap();
    }
    server.join().unwrap();
    until("all flows to go", || attached.flows().unwrap().is_empty());
    let counters = attached.counters().unwrap();
    assert!(counters.opened >= COUNT && counters.failed == 0, "{counters:?}");
}
