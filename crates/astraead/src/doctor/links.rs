//! What emulated links and real traffic need: tried out, not guessed.

use std::path::Path;

use astraea_emu::{Namespace, Tun};

use super::{Check, Feature, SchemeEntry};

/// What cannot be had without namespaces or devices.
const LINKS: [Feature; 2] = [Feature::Link, Feature::Kernel];

/// Makes a namespace and a device in it, and lets them go again.
pub(super) fn checks() -> [Check; 2] {
    let namespace = Namespace::new();
    let device = match &namespace {
        Ok(namespace) => match namespace.run(|| Ok(Tun::create("astr0").map(drop))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        },
        Err(_) => Err("could not be tried without a namespace".to_owned()),
    };
    [
        match namespace {
            Ok(_) => Check::ok("network namespaces", "made one"),
            Err(error) => {
                let fix = if Path::new("/proc/self/ns/net").exists() {
                    "run as root: sudo astraea …; in a container --cap-add SYS_ADMIN"
                } else {
                    "use a kernel built with CONFIG_NET_NS=y"
                };
                Check::missing("network namespaces", first_clause(&error.to_string()), &LINKS, fix)
            }
        },
        match device {
            Ok(()) => Check::ok("TUN devices", "made one"),
            Err(problem) => {
                let fix = if Path::new("/dev/net/tun").exists() {
                    "run as root: sudo astraea …; in a container --cap-add NET_ADMIN"
                } else {
                    "modprobe tun; in a container --device /dev/net/tun"
                };
                Check::missing("TUN devices", first_clause(&problem), &LINKS, fix)
            }
        },
    ]
}

/// The problem without the advice behind it.
fn first_clause(text: &str) -> String {
    text.split(';').next().unwrap_or(text).to_owned()
}

/// The congestion controls that the kernel has.
pub(super) fn schemes(entries: &[SchemeEntry]) -> Check {
    let name = "congestion controls";
    let has: Vec<_> = entries.iter().filter(|entry| entry.available).map(|entry| entry.name).collect();
    // What has to be attached first is not missing.
    let lacks: Vec<_> = entries.iter().filter(|entry| !entry.available && entry.fix.starts_with("modprobe")).collect();
    if has.is_empty() {
        let found = "the kernel's list cannot be read";
        return Check::missing(name, found, &[Feature::Kernel], "mount -t proc proc /proc");
    }
    let found = has.join(", ");
    if lacks.is_empty() {
        return Check::ok(name, found);
    }
    let missing: Vec<_> = lacks.iter().map(|entry| entry.name).collect();
    let fix: Vec<_> = lacks.iter().map(|entry| entry.fix).collect();
    Check::limited(name, found, &format!("--backend kernel runs no {}", missing.join(", ")), &fix.join("; "))
}
