//! Rights, processors, clock, and what BPF needs.

use std::fs;
use std::thread;

use nix::libc;

use super::{Check, Feature};

/// Capabilities by their number in linux/capability.h, with what needs them.
const CAPABILITIES: [(u32, &str, &[Feature]); 5] = [
    (12, "CAP_NET_ADMIN", &[Feature::Link, Feature::Kernel, Feature::Attach]),
    (21, "CAP_SYS_ADMIN", &[Feature::Link, Feature::Kernel]),
    (23, "CAP_SYS_NICE", &[]),
    (38, "CAP_PERFMON", &[Feature::Attach]),
    (39, "CAP_BPF", &[Feature::Attach]),
];

/// Says that the kernel can take a congestion control as a BPF program; the type's name in its BTF.
const STRUCT_OPS: &[u8] = b"bpf_struct_ops_tcp_congestion_ops";

const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Everything about the host itself.
pub(super) fn checks() -> Vec<Check> {
    let mut found = vec![rights(), realtime(), processors(), clock()];
    found.extend(bpf());
    found
}

/// Processors that this process may use.
pub(super) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn rights() -> Check {
    let name = "rights";
    let held = capabilities();
    let lacking: Vec<_> = CAPABILITIES.iter().filter(|(bit, ..)| held & (1 << bit) == 0).collect();
    let who = if nix::unistd::geteuid().is_root() { "root" } else { "an ordinary user" };
    if lacking.iter().all(|(.., needed)| needed.is_empty()) {
        return Check::ok(name, who);
    }
    let names: Vec<_> = lacking.iter().map(|(_, name, _)| *name).collect();
    let mut disabled: Vec<Feature> = lacking.iter().flat_map(|(.., needed)| needed.iter().copied()).collect();
    disabled.sort_by_key(|feature| *feature as u8);
    disabled.dedup();
    Check::missing(name, format!("{who}, without {}", names.join(", ")), &disabled, "run as root: sudo astraea …")
}

/// The effective capabilities of this process.
fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

fn realtime() -> Check {
    let name = "real-time priority";
    let permitted = thread::spawn(|| {
        let parameter = libc::sched_param { sched_priority: 10 };
        // SAFETY: the pointer is to a parameter that lives across the call; 0 is the calling thread, which then ends.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) == 0 }
    });
    if permitted.join().unwrap_or(false) {
        return Check::ok(name, "SCHED_FIFO");
    }
    let limits = "packets leave emulated links late when the machine is busy";
    Check::limited(name, "not permitted", limits, "run as root, or with CAP_SYS_NICE or a limit on rtprio")
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

fn bpf() -> [Check; 3] {
    let types = fs::read(BTF).unwrap_or_default();
    let btf = if types.is_empty() {
        let fix = "use a kernel built with CONFIG_DEBUG_INFO_BTF=y";
        Check::missing("type information (BTF)", format!("no {BTF}"), &[Feature::Attach], fix)
    } else {
        Check::ok("type information (BTF)", BTF)
    };
    let operations = if types.windows(STRUCT_OPS.len()).any(|window| window == STRUCT_OPS) {
        Check::ok("BPF congestion control", "tcp_congestion_ops as struct_ops")
    } else {
        let fix = "use a kernel built with CONFIG_BPF_SYSCALL=y, CONFIG_BPF_JIT=y and CONFIG_DEBUG_INFO_BTF=y";
        Check::missing("BPF congestion control", "no struct_ops for TCP", &[Feature::Attach], fix)
    };
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let place =
        mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|fields| fields.get(2) == Some(&"bpf"));
    let files = match place {
        Some(fields) => Check::ok("BPF file system", fields[1]),
        None => Check::missing("BPF file system", "not mounted", &[Feature::Attach], "mount -t bpf bpf /sys/fs/bpf"),
    };
    [btf, operations, files]
}
