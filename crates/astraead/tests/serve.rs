//! `astraead serve` as a process: signals, restarts, and what it says to wrong arguments.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use astraea_policy::Signals;
use astraea_serve::{Address, Client, Decision, Origin, Report};
use nix::libc::O_NONBLOCK;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

const PROGRAM: &str = env!("CARGO_BIN_EXE_astraead");

/// Far above what a busy machine needs.
const PATIENT: Duration = Duration::from_secs(20);

/// A directory of a test's own.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("astraea-serve-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn socket(&self) -> Address {
        Address::Unix(self.0.join("serve.sock"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A service process, killed with it.
struct Server(Child);

impl Server {
    fn start(address: &Address) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--listen", &address.to_string(), "--max-wait", "1", "--log", "json"]);
        Self(command.stderr(Stdio::piped()).spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).unwrap();
    }

    fn end(mut self) -> Output {
        let mut child = std::mem::replace(&mut self.0, Command::new("true").spawn().unwrap());
        let _ = child.stdin.take();
        child.wait_with_output().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is there sooner or later.
fn eventually<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < PATIENT, "never");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn report(flow: u64, period: u32) -> Report {
    let rate = 500.0 + flow as f64 + 10.0 * f64::from(period);
    let signals = Signals { rate, queue: 0.004, ahead: 0.005, loss: 0.0, burst: 0.0, spread: 0.001 };
    Report { signals, latency: 0.045, latency_min: 0.04, window: 6e4, srtt: 0.045, ..Report::default() }
}

/// One period of all flows: every one is decided somehow.
fn period(clients: &mut [Client], number: u32) -> HashMap<u64, Decision> {
    let count = clients.len() as u64;
    for flow in 0..1000 {
        clients[(flow % count) as usize].ask(flow, &report(flow, number));
    }
    let (mut decisions, mut found) = (Vec::new(), HashMap::new());
    while found.len() < 1000 {
        for client in clients.iter_mut() {
            client.poll(Duration::from_millis(1), &mut decisions);
        }
        for decision in decisions.drain(..) {
            assert_eq!(decision.period, number, "a decision of another period");
            assert!(found.insert(decision.flow, decision).is_none(), "flow {} was decided twice", decision.flow);
        }
    }
    found
}

fn served(decisions: &HashMap<u64, Decision>) -> usize {
    decisions.values().filter(|decision| matches!(decision.origin, Origin::Service(_))).count()
}

/// A service that is killed and comes back under 1000 flows: each flow goes on by the rule, is back within two periods of
/// the service's return, and gets the answers that an uninterrupted service would give.
#[test]
fn killed_and_restarted_under_a_thousand_flows() {
    let directory = Directory::new("kill");
    let (address, steady) = (directory.socket(), Address::Unix(directory.0.join("steady.sock")));
    let reference = Server::start(&steady);
    let mut undisturbed = vec![Client::connect(steady, None, PATIENT, PATIENT).unwrap()];
    let mut server = Server::start(&address);
    // Long enough for a busy machine to answer 1000 flows in.
    let timeout = Duration::from_secs(1);
    let connect = || Client::connect(address.clone(), None, timeout, PATIENT).unwrap();
    let mut clients: Vec<Client> = (0..20).map(|_| connect()).collect();
    let mut number = 0;
    let mut next = |clients: &mut [Client]| {
        number += 1;
        (period(clients, number), period(&mut undisturbed, number))
    };
    for round in 0..2 {
        for _ in 0..3 {
            let (decisions, expected) = next(&mut clients);
            assert_eq!(served(&decisions), 1000);
            assert_eq!(decisions, expected);
        }
        server.signal(Signal::SIGKILL);
        server.end();
        let (decisions, _) = next(&mut clients);
        assert_eq!(served(&decisions), 0, "round {round}: nobody is there");
        server = Server::start(&address);
        // It takes a moment to start; from then on periods count.
        Client::connect(address.clone(), None, timeout, PATIENT).unwrap();
        next(&mut clients);
        let (decisions, expected) = next(&mut clients);
        assert_eq!(served(&decisions), 1000, "round {round}: everybody is back");
        assert_eq!(decisions, expected, "round {round}: the past is known again");
    }
    assert!(clients.iter().all(|client| client.counts().sessions == 3));
    drop((server, reference));
}

#[test]
fn signals_reload_and_stop() {
    let directory = Directory::new("signals");
    let server = Server::start(&directory.socket());
    let mut client = Client::connect(directory.socket(), None, PATIENT, PATIENT).unwrap();
    server.signal(Signal::SIGHUP);
    assert!(matches!(client.decide(1, &report(1, 1)).origin, Origin::Service(_)));
    server.signal(Signal::SIGTERM);
    let output = server.end();
    assert!(output.status.success(), "{output:?}");
    let log = String::from_utf8(output.stderr).unwrap();
    let events: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let messages: Vec<&str> = events.iter().filter_map(|event| event["message"].as_str()).collect();
    assert_eq!(messages, ["listening", "serving", "serving", "stopping: no new connections", "stopped"]);
    assert_eq!(events[1]["form"], "guided");
    assert!(!Path::new(&directory.0.join("serve.sock")).exists());
}

#[test]
fn signals_end_the_wait_for_a_policy() {
    let directory = Directory::new("pipe");
    let pipe = directory.0.join("policy");
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", &directory.socket().to_string(), "--policy"]).arg(&pipe);
    let mut server = Server(command.stderr(Stdio::null()).spawn().unwrap());
    // A pipe can be opened in this way once somebody reads it.
    let _silent = eventually(|| File::options().write(true).custom_flags(O_NONBLOCK).open(&pipe).ok());
    server.signal(Signal::SIGTERM);
    let status = eventually(|| server.0.try_wait().unwrap());
    assert_eq!(status.signal(), Some(Signal::SIGTERM as i32));
}

#[test]
fn a_policy_may_come_through_a_pipe_once() {
    let directory = Directory::new("stdin");
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", &directory.socket().to_string(), "--policy", "/dev/stdin"]);
    let mut server = Server(command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let policy = astraea_policy::schemes::policy("astraea").unwrap();
    let mut pipe = server.0.stdin.take().unwrap();
    pipe.write_all(&policy.to_bytes()).unwrap();
    drop(pipe);
    let mut client = Client::connect(directory.socket(), None, PATIENT, PATIENT).unwrap();
    assert!(matches!(client.decide(1, &report(1, 1)).origin, Origin::Service(_)));
    server.signal(Signal::SIGHUP);
    assert!(matches!(client.decide(1, &report(1, 2)).origin, Origin::Service(_)));
    server.signal(Signal::SIGTERM);
    let output = server.end();
    assert!(output.status.success(), "{output:?}");
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains("/dev/stdin: cannot be read: expected a regular file"), "{log}");
}

#[test]
fn each_mistake_is_one_line() {
    let directory = Directory::new("mistakes");
    let file = |name: &str, text: &str| {
        let path = directory.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (garbage, key) = (file("garbage", "x"), file("key", "x"));
    file("locked.lock", "somebody else's");
    let (locked, datagrams) = (directory.0.join("locked"), directory.0.join("datagrams"));
    let _datagrams = UnixDatagram::bind(&datagrams).unwrap();
    let [locked, datagrams] = [locked, datagrams].map(|path| Address::Unix(path).to_string());
    let unix = directory.socket().to_string();
    let name = format!("astr{}", std::process::id());
    for (arguments, expected) in [
        (vec!["serve"], "nothing to listen on: expected at least one address"),
        (vec!["serve", "--listen", "tcp:1"], "expected unix:PATH or udp:HOST:PORT"),
        (vec!["serve", "--listen", "udp:0.0.0.0:0"], "expected a key (--key)"),
        (vec!["serve", "--listen", "unix:/nonexistent/x.sock"], "No such file or directory"),
        (vec!["serve", "--listen", &unix, "--listen", &unix], "is given twice"),
        (vec!["serve", "--listen", &locked], "locked.lock is no lock that a service has left behind"),
        (vec!["serve", "--listen", &datagrams], "a socket of another type that is in use"),
        (vec!["serve", "--listen", &unix, "--policy", &garbage], "not a safetensors file"),
        (vec!["serve", "--listen", &unix, "--policy", "nothing"], "nothing: cannot be read"),
        (vec!["serve", "--listen", &unix, "--key", &key], "mode 644: others could read it"),
        (vec!["serve", "--listen", &unix, "--max-wait", "x"], "expected 0 to 1000"),
        (vec!["serve", "--listen", &unix, "--mode", "abc"], "expected permissions like 660"),
        (vec!["bench-serve", "--connect", "udp:192.0.2.1:1"], "expected an address of this host"),
        (vec!["bench-serve", "--flood", "garbage"], "expected a service on UDP"),
        (vec!["bench-serve", "--duration", "2h"], "expected a time like 30ms or 10s"),
        (vec!["attach", "--name", &name, "--decide", &unix], "expected --mode agent with it"),
        (vec!["attach", "--name", &name, "--mode", "agent", "--decide", &unix], "serve.sock: no service: "),
        (vec!["attach", "--name", &name, "--mode", "agent", "--key", &key], "--decide <ADDRESS>"),
    ] {
        let output = Command::new(PROGRAM).args(&arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{arguments:?}: {text}");
        assert!(text.starts_with("astraea: ") && text.contains(expected), "{arguments:?}: {text}");
        assert!(!Path::new(&directory.0.join("serve.sock")).exists(), "{arguments:?} left a socket");
    }
}

#[test]
fn an_agent_asks_a_service_of_its_own_policy_only() {
    let directory = Directory::new("agent");
    let _server = Server::start(&directory.socket());
    let name = format!("astr{}", std::process::id());
    let address = directory.socket().to_string();
    drop(Client::connect(directory.socket(), None, PATIENT, PATIENT).unwrap());
    let arguments = ["attach", "--name", &name, "--policy", "astraea-paper", "--mode", "agent", "--decide", &address];
    let output = Command::new(PROGRAM).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{text}");
    assert!(text.contains("serves form guided") && text.contains("expected paper"), "{text}");
}

#[test]
fn an_agent_shares_the_key_of_its_service() {
    use std::os::unix::fs::PermissionsExt;

    let directory = Directory::new("keyed");
    let key = directory.0.join("key");
    std::fs::write(&key, "0f".repeat(32)).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let key = key.display().to_string();
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = format!("udp:{free}");
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", &address, "--listen", &directory.socket().to_string(), "--key", &key]);
    let _server = Server(command.stderr(Stdio::null()).spawn().unwrap());
    // On UNIX sockets a service wants no key.
    drop(Client::connect(directory.socket(), None, PATIENT, PATIENT).unwrap());
    let name = format!("astr{}", std::process::id());
    for (options, expected) in [
        // It agrees to talk, and serves another policy than this agent's.
        (vec!["--decide", &address, "--key", &key], "serves form guided"),
        (vec!["--decide", &address], "no answer within 1 s"),
        (vec!["--decide", "udp:192.0.2.1:5"], "needs a key: expected one"),
    ] {
        let command = ["attach", "--name", &name, "--policy", "astraea-paper", "--mode", "agent"];
        let output = Command::new(PROGRAM).args(command).args(&options).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{text}");
        assert!(text.contains(expected), "{options:?}: {text}");
    }
}

/// What a load of this length on a service of its own comes to.
fn load(transport: &[&str], duration: &str) -> serde_json::Value {
    let arguments = ["bench-serve", "--flows", "50", "--connections", "5", "--json", "--duration", duration];
    let output = Command::new(PROGRAM).args(arguments).args(transport).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_load_that_is_interrupted_leaves_nothing_behind() {
    let directory = Directory::new("interrupted");
    let mut load = Command::new(PROGRAM)
        .args(["bench-serve", "--flows", "5", "--duration", "60s"])
        .env("TMPDIR", &directory.0)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let entries = || std::fs::read_dir(&directory.0).unwrap().flatten().map(|entry| entry.path());
    eventually(|| entries().find(|path| path.join("serve.sock").exists()));
    kill(Pid::from_raw(load.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(load.wait().unwrap().code(), Some(130));
    assert_eq!(entries().count(), 0);
}

#[test]
fn a_load_of_a_moment() {
    for transport in [
        &["--period", "30ms"][..],
        &["--udp", "--period", "0"],
        &["--flood"],
        &["--udp", "--flood", "requests"],
        &["--udp", "--flood", "garbage"],
    ] {
        let flood = transport.contains(&"--flood");
        let sent = |result: &serde_json::Value| result["flood"]["sent"].as_u64().unwrap_or(0);
        let mut result = load(transport, "300ms");
        // A flood yields to everybody else: on a busy machine its first turn can take longer than a moment.
        if flood && sent(&result) == 0 {
            result = load(transport, "10s");
        }
        assert!(result["decisions"].as_u64().unwrap() > 0, "{result}");
        assert!(result["decisions_per_cpu_s"].as_f64().unwrap() > 0.0 && result["mean_batch"].as_f64().unwrap() >= 1.0);
        assert!(result["latency_ms"]["p50"].as_f64().unwrap() > 0.0 && result["memory_mb"].as_f64().unwrap() > 0.0);
        assert_eq!(sent(&result) > 0, flood, "{result}");
    }
}
