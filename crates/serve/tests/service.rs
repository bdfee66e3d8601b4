//! The service with its sockets: many clients, and peers that behave badly.

mod common;

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use astraea_serve::service::Limits;
use astraea_serve::wire::{Codec, Frame, Message, Reason, Refusal};
use astraea_serve::{Address, Client, ClientError, Config, Key, Origin, Service};
use common::{Directory, PATIENT, Running, ask, config, eventually, patient, policy, report};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, socket};
use nix::sys::stat::Mode;

fn socket_path(address: &Address) -> &std::path::Path {
    let Address::Unix(path) = address else { panic!("a path") };
    path
}

fn bytes(session: u64, number: u64, message: Message<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Codec::default().write(&Frame { session, number, message }, &mut bytes);
    bytes
}

/// A connection with a session of its own, without the manners of a client.
fn raw(address: &Address) -> (UnixStream, u64) {
    let mut stream = UnixStream::connect(socket_path(address)).unwrap();
    stream.write_all(&bytes(0, 1, Message::Hello { token: 1 })).unwrap();
    let mut welcome = [0; 80];
    stream.read_exact(&mut welcome).unwrap();
    (stream, Codec::default().read(&welcome).unwrap().session)
}

/// Asserts that a service still does its work.
fn works(address: &Address) {
    let mut client = patient(address);
    assert!(matches!(client.decide(1, &report(1.0)).origin, Origin::Service(_)));
}

#[test]
fn many_flows_over_many_connections_and_both_transports() {
    let directory = Directory::new();
    let mut both = config(&directory);
    both.listen.push("udp:127.0.0.1:0".parse().unwrap());
    let service = Running::start(both);
    let mut clients: Vec<Client> = (0..20).map(|_| patient(&directory.socket())).collect();
    clients.extend((0..20).map(|_| patient(&service.udp[0])));
    let mut expected = Vec::new();
    for period in 1..=10 {
        for (index, client) in clients.iter_mut().enumerate() {
            (0..25).for_each(|flow| client.ask(flow, &report(f64::from(period) * flow as f64)));
            let mut decisions = Vec::new();
            while decisions.len() < 25 {
                client.poll(PATIENT, &mut decisions);
            }
            decisions.sort_by_key(|decision| decision.flow);
            assert!(decisions.iter().all(|decision| matches!(decision.origin, Origin::Service(_))));
            let actions: Vec<f64> = decisions.iter().map(|decision| decision.action).collect();
            if index == 0 {
                expected = actions;
            } else {
                assert_eq!(actions, expected, "the same flows get the same answers, whoever asks and how");
            }
        }
    }
    // Counted when they have been sent.
    eventually("all decisions", || service.metric("astraea_serve_decisions_total") == 40.0 * 25.0 * 10.0);
    eventually("the gauges", || {
        service.metric("astraea_serve_flows") == 1000.0 && service.metric("astraea_serve_sessions") == 40.0
    });
    let udp = service.metric("astraea_serve_messages_total{transport=\"udp\"}");
    assert!(udp >= 20.0 * 250.0, "{udp}");
    // A connection that ends takes its flows along.
    clients.drain(..20);
    eventually("500 flows left", || service.metric("astraea_serve_flows") == 500.0);
}

