//! What the tests of this crate share.
#![allow(dead_code, reason = "no test uses all of it")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use astraea_policy::{Activation, Form, Layer, Metadata, Network, Policy, Signals, schemes};
use astraea_serve::service::Loaded;
use astraea_serve::wire::{Ask, Message, Reports};
use astraea_serve::{Address, Client, Config, Control, Report, Service, ServiceError, Source};

/// A small guided policy, another one for each seed.
pub(crate) fn policy(seed: u32) -> Arc<Policy> {
    let form = Form::Guided;
    let layer = |inputs: usize, outputs: usize| {
        let value = |i: usize| ((i * 7 + seed as usize * 3) % 11) as f32 / 22.0 - 0.25;
        Layer { inputs, weights: (0..inputs * outputs).map(value).collect(), bias: vec![0.1; outputs] }
    };
    let network = Network::new(vec![layer(form.inputs(), 8), layer(8, 1)], Activation::Relu).unwrap();
    let metadata = Metadata { form, alpha: 0.1, period: 30_000_000, notes: [].into() };
    Arc::new(Policy::new(network, metadata).unwrap())
}

pub(crate) fn loaded(seed: u32) -> Loaded {
    Loaded::new(policy(seed))
}

pub(crate) fn paper() -> Loaded {
    Loaded::new(schemes::policy("astraea-paper").unwrap())
}

/// A report that differs with the rate.
pub(crate) fn report(rate: f64) -> Report {
    let signals = Signals { rate: 1000.0 + rate, queue: 0.004, ahead: 0.005, loss: 0.0, burst: 0.0, spread: 0.001 };
    Report {
        signals,
        throughput: 12e6 + rate,
        throughput_max: 13e6,
        latency: 0.045,
        latency_min: 0.04,
        loss: 0.0,
        in_flight: 6e4,
        window: 6.5e4,
        pacing_rate: 12e6,
        srtt: 0.045,
    }
}

pub(crate) fn ask(flow: u64, period: u32, reports: &[Report]) -> Message<'_> {
    Message::Ask(Ask { flow, period, reports: Reports::Given(reports) })
}

/// A directory of a test's own, removed with it.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("astraea-serve-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn socket(&self) -> Address {
        Address::Unix(self.file("serve.sock"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A service in a thread, stopped with it.
pub(crate) struct Running {
    pub(crate) control: Control,
    pub(crate) metrics: Option<std::net::SocketAddr>,
    pub(crate) udp: Vec<Address>,
    thread: Option<JoinHandle<Result<(), ServiceError>>>,
}

impl Running {
    pub(crate) fn start(config: Config) -> Self {
        let (service, control) = Service::bind(config).unwrap();
        let (metrics, udp) = (service.metrics_address(), service.udp_addresses());
        Self { control, metrics, udp, thread: Some(std::thread::spawn(move || service.run())) }
    }

    /// Stops it, and returns how it ended.
    pub(crate) fn stop(mut self) -> Result<(), ServiceError> {
        self.control.stop();
        self.thread.take().unwrap().join().unwrap()
    }

    /// The value of a metric, 0 if it is not shown.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(self.metrics.unwrap()).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("# EOF\n"), "{text}");
        let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
        line.map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.control.stop();
            let _ = thread.join();
        }
    }
}

/// A service of the small policy at a socket in the directory, with metrics.
pub(crate) fn config(directory: &Directory) -> Config {
    let path = directory.file("policy.safetensors");
    if !path.exists() {
        policy(1).save(&path).unwrap();
    }
    Config {
        metrics: Some("127.0.0.1:0".parse().unwrap()),
        max_wait: Duration::from_millis(1),
        ..Config::new(Source::File(path), vec![directory.socket()])
    }
}

/// Patience of tests: far above what a busy machine needs.
pub(crate) const PATIENT: Duration = Duration::from_secs(20);

/// A client that never gives up.
pub(crate) fn patient(address: &Address) -> Client {
    Client::connect(address.clone(), None, PATIENT, PATIENT).unwrap()
}

/// Waits for something that is bound to happen.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENT, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
