//! `astraead link` from outside. Needs root and TUN; skipped elsewhere, saying so.
//!
//! The command behind a link is this test program itself, which runs the ignored test named `inside` there.

#[path = "../../emu/tests/machine/mod.rs"]
mod machine;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Where the program under `inside` sends its packets.
const TARGET: &str = "ASTRAEA_TEST_TARGET";

fn astraead() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_astraead"));
    command.arg("link");
    command
}

/// Whether links can be made here; says what is missing if not.
fn possible() -> bool {
    !machine::skipped(machine::missing_for_links())
}

/// Words that run the test `inside` behind a link.
fn inside_words() -> Vec<String> {
    let program = std::env::current_exe().expect("the test program has a path");
    let words = [&program.display().to_string(), "--ignored", "--exact", "inside", "--nocapture"];
    words.map(str::to_owned).to_vec()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Not a test of its own: measures the round trip from behind a link.
#[test]
#[ignore = "run by other tests, behind a link"]
fn inside() {
    let target = std::env::var(TARGET).expect("a test says where to send");
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout is set");
    let one = || {
        let start = Instant::now();
        socket.send_to(&[0; 100], &target).expect("there is a route");
        socket.recv(&mut [0; 200]).map(|_| start.elapsed().as_micros())
    };
    let shortest = (0..10).filter_map(|_| one().ok()).min().expect("an answer comes");
    eprintln!("shortest {shortest} us");
}

/// The round trip in ms that `inside` measures behind a link with these options, and perhaps one within, to a socket of
/// this process.
fn round_trip(options: &[&str], nested: Option<&[&str]>) -> f64 {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout is set");
    let port = socket.local_addr().expect("it is bound").port();
    // The caller is at the outermost link's base, whatever the number of links.
    let script = format!(r#"export {TARGET}=$ASTRAEA_BASE:{port}; exec "$@""#);
    let mut link = astraead();
    link.args(options).args(["--", "sh", "-c", &script, "sh"]);
    if let Some(options) = nested {
        link.args([env!("CARGO_BIN_EXE_astraead"), "link"]).args(options).arg("--");
    }
    link.args(inside_words()).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut child = link.spawn().expect("it starts");
    let mut buffer = [0; 200];
    let status = loop {
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..length], from).expect("the way back is open");
        }
        if let Some(status) = child.try_wait().expect("it is our child") {
            break status;
        }
    };
    let mut output = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut output).expect("it is text");
    assert!(status.success(), "{output}");
    let words = output.split("shortest ").nth(1).and_then(|rest| rest.split(' ').next());
    words.and_then(|word| word.parse::<f64>().ok()).unwrap_or_else(|| panic!("{output}")) / 1000.0
}

#[test]
fn delays_are_those_asked_for_and_nested_ones_add_up() {
    if !possible() {
        return;
    }
    for (expected, options, nested) in [
        (30.0, vec!["--rate", "100Mbps", "--delay", "15ms"], None),
        (25.0, vec!["--delay", "15ms", "--down-delay=10ms"], None),
        (50.0, vec!["--delay", "15ms"], Some(&["--rate", "50Mbps", "--delay", "10ms"][..])),
    ] {
        let took = round_trip(&options, nested);
        assert!((expected..expected + 20.0).contains(&took), "{took} ms with {options:?} {nested:?}");
    }
}

#[test]
fn the_status_of_the_command_is_passed_on() {
    if !possible() {
        return;
    }
    for (words, expected) in [(["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -TERM $$"], 128 + 15)] {
        let status = astraead().arg("--").args(words).status().expect("it runs");
        assert_eq!(status.code(), Some(expected), "{words:?}");
    }
}

#[test]
fn without_a_command_there_is_a_shell() {
    if !possible() {
        return;
    }
    let mut child =
        astraead().env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("it is piped"), b"echo base $MAHIMAHI_BASE\nexit 3\n")
        .expect("the shell reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).starts_with("base 100."), "{}", text(&output.stdout));
}

/// A program that was started, and what it said first. It is killed if it is still there in the end.
struct Started {
    child: Child,
    said: Vec<String>,
}

impl Started {
    /// Starts it and waits until it has said a line.
    fn new(command: &mut Command) -> Self {
        let mut started = Self::unheard(command);
        started.listen();
        started
    }

    fn unheard(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn().expect("it starts");
        Self { child, said: Vec::new() }
    }