#[test]
fn what_is_no_message_ends_its_connection_and_nothing_else() {
    let directory = Directory::new();
    let service = Running::start(config(&directory));
    let address = directory.socket();
    let mut bystander = patient(&address);
    let good = bytes(0, 1, Message::Hello { token: 1 });
    let mut wrong_sum = good.clone();
    wrong_sum[20] ^= 1;
    let mut oversized = good.clone();
    oversized[6..8].copy_from_slice(&u16::MAX.to_le_bytes());
    let mut version = good.clone();
    version[4] = 9;
    for (name, garbage) in [("magic", &b"GET / HTTP/1.1\r\n\r\n"[..]), ("length", &oversized), ("version", &version)] {
        let before = service.metric(&format!("astraea_serve_dropped_total{{reason=\"{name}\"}}"));
        let mut stream = UnixStream::connect(socket_path(&address)).unwrap();
        stream.write_all(garbage).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap_or_else(|error| panic!("{name}: {error}"));
        let heard = Codec::default().read(&rest).ok().map(|frame| frame.message);
        let refusal = Message::Refuse(Refusal { flow: 0, period: 0, reason: Reason::Version });
        assert_eq!(heard, (name == "version").then_some(refusal), "{name}");
        let after = service.metric(&format!("astraea_serve_dropped_total{{reason=\"{name}\"}}"));
        assert_eq!(after, before + 1.0, "{name}");
    }
    // A wrong checksum: the length is believed, the message is not.
    let mut stream = UnixStream::connect(socket_path(&address)).unwrap();
    stream.write_all(&[&wrong_sum[..], &good[..]].concat()).unwrap();
    let mut welcome = [0; 80];
    stream.read_exact(&mut welcome).unwrap();
    assert!(matches!(Codec::default().read(&welcome).unwrap().message, Message::Welcome { .. }));
    // Half a message and silence.
    let mut half = UnixStream::connect(socket_path(&address)).unwrap();
    half.write_all(&good[..20]).unwrap();
    assert!(matches!(bystander.decide(1, &report(1.0)).origin, Origin::Service(_)));
}

#[test]
fn datagrams_that_are_no_messages_are_counted() {
    let directory = Directory::new();
    let mut udp = config(&directory);
    udp.listen = vec!["udp:127.0.0.1:0".parse().unwrap()];
    let service = Running::start(udp);
    let Address::Udp(to) = service.udp[0] else { panic!("UDP") };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let good = bytes(0, 1, Message::Hello { token: 1 });
    let twice = [&good[..], &good[..]].concat();
    for (reason, datagram) in [("truncated", &good[..30]), ("truncated", b""), ("magic", b"x"), ("length", &twice)] {
        let name = format!("astraea_serve_dropped_total{{reason=\"{reason}\"}}");
        let before = service.metric(&name);
        socket.send_to(datagram, to).unwrap();
        eventually(reason, || service.metric(&name) == before + 1.0);
    }
    works(&service.udp[0]);
}

#[test]
fn a_peer_that_never_reads_holds_up_nobody() {
    let directory = Directory::new();
    let service = Running::start(config(&directory));
    let (mut deaf, session) = raw(&directory.socket());
    deaf.set_nonblocking(true).unwrap();
    // It asks until neither answers nor requests find room.
    let (mut number, mut stuck) = (1, 0);
    while stuck < 20 {
        number += 1;
        let request = bytes(session, number, ask(number, 1, &[report(1.0)]));
        if let Ok(sent) = deaf.write(&request) {
            assert_eq!(sent, request.len(), "a request is smaller than what the system splits");
        } else {
            stuck += 1;
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(number < 1_000_000, "the service takes everything and keeps it");
    }
    works(&directory.socket());
    service.stop().unwrap();
}

#[test]
fn a_peer_that_floods_holds_up_nobody() {
    let directory = Directory::new();
    let service = Running::start(config(&directory));
    let address = directory.socket();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = patient(&address);
            let mut decisions = Vec::new();
            (0..2000).for_each(|flow| client.ask(flow, &report(1.0)));
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                client.poll(Duration::from_millis(1), &mut decisions);
                decisions.drain(..).for_each(|decision| client.ask(decision.flow, &report(2.0)));
            }
        });
        let mut others: Vec<Client> = (0..5).map(|_| patient(&address)).collect();
        for period in 1..=50 {
            for client in &mut others {
                let decision = client.decide(1, &report(f64::from(period)));
                assert!(matches!(decision.origin, Origin::Service(_)), "period {period}");
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    service.stop().unwrap();
}

#[test]
fn a_peer_that_floods_with_datagrams_holds_up_nobody() {
    let directory = Directory::new();
    let udp = Config { listen: vec!["udp:127.0.0.1:0".parse().unwrap()], ..config(&directory) };
    let service = Running::start(udp);
    let Address::Udp(to) = service.udp[0] else { panic!("UDP") };
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.send_to(&bytes(0, 1, Message::Hello { token: 1 }), to).unwrap();
            let mut welcome = [0; 80];
            socket.recv(&mut welcome).unwrap();
            let session = Codec::default().read(&welcome).unwrap().session;
            // It asks as fast as it can, and takes no answers.
            for number in 2.. {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                let _ = socket.send_to(&bytes(session, number, ask(number % 2000, number as u32, &[report(1.0)])), to);
            }
        });
        let timely = || Client::connect(service.udp[0].clone(), None, Duration::from_millis(200), PATIENT).unwrap();
        let mut others: Vec<Client> = (0..5).map(|_| timely()).collect();
        for client in &mut others {
            // What a full receive buffer loses is asked for again in the next period.
            let mut period = 0.0;
            eventually("twenty answers of the service", || {
                period += 1.0;
                client.decide(1, &report(period));
                client.counts().answered == 20
            });
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    service.stop().unwrap();
}

