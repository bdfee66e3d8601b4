//! Answering flows from a process: records come out of the kernel by a ring buffer, answers go into shared memory.

mod remote;

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

use astraea_policy::{Policy, Scratch};
use libbpf_rs::{RingBuffer, RingBufferBuilder};

use crate::attachment::Attachment;
use crate::error::{Error, Result};
use crate::intf::{self, Action, FLOWS, Record};
use crate::layout::ONE;
pub use remote::ask;

/// How long a wait for records may be before it is seen that the end has come.
const WAIT: Duration = Duration::from_millis(100);

/// What answers a flow's record.
pub enum Answer {
    /// An action, -1 to 1, on top of the law.
    Action(f64),
    /// A window in packets.
    Window(f64),
}

/// Answers the records of all flows with a policy's network until `ending`.
///
/// # Errors
/// Those of the kernel.
pub fn answer(attached: &Attachment, policy: &Policy, ending: &AtomicBool) -> Result<()> {
    let mut network = Local::new(policy);
    serve(attached, ending, |record| network.answer(record))
}

/// A policy's network in this process.
struct Local<'a> {
    policy: &'a Policy,
    scratch: Scratch,
    state: Vec<f32>,
    scales: Vec<f32>,
}

impl<'a> Local<'a> {
    fn new(policy: &'a Policy) -> Self {
        let network = policy.network();
        let fixed = astraea_policy::FixedNetwork::new(network, policy.metadata().form);
        let scales = fixed.input_scale.iter().map(|scale| *scale as f32).collect();
        Self { policy, scratch: Scratch::default(), state: vec![0.0; network.inputs()], scales }
    }

    fn answer(&mut self, record: &Record) -> Answer {
        for (index, value) in self.state.iter_mut().enumerate() {
            *value = record.state[index] as f32 / self.scales[index % self.scales.len()];
        }
        Answer::Action(f64::from(self.policy.network().forward(&self.state, &mut self.scratch)))
    }
}

/// Answers each record that asks for it with what `decide` says, until `ending`. Records that do not ask are shown to it
/// as well; what it says to them does not count.
///
/// # Errors
/// Those of the kernel.
pub fn serve(attached: &Attachment, ending: &AtomicBool, mut decide: impl FnMut(&Record) -> Answer) -> Result<()> {
    let actions = Actions::map(attached)?;
    let ring = records(attached, |record| actions.write(&record, &decide(&record)))?;
    while !ending.load(Ordering::Relaxed) && attached.is_there() {
        match ring.poll(WAIT) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::Interrupted => return Err(unreadable(&error)),
            _ => {}
        }
    }
    Ok(())
}

/// The ring by which records come out of the kernel; each is given to `take` when the ring is polled.
fn records<'a>(attached: &Attachment, mut take: impl FnMut(Record) + 'a) -> Result<RingBuffer<'a>> {
    let mut builder = RingBufferBuilder::new();
    let each = move |bytes: &[u8]| {
        if let Some(record) = intf::from_bytes::<Record>(bytes) {
            take(record);
        }
        0
    };
    builder.add(attached.map("records"), each).map_err(|error| unreadable(&error))?;
    builder.build().map_err(|error| unreadable(&error))
}

fn unreadable(error: &libbpf_rs::Error) -> Error {
    Error::system("cannot read the records of flows", error)
}

/// The answers in memory that the kernel reads.
struct Actions(*mut Action);

impl Actions {
    const LENGTH: usize = FLOWS * size_of::<Action>();

    fn map(attached: &Attachment) -> Result<Self> {
        let descriptor = attached.map("actions").as_fd().as_raw_fd();
        // SAFETY: a new mapping of a map that is as long.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Self::LENGTH,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                descriptor,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(Error::system("cannot map the answers to flows", &std::io::Error::last_os_error()));
        }
        Ok(Self(address.cast()))
    }

    /// Writes an answer so that the kernel takes all of it or nothing: the sequence is odd meanwhile.
    fn write(&self, record: &Record, answer: &Answer) {
        let slot = record.slot as usize % FLOWS;
        let (kind, action, window) = match *answer {
            Answer::Action(action) => (intf::ANSWER_ACTION, (action * ONE) as i64, 0),
            Answer::Window(window) => (intf::ANSWER_WINDOW, 0, (window * f64::from(1 << 20)) as u64),
        };
        // SAFETY: the slot is within the mapping, which this process alone writes; the kernel reads it atomically.
        unsafe {
            let place = self.0.add(slot);
            let sequence = AtomicU64::from_ptr(&raw mut (*place).sequence);
            let before = sequence.load(Ordering::Relaxed) & !1;
            sequence.store(before + 1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            (&raw mut (*place).flow).write_volatile(record.flow);
            (&raw mut (*place).period).write_volatile(record.period);
            (&raw mut (*place).action).write_volatile(action);
            (&raw mut (*place).window).write_volatile(window);
            (&raw mut (*place).answer).write_volatile(kind);
            fence(Ordering::SeqCst);
            sequence.store(before + 2, Ordering::Release);
        }
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: mapped in `map`, as long.
        unsafe { libc::munmap(self.0.cast(), Self::LENGTH) };
    }
}
