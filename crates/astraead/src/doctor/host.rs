//! Rights, processors, clock, and what BPF needs.

use std::{fs, io, thread};

use astraea_emu::PRIORITY;
use astraea_kernel::{Error, system};
use nix::libc;

use super::{Check, Feature};

/// Capabilities by their number in linux/capability.h, with what needs them; the loader knows its own.
const CAPABILITIES: [(u32, &str, &[Feature]); 3] = [
    (12, "CAP_NET_ADMIN", &[Feature::Link, Feature::Kernel]),
    (system::SYS_ADMIN, "CAP_SYS_ADMIN", &[Feature::Link, Feature::Kernel]),
    (23, "CAP_SYS_NICE", &[]),
];

/// Everything about the host itself.
///
/// # Errors
/// If there is no room for a thread.
pub(super) fn checks() -> io::Result<Vec<Check>> {
    let mut found = vec![rights(), realtime()?, processors(), clock()];
    found.extend(bpf());
    Ok(found)
}

/// Processors that this process may use.
pub(super) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn rights() -> Check {
    let name = "rights";
    let held = system::capabilities();
    let mut lacking: Vec<(&str, &[Feature])> = CAPABILITIES
        .iter()
        .filter(|(bit, ..)| held & (1 << bit) == 0)
        .map(|(_, name, needed)| (*name, *needed))
        .collect();
    lacking.extend(system::lacking().into_iter().map(|name| (name, &[Feature::Attach][..])));
    let is_host = system::is_host_user();
    let who = match (nix::unistd::geteuid().is_root(), is_host) {
        (true, true) => "root",
        (false, true) => "an ordinary user",
        (true, false) => "root of a user namespace",
        (false, false) => "a user of a user namespace",
    };
    if lacking.iter().all(|(_, needed)| needed.is_empty()) {
        return Check::ok(name, who);
    }
    let names: Vec<_> = lacking.iter().map(|(name, _)| *name).collect();
    let mut disabled: Vec<Feature> = lacking.iter().flat_map(|(_, needed)| needed.iter().copied()).collect();
    disabled.sort_by_key(|feature| *feature as u8);
    disabled.dedup();
    let fix = if is_host { "run as root: sudo astraea …" } else { "run as the host's root, outside the namespace" };
    Check::missing(name, format!("{who}, without {}", names.join(", ")), &disabled, fix)
}

fn realtime() -> io::Result<Check> {
    let name = "real-time priority";
    let permitted = thread::Builder::new().spawn(|| {
        let parameter = libc::sched_param { sched_priority: PRIORITY };
        // SAFETY: the pointer is to a parameter that lives across the call; 0 is the calling thread, which then ends.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) == 0 }
    })?;
    if permitted.join().unwrap_or(false) {
        return Ok(Check::ok(name, "SCHED_FIFO"));
    }
    let limits = "packets leave emulated links late when the machine is busy";
    Ok(Check::limited(name, "not permitted", limits, "run as root, or with CAP_SYS_NICE or a limit on rtprio"))
}

fn processors() -> Check {
    let count = cores();
    let found = format!("{count} core{}", if count == 1 { "" } else { "s" });
    if count >= 2 {
        return Check::ok("processors", found);
    }
    let limits = "emulated links compete with the traffic on them; keep to 100 Mbit/s";
    Check::limited("processors", found, limits, "use a machine with two or more")
}

fn clock() -> Check {
    let (name, directory) = ("clock source", "/sys/devices/system/clocksource/clocksource0");
    let read = |file: &str| fs::read_to_string(format!("{directory}/{file}")).unwrap_or_default();
    let current = read("current_clocksource").trim().to_owned();
    match current.as_str() {
        "" => Check::limited(name, "unknown", "timing may be coarse", &format!("look at {directory}")),
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" => {
            let available = read("available_clocksource");
            let better = available.split_whitespace().find(|source| ["tsc", "kvm-clock"].contains(source));
            let fix = format!("echo {} > {directory}/current_clocksource", better.unwrap_or("tsc"));
            Check::limited(name, current, "asking for the time is slow: emulated links reach lower rates", &fix)
        }
        _ => Check::ok(name, current),
    }
}

fn bpf() -> [Check; 4] {
    let attach = &[Feature::Attach];
    let version = match system::version() {
        Ok(()) => Check::ok("kernel version", "new enough for the controller"),
        Err(error) => Check::missing("kernel version", error.to_string(), attach, "use a newer kernel"),
    };
    let types = system::types();
    let btf = if matches!(types, Err(Error::NoTypes)) {
        let fix = "use a kernel built with CONFIG_DEBUG_INFO_BTF=y";
        Check::missing("type information (BTF)", format!("no {}", system::TYPES), attach, fix)
    } else {
        Check::ok("type information (BTF)", system::TYPES)
    };
    let operations = if types.is_ok() {
        Check::ok("BPF congestion control", "tcp_congestion_ops as struct_ops")
    } else {
        let fix = "use a kernel built with CONFIG_BPF_SYSCALL=y, CONFIG_BPF_JIT=y and CONFIG_DEBUG_INFO_BTF=y";
        Check::missing("BPF congestion control", "no struct_ops for TCP", attach, fix)
    };
    [version, btf, operations, file_system()]
}

/// Where BPF objects have names; whoever may mount it need not have done so.
fn file_system() -> Check {
    let name = "BPF file system";
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    // Where else one may be mounted is of no use: `attach` looks there.
    let there = |line: &str| line.split(' ').skip(1).take(2).eq([system::FILE_SYSTEM, "bpf"]);
    match mounts.lines().find(|line| there(line)) {
        Some(_) => Check::ok(name, system::FILE_SYSTEM),
        None if system::capabilities() & (1 << system::SYS_ADMIN) != 0 => {
            Check::ok(name, "not mounted; astraea attach does that")
        }
        None => Check::missing(name, "not mounted", &[Feature::Attach], "mount -t bpf bpf /sys/fs/bpf"),
    }
}