/// A file where the service's lock would be.
fn lock_file(directory: &Directory, text: &str, mode: u32) -> PathBuf {
    let path = directory.file("serve.sock.lock");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn one_service_for_one_socket() {
    let directory = Directory::new();
    let service = Running::start(config(&directory));
    let error = |config: Config| Service::bind(config).map(drop).unwrap_err().to_string();
    let taken = error(config(&directory));
    assert_eq!(taken, format!("{}: another service listens there", directory.socket()));
    works(&directory.socket());
    service.stop().unwrap();
    assert!(!directory.file("serve.sock").exists() && !directory.file("serve.sock.lock").exists(), "nothing is left");
    // What a service that was killed leaves behind is in nobody's way.
    drop(std::os::unix::net::UnixListener::bind(directory.file("serve.sock")).unwrap());
    lock_file(&directory, "", 0o600);
    let service = Running::start(config(&directory));
    works(&directory.socket());
    service.stop().unwrap();
    // Nor is anything removed that is no socket.
    std::fs::write(directory.file("serve.sock"), "precious").unwrap();
    assert!(error(config(&directory)).contains("a file that is no socket"));
    assert_eq!(std::fs::read_to_string(directory.file("serve.sock")).unwrap(), "precious");
}

#[test]
fn nobody_loses_a_socket_of_another_type() {
    let directory = Directory::new();
    let path = directory.file("serve.sock");
    let error = || Service::bind(config(&directory)).map(drop).unwrap_err().to_string();
    let expected = format!("{}: there is a socket of another type that is in use", directory.socket());
    let datagrams = UnixDatagram::bind(&path).unwrap();
    assert!(error().starts_with(&expected), "{}", error());
    UnixDatagram::unbound().unwrap().send_to(b"still there", &path).unwrap();
    assert_eq!(datagrams.recv(&mut [0; 20]).unwrap(), 11);
    std::fs::remove_file(&path).unwrap();
    let packets = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(packets.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
    assert!(error().starts_with(&expected), "{}", error());
    assert!(path.exists() && !directory.file("serve.sock.lock").exists());
    // Nor has anybody that of a process that has ended, whatever its type was.
    drop(packets);
    let _service = Running::start(config(&directory));
    works(&directory.socket());
}

#[test]
fn nobody_waits_for_a_service_that_has_stopped() {
    let directory = Directory::new();
    let listener = std::os::unix::net::UnixListener::bind(directory.file("serve.sock")).unwrap();
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
    // The first one waits to be accepted, the second one would wait for that.
    for _ in 0..2 {
        let error = Service::bind(config(&directory)).map(drop).unwrap_err().to_string();
        assert_eq!(error, format!("{}: another service listens there", directory.socket()));
    }
}

#[test]
fn a_lock_of_somebody_else_stays_as_it_is() {
    let directory = Directory::new();
    let error = || Service::bind(config(&directory)).map(drop).unwrap_err().to_string();
    let expected = format!("{}: {} is no lock", directory.socket(), directory.file("serve.sock.lock").display());
    for (text, mode) in [("[[package]]", 0o600), ("[[package]]", 0o644), ("", 0o644)] {
        let path = lock_file(&directory, text, mode);
        assert!(error().starts_with(&expected), "{}", error());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        std::fs::remove_file(path).unwrap();
    }
    let path = directory.file("serve.sock.lock");
    nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
    let reader = std::fs::File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(&path).unwrap();
    assert!(error().starts_with(&expected), "{}", error());
    drop(reader);
    assert!(error().starts_with(&expected), "nobody reads it: {}", error());
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    assert!(error().starts_with(&expected), "{}", error());
    assert!(!directory.file("serve.sock").exists() && !directory.file("elsewhere").exists());
}

#[test]
fn a_socket_that_was_removed_comes_back() {
    let directory = Directory::new();
    let _service = Running::start(config(&directory));
    let mut connected = patient(&directory.socket());
    std::fs::remove_file(directory.file("serve.sock")).unwrap();
    assert!(matches!(connected.decide(1, &report(1.0)).origin, Origin::Service(_)), "connections live on");
    eventually("a new socket", || directory.file("serve.sock").exists());
    works(&directory.socket());
    // Its lock too, and that one stays.
    for name in ["serve.sock", "serve.sock.lock"] {
        std::fs::remove_file(directory.file(name)).unwrap();
    }
    eventually("a new socket and its lock", || {
        directory.file("serve.sock").exists() && directory.file("serve.sock.lock").exists()
    });
    let held = std::fs::File::open(directory.file("serve.sock.lock")).unwrap();
    assert!(held.try_lock().is_err(), "the service holds it");
}

#[test]
fn a_policy_is_replaced_as_a_whole_or_not_at_all() {
    let directory = Directory::new();
    let service = Running::start(config(&directory));
    let file = directory.file("policy.safetensors");
    let mut client = patient(&directory.socket());
    let version = |client: &mut Client| match client.decide(1, &report(1.0)).origin {
        Origin::Service(version) => version,
        Origin::Rule => panic!("the service answers"),
    };
    let first = version(&mut client);
    let refused = "astraea_serve_reloads_total{result=\"refused\"}";
    let paper = common::paper().policy.to_bytes();
    for (count, garbage) in [(1.0, &b"garbage"[..]), (2.0, b""), (3.0, &paper)] {
        std::fs::write(&file, garbage).unwrap();
        service.control.reload();
        eventually("a refusal", || service.metric(refused) == count);
        assert_eq!(version(&mut client), first, "the old one stays");
    }
    std::fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, Mode::S_IRWXU).unwrap();
    let silent = std::fs::File::options().read(true).write(true).open(&file).unwrap();
    service.control.reload();
    eventually("a refusal", || service.metric(refused) == 4.0);
    assert_eq!(version(&mut client), first, "nobody waits for what the pipe will say");
    drop(silent);
    std::fs::remove_file(&file).unwrap();
    policy(2).save(&file).unwrap();
    service.control.reload();
    eventually("another policy", || version(&mut client) != first);
    assert_eq!(client.counts().sessions, 1, "sessions go on");
}

#[test]
fn what_has_come_is_answered_before_the_end() {
    let directory = Directory::new();
    let service = Running::start(Config { max_wait: Duration::from_secs(1), ..config(&directory) });
    let mut client = patient(&directory.socket());
    for flow in 0..100 {
        client.ask(flow, &report(1.0));
    }
    let mut decisions = Vec::new();
    client.poll(Duration::ZERO, &mut decisions);
    service.stop().unwrap();
    while decisions.len() < 100 {
        client.poll(PATIENT, &mut decisions);
    }
    assert!(decisions.iter().all(|decision| matches!(decision.origin, Origin::Service(_))));
}

#[test]
fn a_client_falls_back_and_resumes() {
    let directory = Directory::new();
    let address = directory.socket();
    let service = Running::start(config(&directory));
    let mut client = Client::connect(address.clone(), None, Duration::from_millis(30), PATIENT).unwrap();
    let mut uninterrupted = patient(&address);
    let mut reference = Vec::new();
    for period in 1..=20 {
        reference.push(uninterrupted.decide(1, &report(f64::from(period))).action);
    }
    eventually("an answer in time", || matches!(client.decide(9, &report(0.0)).origin, Origin::Service(_)));
    let mut period = 0;
    let mut next = |client: &mut Client| {
        period += 1;
        (period, client.decide(1, &report(f64::from(period))))
    };
    next(&mut client);
    service.stop().unwrap();
    let (_, decision) = next(&mut client);
    assert_eq!(decision.origin, Origin::Rule);
    assert_eq!(decision.action, 0.0, "the agent adds the law");
    let _service = Running::start(config(&directory));
    let (period, decision) = loop {
        let found = next(&mut client);
        assert!(found.0 < 20, "never back");
        if matches!(found.1.origin, Origin::Service(_)) {
            break found;
        }
    };
    assert_eq!(decision.action, reference[period as usize - 1], "the new service knows the flow's past");
    assert_eq!(client.counts().sessions, 2);
}

#[test]
fn clients_believe_only_what_answers_their_question() {
    let directory = Directory::new();
    let listener = std::os::unix::net::UnixListener::bind(directory.file("serve.sock")).unwrap();
    let terms = {
        let engine = astraea_serve::Engine::new(common::loaded(1), astraea_serve::Limits::default(), None);
        engine.terms()
    };
    // A service that answers each request with everything but the right answer, and then with that.
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut pending = Vec::new();
        loop {
            let mut buffer = [0; 4096];
            let Ok(read @ 1..) = stream.read(&mut buffer) else { return };
            pending.extend(&buffer[..read]);
            while let Ok(Some(length)) = astraea_serve::wire::length(&pending) {
                if pending.len() < length {
                    break;
                }
                let request: Vec<u8> = pending.drain(..length).collect();
                let frame = Codec::default().read(&request).unwrap();
                let replies = match frame.message {
                    Message::Hello { token } => {
                        let welcome = |token| Message::Welcome { token, terms };
                        vec![bytes(666, 1, welcome(token ^ 1)), bytes(5, frame.number, welcome(token))]
                    }
                    Message::Ask(ask) => {
                        let answer = |flow, period, action| {
                            Message::Answer(astraea_serve::wire::Answer {
                                flow,
                                period,
                                action,
                                window: 1.0,
                                version: 1,
                            })
                        };
                        let (flow, period, number) = (ask.flow, ask.period, frame.number);
                        vec![
                            bytes(4, number, answer(flow, period, -1.0)),
                            bytes(5, number + 1, answer(flow, period, -1.0)),
                            bytes(5, number, answer(flow + 1, period, -1.0)),
                            bytes(5, number, answer(flow, period + 1, -1.0)),
                            bytes(5, number, answer(flow, period, 0.5)),
                            bytes(5, number, answer(flow, period, -1.0)),
                        ]
                    }
                    _ => Vec::new(),
                };
                stream.write_all(&replies.concat()).unwrap();
            }
        }
    });
    let mut client = patient(&directory.socket());
    for period in 1..=5 {
        let decision = client.decide(3, &report(1.0));
        assert_eq!((decision.period, decision.action), (period, 0.5));
    }
    let counts = client.counts();
    assert_eq!((counts.answered, counts.ruled), (5, 0));
    assert!(counts.ignored > 4 * 5, "{counts:?}");
}

