//! The controller as it is registered in the kernel: held by files, found again by them.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle};

use crate::error::{Error, Result};
use crate::intf::{self, Control, Counters};
use crate::lock::Lock;
use crate::{object, system};

/// Under which name sockets choose the controller, and where in the BPF file system its files are.
#[derive(Clone, Debug)]
pub struct Place {
    /// At most 15 letters, digits, `_` or `.`.
    pub name: String,
    /// The directory that holds the files.
    pub directory: PathBuf,
}

impl Default for Place {
    fn default() -> Self {
        Self { name: "astraea".to_owned(), directory: Path::new(system::FILE_SYSTEM).join("astraea") }
    }
}

impl Place {
    /// The directory that is locked.
    fn parent(&self) -> &Path {
        self.directory.parent().unwrap_or(Path::new("/"))
    }

    fn not_attached(&self) -> Error {
        Error::NotAttached { name: self.name.clone(), path: self.directory.clone() }
    }

    fn is_taken(&self) -> bool {
        self.directory.join(LINK).exists()
    }
}

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decider {
    /// The policy in the kernel.
    Kernel,
    /// A process, see [`crate::agent`].
    Agent,
}

impl Decider {
    fn code(self) -> u32 {
        match self {
            Self::Kernel => intf::DECIDER_KERNEL,
            Self::Agent => intf::DECIDER_AGENT,
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "in-kernel",
            Self::Agent => "agent",
        }
    }
}

/// Files of an attachment. The link is what keeps the controller registered.
const LINK: &str = "link";
const MAPS: [&str; 6] = ["policies", "control", "counters", "records", "actions", "flows"];

/// The file of the policy's own map, and its name until it takes the place of the one before. `policies` tells that map's
/// number, from which only `CAP_SYS_ADMIN` comes to the map.
const POLICY: &str = "policy";
const NEXT: &str = "next_policy";

/// Flows that are asked for at first: room for all that there could be is megabytes, which take longer than the list.
const FEW: u32 = 512;

/// Periods that an agent may leave unanswered.
const PATIENCE: u32 = 10;

/// What flows are told about who decides, and the time of day.
fn control(decider: u32) -> Control {
    Control { decider, patience: PATIENCE, clock: system::time_of_day() }
}

/// A registered controller.
#[derive(Debug)]
pub struct Attachment {
    place: Place,
    /// The directory as a file system tells it from others of its name.
    directory: Option<(u64, u64)>,
    maps: [MapHandle; MAPS.len()],
}

/// One flow.
#[derive(Clone, Debug)]
pub struct View {
    /// Far end.
    pub peer: (IpAddr, u16),
    /// Port of the near end.
    pub local_port: u16,
    /// What the kernel tells.
    pub view: intf::View,
}

/// Device and number of a directory, if there is one.
fn identity(directory: &Path) -> Option<(u64, u64)> {
    fs::metadata(directory).ok().map(|found| (found.dev(), found.ino()))
}

impl Attachment {
    /// Loads the program with this policy and registers it.
    ///
    /// # Errors
    /// Whatever is missing ([`system::check`]); something that is attached already. Nothing is left behind then.
    pub fn attach(place: &Place, policy: &intf::Policy, decider: Decider) -> Result<Self> {
        let _lock = locked(place)?;
        if place.is_taken() {
            return Err(Error::Attached { name: place.name.clone(), path: place.directory.clone() });
        }
        Self::anew(place, policy, decider)
    }

    /// Gives the controller of this place another policy and says who decides from now on; attaches one if there is none.
    /// Nobody detaches it in between.
    ///
    /// # Errors
    /// As for [`attach`](Self::attach) and [`open`](Self::open).
    pub fn renew(place: &Place, policy: &intf::Policy, decider: Decider) -> Result<Self> {
        let _lock = locked(place)?;
        if !place.is_taken() {
            return Self::anew(place, policy, decider);
        }
        let attached = Self::open(place)?;
        attached.swap(policy)?;
        attached.set_decider(decider)?;
        Ok(attached)
    }

    fn anew(place: &Place, policy: &intf::Policy, decider: Decider) -> Result<Self> {
        // What a killed process left half done holds nothing in the kernel.
        remove(&place.directory)?;
        let attached = Self::fill(place, policy, decider);
        if attached.is_err() {
            let _ = remove(&place.directory);
        }
        attached
    }

