//! The program, compiled ahead, and how it gets into the kernel.

use std::os::fd::{AsFd as _, AsRawFd as _};

use std::thread;

use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject};

use crate::error::{Error, Result};
use crate::intf::{self, INTERFACE, INTERFACE_MARK, Plain, bytes_of};
use crate::system;

/// The object file, made by `tools/bpf-object.sh` from `src/bpf`.
pub static OBJECT: &[u8] = include_bytes!("bpf/main.bpf.o");

/// The name that the object has for the controller, and its field's length.
const CONTROLLER: &str = "astraea";
const NAME: usize = 16;

/// What only a [`Prober`](crate::probe::Prober) needs.
const PROBE: [&str; 3] = ["probe", "probes", "probed"];

/// The map that holds the policy's own.
const POLICIES: &str = "policies";

/// Loads the program with the controller called `name` and a policy, whose own map is returned too; nothing is registered yet.
/// With `probe` it can be run on events of a process, too.
pub(crate) fn load(name: &str, policy: &intf::Policy, probe: bool) -> Result<(Object, MapHandle)> {
    quiet();
    let mut open = ObjectBuilder::default()
        .open_memory(OBJECT)
        .map_err(|error| Error::system("cannot read the BPF object", &error))?;
    configure(&mut open, name)?;
    if !probe {
        open.progs_mut()
            .filter(|program| program.name() == PROBE[0])
            .for_each(|mut program| program.set_autoload(false));
        for mut map in open.maps_mut().filter(|map| PROBE.iter().any(|name| map.name() == *name)) {
            map.set_autocreate(false).map_err(|error| Error::system("cannot leave a map out", &error))?;
        }
    }
    let policies = policies(&mut open)?;
    thread::scope(|scope| {
        // The kernel returns when nobody can be using the policy before any more, although here there is none: about ten
        // milliseconds, in which the verifier can do its work.
        let put = thread::Builder::new().spawn_scoped(scope, || put_policy(&policies, policy));
        let put = put.map_err(|error| Error::system("cannot start a thread", &error))?;
        let loaded = open.load().map_err(|error| match system::check() {
            Err(missing) => missing,
            Ok(()) => Error::system("the kernel does not take the BPF program", &error),
        });
        let holder = put.join().expect("it does not panic")?;
        Ok((loaded?, holder))
    })
}

/// Makes the map that holds the policy before the rest is loaded.
fn policies(open: &mut OpenObject) -> Result<MapHandle> {
    let failed = |error: libbpf_rs::Error| Error::system("cannot make room for a policy", &error);
    let holder = holder().map_err(failed)?;
    let options = bpf_map_create_opts {
        sz: size_of::<bpf_map_create_opts>() as _,
        inner_map_fd: holder.as_fd().as_raw_fd() as u32,
        ..Default::default()
    };
    let policies = MapHandle::create(MapType::ArrayOfMaps, Some(POLICIES), 4, 4, 1, &options).map_err(failed)?;
    for mut map in open.maps_mut().filter(|map| map.name() == POLICIES) {
        map.reuse_fd(policies.as_fd()).map_err(failed)?;
    }
    Ok(policies)
}

/// A map for one policy.
fn holder() -> libbpf_rs::Result<MapHandle> {
    let options = bpf_map_create_opts { sz: size_of::<bpf_map_create_opts>() as _, ..Default::default() };
    MapHandle::create(MapType::Array, Some("policy"), 4, size_of::<intf::Policy>() as u32, 1, &options)
}

/// libbpf prints a page where a line is wanted; the errors say what matters.
pub(crate) fn quiet() {
    if std::env::var_os("ASTRAEA_BPF_LOG").is_none() {
        libbpf_rs::set_print(None);
    }
}

fn configure(open: &mut OpenObject, name: &str) -> Result<()> {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    if name.is_empty() || name.len() >= NAME || !name.chars().all(valid) {
        return Err(Error::Name(name.to_owned()));
    }
    for mut map in open.maps_mut() {
        let which = map.name().to_string_lossy().into_owned();
        let Some(value) = map.initial_value_mut() else { continue };
        if which == CONTROLLER {
            let old = format!("{CONTROLLER}\0");
            let place = value.windows(old.len()).position(|window| window == old.as_bytes());
            let place = place.expect("a test loads the object: the controller has its name");
            value[place..place + NAME].fill(0);
            value[place..place + name.len()].copy_from_slice(name.as_bytes());
            // Of the two callbacks at its begin (bpf/tcp.h) the kernel has or calls one. The other's place is cleared, so that
            // its program is left out, too.
            let unused = usize::from(system::tells_pauses_by_themselves());
            value[8 * unused..8 * (unused + 1)].fill(0);
        } else if which.ends_with(".rodata") {
            let mark = (INTERFACE_MARK as u64).to_ne_bytes();
            let place = value.chunks_exact_mut(8).find(|chunk| *chunk == mark);
            place.expect("a test loads the object: .rodata has the mark").copy_from_slice(&INTERFACE.to_ne_bytes());
        }
    }
    Ok(())
}

/// The map of that name.
pub(crate) fn map(object: &Object, name: &str) -> Result<MapHandle> {
    let map = object.maps().find(|map| map.name() == name).expect("a test loads the object with all its maps");
    MapHandle::try_from(&map).map_err(|error| Error::system(format!("cannot open the map {name}"), &error))
}

/// Puts a policy into a map of its own, which is returned, and that map into `policies`: flows see the old one or the new one.
pub(crate) fn put_policy(policies: &impl MapCore, policy: &intf::Policy) -> Result<MapHandle> {
    let holder = hold_policy(policy)?;
    use_policy(policies, &holder)?;
    Ok(holder)
}

/// A map with a policy, which nobody uses yet.
pub(crate) fn hold_policy(policy: &intf::Policy) -> Result<MapHandle> {
    let holder = holder().map_err(|error| put_failed(&error))?;
    set(&holder, policy)?;
    Ok(holder)
}

/// Puts a policy's map into `policies`.
pub(crate) fn use_policy(policies: &impl MapCore, holder: &MapHandle) -> Result<()> {
    let id = holder.as_fd().as_raw_fd();
    policies.update(&0_u32.to_ne_bytes(), &id.to_ne_bytes(), MapFlags::ANY).map_err(|error| put_failed(&error))
}

fn put_failed(error: &libbpf_rs::Error) -> Error {
    Error::system("cannot put the policy into the kernel", error)
}

/// Writes the only element of a map.
pub(crate) fn set<T: Plain>(map: &impl MapCore, value: &T) -> Result<()> {
    map.update(&0_u32.to_ne_bytes(), bytes_of(value), MapFlags::ANY)
        .map_err(|error| Error::system(format!("cannot write the map {}", map.name().to_string_lossy()), &error))
}

/// Reads the only element of a map.
pub(crate) fn get<T: Plain>(map: &impl MapCore) -> Result<T> {
    let name = map.name().to_string_lossy().into_owned();
    let value = map
        .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| Error::system(format!("cannot read the map {name}"), &error))?;
    value.and_then(|bytes| intf::from_bytes(&bytes)).ok_or(Error::OtherVersion)
}