#[test]
fn agents_of_another_kind_are_not_served() {
    let directory = Directory::new();
    let _service = Running::start(config(&directory));
    let agents = astraea_policy::AgentConfig::new(astraea_policy::Form::Paper);
    let mut client = Client::new(directory.socket(), None, PATIENT, agents);
    let error = client.wait(PATIENT).unwrap_err();
    assert!(matches!(error, ClientError::Terms { .. }), "{error}");
    let line = error.to_string();
    assert!(line.contains("serves form guided") && line.contains("expected paper"), "{line}");
}

#[test]
fn a_key_is_needed_where_others_can_listen() {
    let directory = Directory::new();
    let open = |key| Config { listen: vec!["udp:0.0.0.0:0".parse().unwrap()], key, ..config(&directory) };
    let error = Service::bind(open(None)).map(drop).unwrap_err().to_string();
    assert!(error.contains("expected a key"), "{error}");
    let key = Key::new(&[7; 32]);
    let service = Running::start(open(Some(key.clone())));
    let Address::Udp(bound) = service.udp[0] else { panic!("UDP") };
    let address = Address::Udp((std::net::Ipv4Addr::LOCALHOST, bound.port()).into());
    let mut friend = Client::connect(address.clone(), Some(key), PATIENT, PATIENT).unwrap();
    assert!(matches!(friend.decide(1, &report(1.0)).origin, Origin::Service(_)));
    for wrong in [None, Some(Key::new(&[8; 32]))] {
        let stranger = Client::connect(address.clone(), wrong, Duration::from_millis(50), Duration::from_millis(200));
        assert!(matches!(stranger, Err(ClientError::Silent { .. })));
    }
    eventually("strangers are counted", || service.metric("astraea_serve_dropped_total{reason=\"tag\"}") >= 2.0);
}