    fn fill(place: &Place, policy: &intf::Policy, decider: Decider) -> Result<Self> {
        let (mut loaded, mut holder) = object::load(&place.name, policy, false)?;
        object::set(&object::map(&loaded, "control")?, &control(decider.code()))?;
        let directory = &place.directory;
        fs::create_dir(directory)
            .map_err(|error| Error::system(format!("cannot make {}", directory.display()), &error))?;
        let pin_failed =
            |error: libbpf_rs::Error| Error::system(format!("cannot write to {}", directory.display()), &error);
        for mut map in loaded.maps_mut() {
            if MAPS.iter().any(|name| map.name() == *name) {
                let path = directory.join(map.name());
                map.pin(path).map_err(pin_failed)?;
            }
        }
        holder.pin(directory.join(POLICY)).map_err(pin_failed)?;
        let mut link = register(&mut loaded, &place.name)?;
        link.pin(directory.join(LINK)).map_err(pin_failed)?;
        let mut maps = Vec::new();
        for name in MAPS {
            maps.push(object::map(&loaded, name)?);
        }
        Self::held(place, maps)
    }

    /// The controller that is attached at this place.
    ///
    /// # Errors
    /// None is, or one of another version of this program, or no right to look.
    pub fn open(place: &Place) -> Result<Self> {
        let directory = &place.directory;
        match fs::symlink_metadata(directory.join(LINK)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Error::system(format!("cannot look into {}", directory.display()), &error));
            }
            Err(_) => return Err(place.not_attached()),
        }
        let mut maps = Vec::new();
        for name in MAPS {
            let map = MapHandle::from_pinned_path(directory.join(name));
            maps.push(map.map_err(|error| opening(name, &error))?);
        }
        let attached = Self::held(place, maps)?;
        if attached.policy()?.interface == intf::INTERFACE { Ok(attached) } else { Err(Error::OtherVersion) }
    }

    fn held(place: &Place, maps: Vec<MapHandle>) -> Result<Self> {
        let maps = maps.try_into().map_err(|_| Error::OtherVersion)?;
        Ok(Self { place: place.clone(), directory: identity(&place.directory), maps })
    }

    /// Whether this very controller is still attached: not if it was detached, and another one attached in its place.
    pub fn is_there(&self) -> bool {
        let now = identity(&self.place.directory);
        now.is_some() && now == self.directory
    }

    /// Under which name and where.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The map of that name.
    pub(crate) fn map(&self, name: &str) -> &MapHandle {
        let index = MAPS.iter().position(|known| *known == name).expect("one of the pinned maps");
        &self.maps[index]
    }

    /// Replaces the policy while flows run: each decision is made with all of the old one or all of the new one.
    ///
    /// # Errors
    /// Those of the kernel; then the old policy stays.
    pub fn swap(&self, policy: &intf::Policy) -> Result<()> {
        let mut holder = object::hold_policy(policy)?;
        let (next, file) = (self.place.directory.join(NEXT), self.place.directory.join(POLICY));
        let failed = |error: &dyn std::error::Error| Error::system(format!("cannot write {}", file.display()), error);
        // One that was killed here may have left it.
        let _ = fs::remove_file(&next);
        holder.pin(&next).map_err(|error| failed(&error))?;
        if let Err(error) = object::use_policy(self.map("policies"), &holder) {
            let _ = fs::remove_file(&next);
            return Err(error);
        }
        // Within one directory that could be written to just now.
        fs::rename(&next, &file).map_err(|error| failed(&error))
    }

    /// The policy that runs.
    ///
    /// # Errors
    /// No right to look, or another version of this program.
    pub fn policy(&self) -> Result<Box<intf::Policy>> {
        let id: u32 = self
            .map("policies")
            .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)
            .ok()
            .flatten()
            .and_then(|bytes| bytes.try_into().ok().map(u32::from_ne_bytes))
            .ok_or(Error::OtherVersion)?;
        let holder = match MapHandle::from_pinned_path(self.place.directory.join(POLICY)) {
            Ok(pinned) if pinned.info().is_ok_and(|info| info.info.id == id) => pinned,
            // Whoever put it there was killed before it had its file.
            _ => MapHandle::from_map_id(id).map_err(|error| opening("the policy", &error))?,
        };
        object::get(&holder).map(Box::new)
    }

    /// Says who decides from now on.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn set_decider(&self, decider: Decider) -> Result<()> {
        object::set(self.map("control"), &control(decider.code()))
    }

    /// Who decides.
    ///
    /// # Errors
    /// Nobody, since it was detached; those of the kernel.
    pub fn decider(&self) -> Result<Decider> {
        let control: Control = object::get(self.map("control"))?;
        match control.decider {
            intf::DECIDER_DETACHED => Err(self.place.not_attached()),
            intf::DECIDER_AGENT => Ok(Decider::Agent),
            _ => Ok(Decider::Kernel),
        }
    }

    /// What was counted since the program was loaded.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn counters(&self) -> Result<Counters> {
        object::get(self.map("counters"))
    }

    /// The flows there are, up to 65 536, in the order in which they began.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn flows(&self) -> Result<Vec<View>> {
        let flows = self.map("flows");
        // All at once: flows that end meanwhile would make a walk from key to key begin again. The map gives whole buckets,
        // each of a few flows; what leaves so much room is therefore all.
        let mut views = list(flows, FEW)?;
        if views.len() > FEW as usize / 2 {
            views = list(flows, flows.max_entries())?;
        }
        views.sort_by_key(|view| view.view.flow);
        Ok(views)
    }

    /// Unregisters the controller of this place. Flows that use it go on, under CUBIC.
    ///
    /// # Errors
    /// There is none, or those of the kernel.
    pub fn detach(place: &Place) -> Result<()> {
        object::quiet();
        let directory = &place.directory;
        if is_missing(directory) {
            return Err(place.not_attached());
        }
        let _lock = Lock::take(place.parent())?;
        // Somebody else may have detached it meanwhile.
        if is_missing(directory) {
            return Err(place.not_attached());
        }
        unregister(directory)
    }

    /// Unregisters this very controller, unless somebody else has.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn end(&self) -> Result<()> {
        if !self.is_there() {
            return Ok(());
        }
        let _lock = Lock::take(self.place.parent())?;
        // Another one may have been attached in its place meanwhile.
        if self.is_there() { unregister(&self.place.directory) } else { Ok(()) }
    }
}