    fn listen(&mut self) {
        let mut line = String::new();
        BufReader::new(self.child.stdout.as_mut().expect("it is piped")).read_line(&mut line).expect("it is text");
        self.said = line.split_whitespace().map(str::to_owned).collect();
    }

    /// The word with that index, a number.
    fn number(&self, index: usize) -> u32 {
        let word = self.said.get(index).and_then(|word| word.parse().ok());
        word.unwrap_or_else(|| panic!("{:?} has no number there", self.said))
    }

    fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("it is our child")
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        // What a link that fails its test has left behind is in its group.
        if std::thread::panicking() {
            let _ = killpg(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

/// The outer device of the link with that base, by the number that no other device ever has here.
struct Device(String);

impl Device {
    fn of(base: &str) -> Self {
        let base: Ipv4Addr = base.parse().unwrap_or_else(|_| panic!("{base} is no address"));
        let destination = format!("{:08X}", u32::from_ne_bytes(base.octets()));
        let table = fs::read_to_string("/proc/net/route").expect("/proc is there");
        let mut routes = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let name = routes.find(|fields| fields.get(1) == Some(&destination.as_str())).expect("the block is routed")[0];
        Self(fs::read_to_string(format!("/sys/class/net/{name}/ifindex")).expect("it is a device"))
    }

    fn exists(&self) -> bool {
        let devices = fs::read_dir("/sys/class/net").expect("/sys is there").flatten();
        devices.filter_map(|entry| fs::read_to_string(entry.path().join("ifindex")).ok()).any(|index| index == self.0)
    }
}

/// A directory that goes with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("astraea-link-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory can be made");
        Self(directory)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether a program can be run; says so if not.
fn has(program: &str, arguments: &[&str]) -> bool {
    let runs = Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success());
    if !runs {
        eprintln!("skipped: {program} {} does not run", arguments.join(" "));
    }
    runs
}

/// Waits until a process has gone.
fn gone(pid: u32) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(5) {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Waits until no process has this network namespace.
fn is_left(namespace: &Path) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(5) {
        let processes = fs::read_dir("/proc").expect("/proc is there").flatten();
        let mut used = processes.filter_map(|entry| fs::read_link(entry.path().join("ns/net")).ok());
        if !used.any(|used| used == namespace) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

fn signal(pid: u32, name: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().expect("there is a shell");
    assert!(status.success());
}

#[test]
fn a_request_to_end_ends_the_command_and_what_it_left_behind() {
    if !possible() {
        return;
    }
    let script = "env -i sleep 61 & echo $ASTRAEA_BASE $!; wait";
    let mut link = Started::new(astraead().args(["--", "sh", "-c", script]));
    let device = Device::of(&link.said[0]);
    assert!(device.exists());
    signal(link.child.id(), "TERM");
    assert_eq!(link.wait().code(), Some(128 + 15));
    assert!(gone(link.number(1)));
    assert!(!device.exists());
}

#[test]
fn a_link_that_is_killed_leaves_nothing_behind() {
    // The kernel forgets to kill a command with its parent once it has become somebody else.
    let stranger = ["setpriv", "--reuid=65534", "--clear-groups", "env", "-i"];
    if !possible() || !has(stranger[0], &["--reuid=65534", "--clear-groups", "true"]) {
        return;
    }
    let script = "sleep 62 & echo $$ $!; wait";
    // Alone, and within another one, of which the outer is killed.
    for around in [&[][..], &[env!("CARGO_BIN_EXE_astraead"), "link", "--"]] {
        let mut link = Started::new(astraead().arg("--").args(around).args(stranger).args(["/bin/sh", "-c", script]));
        let path = format!("/proc/{}/ns/net", link.number(0));
        // Held open, since a namespace of another test would be given the number of one that has gone.
        let _held = fs::File::open(&path).expect("it runs");
        let namespace = fs::read_link(&path).expect("it runs");
        assert_ne!(namespace, fs::read_link("/proc/self/ns/net").expect("so do we"));
        signal(link.child.id(), "KILL");
        assert_eq!(link.wait().signal(), Some(9));
        assert!(gone(link.number(0)), "the command");
        assert!(gone(link.number(1)), "what it has left behind");
        assert!(is_left(&namespace), "nobody keeps the namespace");
    }
}

/// The process that waits for the end of a link.
fn guard_of(link: u32) -> u32 {
    let processes = fs::read_dir("/proc").expect("/proc is there").flatten();
    let mut guards = processes.filter(|entry| {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        read("cmdline").starts_with("astraea-guard\0") && read("status").contains(&format!("\nPPid:\t{link}\n"))
    });
    let guard = guards.next().expect("a link has a guard");
    guard.file_name().to_str().and_then(|name| name.parse().ok()).expect("a process has a number")
}

#[test]
fn the_next_link_cleans_up_where_nobody_else_could() {
    if !possible() {
        return;
    }
    let script = "sleep 63 & echo $ASTRAEA_BASE $!; wait";
    let mut link = Started::new(astraead().args(["--", "sh", "-c", script]));
    let device = Device::of(&link.said[0]);
    let path = format!("/proc/{}/ns/net", link.number(1));
    // As above.
    let _held = fs::File::open(&path).expect("it runs");
    let namespace = fs::read_link(&path).expect("it runs");
    signal(guard_of(link.child.id()), "KILL");
    signal(link.child.id(), "KILL");
    assert_eq!(link.wait().signal(), Some(9));
    assert!(!device.exists());
    assert!(astraead().args(["--", "true"]).status().expect("it runs").success());
    assert!(gone(link.number(1)), "the next start has ended it");
    assert!(is_left(&namespace), "nobody keeps the namespace");
}

#[test]
fn a_guard_in_another_namespace_kills_nobody() {
    let mut bystander = Started::unheard(&mut Command::new("cat"));
    let output = Command::new(env!("CARGO_BIN_EXE_astraead")).args(["guard", "1"]).output().expect("it runs");
    assert!(refusal(&output).starts_with("guard: expected to be started by a link"), "{output:?}");
    // Nor by whom it would kill: here a shell that has nobody else in its namespaces.
    let apart = ["--net", "--pid", "--fork", "--mount-proc"];
    if has("unshare", &[&apart[..], &["true"]].concat()) {
        let script = "$0 guard $(stat -Lc %i /proc/self/ns/net) < /dev/null; exit $?";
        let words = [&apart[..], &["sh", "-c", script, env!("CARGO_BIN_EXE_astraead")]].concat();
        let output = Command::new("unshare").args(words).output().expect("it runs");
        assert!(refusal(&output).starts_with("guard: expected to be started by a link"), "{output:?}");
    }
    drop(bystander.child.stdin.take());
    assert!(bystander.wait().success());
}

#[test]
fn links_of_one_process_number_do_not_meet() {
    let container = ["-pf", "--mount-proc", "--kill-child"];
    if !possible() || !has("unshare", &[&container[..], &["true"]].concat()) {
        return;
    }
    let start = |_| {
        let mut command = Command::new("unshare");
        command.args(container).args([env!("CARGO_BIN_EXE_astraead"), "link", "--delay", "1ms", "--", "sh", "-c"]);
        Started::unheard(command.arg("echo $ASTRAEA_BASE; cat"))
    };
    // All at one time, so that they do not see each other's routes.
    let mut links: Vec<Started> = (0..4).map(start).collect();
    links.iter_mut().for_each(Started::listen);
    let bases: BTreeSet<&String> = links.iter().map(|link| &link.said[0]).collect();
    assert_eq!(bases.len(), links.len(), "{bases:?}");
    for link in &mut links {
        drop(link.child.stdin.take());
        assert!(link.wait().success());
    }
}

#[test]
fn no_name_that_anybody_can_take_is_in_the_way_of_a_link() {
    if !possible() {
        return;
    }
    let name = |block: u32| format!("astraea-link-{}", Ipv4Addr::from_bits((100 << 24 | 64 << 16) + (block << 13)));
    let take = |block| SocketAddr::from_abstract_name(name(block)).and_then(|name| UnixDatagram::bind_addr(&name)).ok();
    let _taken: Vec<UnixDatagram> = (0..512).filter_map(take).collect();
    let output = astraead().args(["--", "true"]).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_device_that_was_removed_keeps_no_thread_busy() {
    if !possible() || !has("ip", &["-V"]) {
        return;
    }
    let scratch = Scratch::new("removed");
    let report = scratch.file("report");
    // One thread for both directions, and one for each.
    for options in [["--delay", "5ms"], ["--rate", "1Gbps"]] {
        let output = astraead()
            .args(options)
            .args(["--report", &report, "--", "sh", "-c", "ip link del astr0; sleep 1; exit 7"])
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert_eq!(text(&output.stderr), "astraea: link: unfaithful: device astr0 has gone\n");
        let found = fs::read_to_string(&report).expect("there is a report");
        let found: serde_json::Value = serde_json::from_str(&found).expect("it is JSON");
        assert!(found["wakeups"].as_u64() < Some(1000), "{found}");
    }
}

#[test]
fn what_cannot_be_written_is_no_end_of_the_command() {
    if !possible() {
        return;
    }
    let scratch = Scratch::new("full");
    let log = scratch.file("log");
    std::os::unix::fs::symlink("/dev/full", format!("{log}.up")).expect("a link can be made");
    // So fast that the disk is full before the command has ended.
    let limited = |limit: &str, options: &[&str], script: &str| {
        let wrapper = format!("ulimit -f {limit}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &wrapper, "sh", env!("CARGO_BIN_EXE_astraead"), "link", "--rate", "1Gbps"]);
        command.args(options).args(["--", "sh", "-c", script]).output().expect("it runs")
    };
    let incomplete = format!("astraea: log {log}.up: incomplete: No space left on device (os error 28)\n");
    for (script, expected) in [("sleep 1; echo ran", 2), ("sleep 1; echo ran; exit 7", 7)] {
        let output = limited("unlimited", &["--log", &log], script);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(expected), "ran\n".to_owned()), "{output:?}");
        assert_eq!(text(&output.stderr), incomplete);
        let other = fs::read_to_string(format!("{log}.down")).expect("there is a log");
        assert!(other.lines().count() > 10_000, "the other one goes on");
    }
    // A limit on the size of files ends whom it is news to.
    let small = scratch.file("small");
    let output = limited("8", &["--log", &small], "sleep 1; echo ran");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), "ran\n".to_owned()), "{output:?}");
    assert_eq!(text(&output.stderr).matches("incomplete: File too large").count(), 2, "{output:?}");
    for (script, expected) in [("echo ran", 2), ("echo ran; exit 7", 7)] {
        let output = limited("unlimited", &["--report", "/dev/full"], script);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(expected), "ran\n".to_owned()), "{output:?}");
        assert_eq!(text(&output.stderr), "astraea: report /dev/full: No space left on device (os error 28)\n");
    }
}

