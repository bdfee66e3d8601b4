//! `astraead link` from outside. Needs root and TUN; skipped elsewhere, saying so.
//!
//! The command behind a link is this test program itself, which runs the ignored test named `inside` there.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Where the program under `inside` sends its packets.
const TARGET: &str = "ASTRAEA_TEST_TARGET";

fn astraead() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_astraead"));
    command.arg("link");
    command
}

/// Whether links can be made here; says why not.
fn possible() -> bool {
    let output = astraead().args(["--", "true"]).output().expect("the program is built");
    if !output.status.success() {
        eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    output.status.success()
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

/// The round trip in ms that `inside` measures behind `link`, to a socket of this process.
fn round_trip(mut link: Command) -> f64 {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout is set");
    // Behind one link or several, the caller's end of the outermost leads here: any of our addresses does.
    let port = socket.local_addr().expect("it is bound").port();
    let base = format!("{}:{port}", own_address());
    let mut child = link.env(TARGET, base).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
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

/// An address of this machine that is not a loopback one, which a link cannot reach.
fn own_address() -> String {
    // Nothing is sent: connecting a datagram socket only chooses the source address.
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    let connected = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr());
    connected.map_or_else(|_| "127.0.0.1".into(), |address| address.ip().to_string())
}