/// Takes a place for oneself, in a BPF file system that is mounted if there is none.
fn locked(place: &Place) -> Result<Lock> {
    system::glance()?;
    system::file_system(&place.directory)?;
    Lock::take(place.parent())
}

fn unregister(directory: &Path) -> Result<()> {
    // One of another version, or half of one, is removed all the same.
    if let Ok(map) = MapHandle::from_pinned_path(directory.join("control")) {
        let _ = object::set(&map, &control(intf::DECIDER_DETACHED));
    }
    // Without its file the link goes too, but some time later, and the name is taken until then. Linux 6.10 cannot do
    // this yet.
    if let Ok(link) = Link::open(directory.join(LINK)) {
        let _ = link.detach();
    }
    remove(directory)
}

/// A controller that is registered as long as the process has it, and that nothing outlives, not even a kill.
pub struct Temporary {
    name: String,
    _link: Link,
    _program: libbpf_rs::Object,
}

impl Temporary {
    /// Registers a policy under a name that nobody else has: the kernel knows but one namespace of them, while processes of
    /// two containers may have the same number.
    ///
    /// # Errors
    /// Whatever is missing ([`system::check`]).
    pub fn register(policy: &intf::Policy) -> Result<Self> {
        system::glance()?;
        // As many digits as fit, by the keys that the standard library draws for each table.
        let name = format!("astr{:011x}", RandomState::new().hash_one(()) >> 20);
        let (mut program, _) = object::load(&name, policy, false)?;
        object::set(&object::map(&program, "control")?, &control(intf::DECIDER_KERNEL))?;
        let link = register(&mut program, &name)?;
        Ok(Self { name, _link: link, _program: program })
    }

    /// The name by which sockets choose it.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn register(loaded: &mut libbpf_rs::Object, name: &str) -> Result<Link> {
    let mut maps = loaded.maps_mut();
    let mut map = maps.find(|map| map.name() == "astraea").expect("a test loads the object with its controller");
    map.attach_struct_ops().map_err(|error| match error.kind() {
        libbpf_rs::ErrorKind::AlreadyExists => Error::NameTaken(name.to_owned()),
        _ => Error::system("cannot register the controller", &error),
    })
}

fn opening(what: &str, error: &libbpf_rs::Error) -> Error {
    match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => match system::check() {
            Err(missing) => missing,
            Ok(()) => Error::system(format!("cannot open {what}"), error),
        },
        _ => Error::system(format!("cannot open {what}"), error),
    }
}

/// The flows of a map, of which at most so many are asked for.
fn list(flows: &MapHandle, count: u32) -> Result<Vec<View>> {
    let listed = flows
        .lookup_batch(count, MapFlags::ANY, MapFlags::ANY)
        .map_err(|error| Error::system("cannot list flows", &error))?;
    Ok(listed.filter_map(|(_, value)| intf::from_bytes(&value)).map(view).collect())
}

fn view(view: intf::View) -> View {
    let peer = if view.family == libc::AF_INET as u32 {
        IpAddr::V4(Ipv4Addr::from(view.address[0].to_ne_bytes()))
    } else {
        let mut bytes = [0; 16];
        for (place, word) in bytes.chunks_exact_mut(4).zip(view.address) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        IpAddr::V6(Ipv6Addr::from(bytes))
    };
    View { peer: (peer, u16::from_be(view.port as u16)), local_port: view.local_port as u16, view }
}

/// Whether there is nothing of that name, as far as one may know.
fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Removes the files of an attachment, the link first.
fn remove(directory: &Path) -> Result<()> {
    let failed = |error: &io::Error| Error::system(format!("cannot remove {}", directory.display()), error);
    for name in [LINK, POLICY, NEXT].iter().chain(&MAPS) {
        match fs::remove_file(directory.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&error)),
            _ => {}
        }
    }
    match fs::remove_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&error)),
        _ => Ok(()),
    }
}
