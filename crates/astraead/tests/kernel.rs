//! `astraead attach`, `detach` and `status` from outside: what they print, and that a mistake is one line.

#[path = "../../emu/tests/machine/mod.rs"]
mod machine;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output};
use std::time::Duration;

/// A name that nobody else has; detached at the end whatever happens.
struct Name(String);

impl Name {
    fn new(suffix: &str) -> Self {
        Self(format!("astr{}{suffix}", std::process::id()))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_astraead"));
        command.arg(arguments[0]).args(["--name", &self.0]).args(&arguments[1..]);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The one line of a command that fails.
    fn fail(&self, arguments: &[&str]) -> String {
        line(&self.run(arguments))
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let _ = self.run(&["detach"]);
    }
}

fn line(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

fn cannot_run() -> bool {
    machine::skipped(machine::missing_for_controllers())
}

#[test]
fn mistakes_are_one_line_and_the_running_policy_stays() {
    if cannot_run() {
        return;
    }
    let name = Name::new("a");
    assert!(name.fail(&["status"]).contains("is not attached"));
    assert!(name.fail(&["detach"]).contains("is not attached"));
    assert!(name.succeed(&["attach"]).contains("runs astraea ("));
    let file = std::env::temp_dir().join(format!("{}.safetensors", name.0));
    let path = file.to_str().unwrap();
    let whole = astraea_policy::shipped::file("astraea-pure").unwrap();
    for (content, expected) in [(&b"nonsense"[..], "not a safetensors file"), (&whole[..whole.len() - 1], "truncated")]
    {
        std::fs::write(&file, content).unwrap();
        assert!(name.fail(&["attach", "--policy", path]).contains(expected));
    }
    assert!(name.fail(&["attach", "--policy", "astrea"]).contains("neither a file nor one of astraea, "));
    assert!(name.fail(&["attach", "--foreground"]).contains("attached already"));
    assert!(name.succeed(&["status"]).contains("policy     astraea 25-"));
    std::fs::write(&file, whole).unwrap();
    name.succeed(&["attach", "--policy", path]);
    let status: serde_json::Value = serde_json::from_str(&name.succeed(&["status", "--json"])).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(status["policy"]["name"], "astraea-pure");
    assert_eq!((&status["packets_acked"], &status["packets_lost"]), (&0.into(), &0.into()));
    assert_eq!(status["flows"], serde_json::json!([]));
    name.succeed(&["detach"]);
    assert!(name.fail(&["detach"]).contains("is not attached"));
}

#[test]
fn connections_by_the_system_s_default_are_told_of() {
    if cannot_run() {
        return;
    }
    let name = Name::new("e");
    let script = "$0 attach --name $1 && echo $1 > /proc/sys/net/ipv4/tcp_congestion_control && $0 detach --name $1";
    let mut command = Command::new("unshare");
    let output = command.args(["--net", "sh", "-c", script, env!("CARGO_BIN_EXE_astraead"), &name.0]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{said}");
    assert!(said.contains(&format!("{} is detached\nnew connections still have it by net.ipv4.", name.0)), "{said}");
}

#[test]
fn the_missing_capability_is_named() {
    if cannot_run() {
        return;
    }
    let name = Name::new("b");
    let output = name.command(&["attach"]).uid(65534).gid(65534).output();
    let Ok(output) = output else {
        eprintln!("skipped: the program cannot be run by another user from here");
        return;
    };
    assert!(line(&output).contains("missing capability CAP_BPF"), "{output:?}");
}

#[test]
fn root_of_a_user_namespace_is_not_the_host_s() {
    let inside = |program: &str, words: &[&str]| {
        Command::new("unshare").args(["--user", "--map-root-user", program]).args(words).output()
    };
    if !inside("true", &[]).is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no user namespace can be made");
        return;
    }
    let astraead = env!("CARGO_BIN_EXE_astraead");
    let output = inside(astraead, &["doctor", "--json"]).unwrap();
    assert!(output.status.success(), "{output:?}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rights = found["checks"].as_array().unwrap().iter().find(|check| check["name"] == "rights").unwrap();
    assert_eq!(rights["found"], "root of a user namespace, without CAP_BPF, CAP_PERFMON");
    assert_eq!(rights["fix"], "run as the host's root, outside the namespace");
    assert_eq!(rights["disables"], serde_json::json!(["astraea attach"]));
    if !cannot_run() {
        let refused = line(&inside(astraead, &["attach"]).unwrap());
        assert!(refused.contains("nobody in a user namespace may load BPF programs"), "{refused}");
    }
}

#[test]
fn metrics_are_served_until_the_end_and_nothing_is_left() {
    if cannot_run() {
        return;
    }
    let name = Name::new("c");
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut child = name.command(&["attach", "--metrics", &address]).spawn().unwrap();
    let get = || {
        let mut stream = TcpStream::connect(&address).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.contains("astraea_policy_info").then_some(text)
    };
    let text = (0..200).find_map(|_| {
        get().or_else(|| {
            std::thread::sleep(Duration::from_millis(50));
            None
        })
    });
    let text = text.expect("metrics within ten seconds");
    assert!(text.contains("astraea_fallbacks_total{reason=\"outside domain\"} 0"), "{text}");
    let process = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(name.fail(&["status"]).contains("is not attached"));
}

#[test]
fn a_killed_agent_leaves_a_controller_that_can_be_told_what_to_do() {
    if cannot_run() {
        return;
    }
    let name = Name::new("d");
    let mut child = name.command(&["attach", "--mode", "agent"]).spawn().unwrap();
    let up = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        name.run(&["status"]).status.success()
    });
    assert!(up);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(name.succeed(&["status"]).contains("decided agent"));
    name.succeed(&["attach"]);
    assert!(name.succeed(&["status"]).contains("decided in-kernel"));
}