/// A group of processes that has room for so many.
struct Room(PathBuf);

impl Room {
    /// `None` where no such groups can be made; says so.
    fn new(most: usize) -> Option<Self> {
        for hierarchy in ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"] {
            let group = Path::new(hierarchy).join(format!("astraea-test-{}-{most}", std::process::id()));
            if fs::create_dir(&group).is_ok() {
                let room = Self(group);
                if fs::write(room.0.join("pids.max"), most.to_string()).is_ok() {
                    return Some(room);
                }
            }
        }
        eprintln!("skipped: no group of processes can be made under /sys/fs/cgroup");
        None
    }

    /// Runs the program with these arguments as the only one in the group.
    fn run(&self, arguments: &[&str]) -> Output {
        let script = r#"echo $$ > "$0"; exec "$@""#;
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(self.0.join("cgroup.procs")).arg(env!("CARGO_BIN_EXE_astraead"));
        command.args(arguments).output().expect("it runs")
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // A process that has ended leaves it a moment later.
        let begin = Instant::now();
        while fs::remove_dir(&self.0).is_err() && begin.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn no_room_for_a_thread_or_process_is_one_line() {
    if !possible() {
        return;
    }
    for most in 1..6 {
        let Some(room) = Room::new(most) else { return };
        let output = room.run(&["link", "--", "true"]);
        if most == 1 || !output.status.success() {
            let line = refusal(&output);
            assert!(line.ends_with("Resource temporarily unavailable (os error 11)"), "{line}");
        }
        if most == 1 {
            assert!(refusal(&room.run(&["doctor"])).starts_with("doctor: starting a thread: Resource temporarily"));
        }
    }
}

#[test]
fn a_report_that_cannot_be_written_is_known_before_the_command_runs() {
    if !possible() {
        return;
    }
    let output =
        astraead().args(["--report", "/nonexistent/x", "--", "sh", "-c", "echo ran"]).output().expect("it runs");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
    assert!(text(&output.stderr).starts_with("astraea: report /nonexistent/x: No such file"), "{output:?}");
}

#[test]
fn a_link_without_a_delay_has_room() {
    if !possible() {
        return;
    }
    // Forty datagrams, of which each takes the link 2 ms: nearly all of them wait.
    let script = "exec 3<>/dev/udp/$ASTRAEA_BASE/9; d=$(printf 'x%.0s' $(seq 1400)); \
                  for i in $(seq 40); do printf %s \"$d\" >&3; done; sleep .5";
    let path = std::env::temp_dir().join(format!("astraea-{}-room.json", std::process::id()));
    let report = path.display().to_string();
    let output = astraead()
        .args(["--rate", "5Mbps", "--report", &report, "--", "bash", "-c", script])
        .output()
        .expect("it runs");
    let found = fs::read_to_string(&path).expect("there is a report");
    let _ = fs::remove_file(&path);
    assert!(output.status.success(), "{output:?}");
    let found: serde_json::Value = serde_json::from_str(&found).expect("it is JSON");
    let up = &found["links"]["up"];
    assert!(up["offered_packets"].as_u64() >= Some(30) && up["dropped_packets"] == 0, "{up}");
}

#[test]
fn logs_are_in_mahimahis_format() {
    if !possible() {
        return;
    }
    let base = std::env::temp_dir().join(format!("astraea-link-{}", std::process::id()));
    let name = base.display().to_string();
    round_trip(&["--rate", "12Mbps", "--delay", "5ms", "--log", &name], None);
    for direction in ["up", "down"] {
        let path = format!("{name}.{direction}");
        let log = fs::read_to_string(&path).expect("there is a log");
        fs::remove_file(path).expect("it is a file");
        assert!(log.contains("\n# base timestamp: 0\n"), "{log}");
        let lines: Vec<Vec<&str>> =
            log.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect()).collect();
        let of = |kind: &str| lines.iter().filter(|line| line[1] == kind).count();
        assert!(of("+") >= 10 && of("+") == of("-"), "{log}");
        assert!(of("#") >= 50, "one opportunity a millisecond");
        assert!(lines.windows(2).all(|pair| {
            let [a, b] = [&pair[0], &pair[1]].map(|line| line[0].parse::<u64>().expect("a time"));
            a <= b
        }));
        // 128 bytes at 12 Mbit/s leave within a millisecond or two of their arrival.
        assert!(lines.iter().filter(|line| line[1] == "-").all(|line| line[2] == "128" && line[3].len() == 1), "{log}");
    }
}

fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let line = text(&output.stderr);
    assert_eq!(line.lines().count(), 1, "{line}");
    line.trim_end().strip_prefix("astraea: ").expect("it says who speaks").to_owned()
}

#[test]
fn bad_input_is_one_line() {
    for (words, expected) in [
        (
            &["--rate", "100"][..],
            "invalid value '100' for '--rate <RATE>': missing unit in \"100\"; expected e.g. 100Mbps",
        ),
        (&["--rate", "1Mbps", "--trace", "x"], "uplink: expected a rate or a trace, got both"),
        (&["--trace", "/no/such"], "trace /no/such: cannot be read: No such file or directory (os error 2)"),
        (&["--up-loss", "100%"], "uplink: a loss of 100% would let nothing through"),
        (&["--queue", "red"], "uplink: red needs a --buffer"),
        (&["--", "", "x"], "link: the command has no name; expected a program after --, or nothing for a shell"),
    ] {
        assert_eq!(refusal(&astraead().args(words).output().expect("it runs")), expected);
    }
    if possible() {
        let output = astraead().args(["--", "/no/such/command"]).output().expect("it runs");
        assert!(refusal(&output).starts_with("/no/such/command: cannot be started: "));
    }
}

#[test]
fn without_root_one_line_says_what_to_run() {
    if !possible() {
        return;
    }
    // The program has to be reachable for everybody, and nobody's number must be free to run it.
    let copy = std::env::temp_dir().join(format!("astraead-{}", std::process::id()));
    fs::copy(env!("CARGO_BIN_EXE_astraead"), &copy).expect("a file can be copied");
    let output = Command::new(&copy).args(["link", "--", "true"]).uid(65_534).gid(65_534).output();
    fs::remove_file(copy).expect("it is a file");
    let line = refusal(&output.expect("it runs"));
    assert!(line.starts_with("link: ") && line.contains("not permitted; emulated links need root"), "{line}");
    assert!(line.ends_with("; try: sudo astraea link …"), "{line}");
}