#[test]
fn every_address_of_the_host_answers() {
    let (directory, key) = (Directory::new(), Key::new(&[7; 32]));
    let everywhere = vec!["udp:0.0.0.0:0".parse().unwrap()];
    let service = Running::start(Config { listen: everywhere, key: Some(key.clone()), ..config(&directory) });
    let Address::Udp(bound) = service.udp[0] else { panic!("UDP") };
    for last in [2, 3] {
        let address = Address::Udp(([127, 0, 0, last], bound.port()).into());
        let mut client = Client::connect(address, Some(key.clone()), PATIENT, PATIENT).unwrap();
        assert!(matches!(client.decide(1, &report(1.0)).origin, Origin::Service(_)));
    }
}

#[test]
fn connections_without_a_flow_keep_nobody_out() {
    let directory = Directory::new();
    let limits = Limits { connections: 4, ..Limits::default() };
    let service = Running::start(Config { limits, ..config(&directory) });
    let mut mine = patient(&directory.socket());
    assert!(matches!(mine.decide(1, &report(1.0)).origin, Origin::Service(_)));
    // One of them has a session.
    let (greeted, _) = raw(&directory.socket());
    let idle: Vec<UnixStream> = (0..2).map(|_| UnixStream::connect(directory.file("serve.sock")).unwrap()).collect();
    eventually("all are connected", || service.metric("astraea_serve_connections") == 4.0);
    works(&directory.socket());
    assert_eq!(service.metric("astraea_serve_dropped_total{reason=\"idle\"}"), 1.0);
    assert!(matches!(mine.decide(1, &report(2.0)).origin, Origin::Service(_)), "who has flows stays");
    drop((greeted, idle));
}

#[test]
fn greetings_without_end_are_answered_while_they_are_read() {
    let directory = Directory::new();
    let service = Running::start(config(&directory));
    let greeting = bytes(0, 1, Message::Hello { token: 1 });
    // What is sent in one go is more than the system keeps of answers, and nobody takes them.
    let burst = greeting.repeat(1 << 12);
    let mut streams: Vec<UnixStream> = Vec::new();
    for _ in 0..64 {
        let mut stream = UnixStream::connect(directory.file("serve.sock")).unwrap();
        stream.set_nonblocking(true).unwrap();
        let _ = stream.write(&burst);
        streams.push(stream);
    }
    works(&directory.socket());
    // Each of them still gets its answers, once it takes them.
    for stream in &mut streams {
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENT)).unwrap();
        let mut welcome = [0; 80];
        stream.read_exact(&mut welcome).unwrap();
    }
    eventually("one session for each", || service.metric("astraea_serve_sessions") == 64.0);
}

#[test]
fn only_the_users_that_are_named_may_connect() {
    let directory = Directory::new();
    let me = nix::unistd::getuid().as_raw();
    let others = Config { users: vec![me.wrapping_add(1)], ..config(&directory) };
    let service = Running::start(others);
    let mut stream = UnixStream::connect(directory.file("serve.sock")).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "closed at once");
    assert_eq!(service.metric("astraea_serve_dropped_total{reason=\"user\"}"), 1.0);
    service.stop().unwrap();
    let _service = Running::start(Config { users: vec![me], ..config(&directory) });
    works(&directory.socket());
}
