//! The decision core on events from a process: in the kernel, as native code, and what both are compared with.
//!
//! A [`Prober`] loads the program without registering it. Tests compare it with [`native`], benchmarks time it.

use std::os::fd::{AsFd as _, AsRawFd as _};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, Object, ProgramInput};

use crate::error::{Error, Result};
use crate::intf::{self, Agent, PROBES, Probe, bytes_of, from_bytes};
use crate::object;

/// The program in the kernel, for one flow outside the network stack.
#[derive(Debug)]
pub struct Prober {
    object: Object,
    probes: MapHandle,
}

/// Instructions of a program.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Name of the program.
    pub name: String,
    /// Instructions as loaded.
    pub size: u32,
    /// Instructions that the verifier looked at; a million at most.
    pub verified: u32,
}

impl Prober {
    /// Loads the program with this policy.
    ///
    /// # Errors
    /// As [`crate::system::check`] and those of the kernel.
    pub fn new(policy: &intf::Policy) -> Result<Self> {
        crate::system::glance()?;
        let (object, _) = object::load("astraea_probe", policy, true)?;
        let probes = object::map(&object, "probes")?;
        Ok(Self { object, probes })
    }

    /// Begins again with a flow of which nothing is known.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn reset(&mut self) -> Result<()> {
        object::set(&object::map(&self.object, "probed")?, &*intf::zeroed::<Agent>())
    }

    /// Another policy.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn swap(&mut self, policy: &intf::Policy) -> Result<()> {
        object::put_policy(&object::map(&self.object, "policies")?, policy).map(drop)
    }

    /// Feeds events to the flow; what came of them is written into them.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn feed(&mut self, events: &mut [Probe]) -> Result<()> {
        let failed = |error: libbpf_rs::Error| Error::system("cannot run the BPF program", &error);
        for events in events.chunks_mut(PROBES) {
            for (index, event) in events.iter().enumerate() {
                self.probes.update(&(index as u32).to_ne_bytes(), bytes_of(event), MapFlags::ANY).map_err(failed)?;
            }
            let mut context = (events.len() as u64).to_ne_bytes();
            let program = self.object.progs_mut().find(|program| program.name() == "probe");
            let input = ProgramInput { context_in: Some(&mut context), ..Default::default() };
            let output = program.ok_or(Error::OtherVersion)?.test_run(input).map_err(failed)?;
            if output.return_value != 0 {
                return Err(Error::System { action: "the BPF program".to_owned(), reason: "has no policy".to_owned() });
            }
            for (index, event) in events.iter_mut().enumerate() {
                let value = self.probes.lookup(&(index as u32).to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
                *event = value.and_then(|bytes| from_bytes(&bytes)).ok_or(Error::OtherVersion)?;
            }
        }
        Ok(())
    }

    /// What the verifier spent on each program.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn costs(&self) -> Result<Vec<Cost>> {
        let failed = |error: libbpf_rs::Error| Error::system("cannot read what the kernel knows of a program", &error);
        let mut costs = Vec::new();
        for program in self.object.progs().filter(libbpf_rs::ProgramImpl::autoload) {
            let mut info = libbpf_rs::libbpf_sys::bpf_prog_info::default();
            let mut length = size_of_val(&info) as u32;
            // SAFETY: the structure is as long as `length` says and asks for no arrays.
            let code = unsafe {
                libbpf_rs::libbpf_sys::bpf_prog_get_info_by_fd(
                    program.as_fd().as_raw_fd(),
                    &raw mut info,
                    &raw mut length,
                )
            };
            if code != 0 {
                return Err(failed(libbpf_rs::Error::from_raw_os_error(-code)));
            }
            let name = program.name().to_string_lossy().into_owned();
            costs.push(Cost { name, size: info.xlated_prog_len / 8, verified: info.verified_insns });
        }
        Ok(costs)
    }
}

/// The decision core as native code.
pub mod native {
    use crate::intf::{Agent, Policy, Probe};

    unsafe extern "C" {
        fn astraea_native_events(agent: *mut Agent, policy: *const Policy, events: *mut Probe, count: u64);
        fn astraea_native_ln(x: u64, fraction: i32) -> i64;
        fn astraea_native_exp(x: i64) -> u64;
        fn astraea_native_root(x: u64, fraction: i32) -> u64;
        fn astraea_native_tanh(x: i64) -> i64;
    }

    /// Feeds events to a flow; what came of them is written into them.
    pub fn feed(agent: &mut Agent, policy: &Policy, events: &mut [Probe]) {
        // SAFETY: the structures are those of the C code, whose indices are bounded whatever is in them.
        unsafe { astraea_native_events(agent, policy, events.as_mut_ptr(), events.len() as u64) }
    }

    /// `ln(x / 2^fraction)` in Q24, for a positive x.
    pub fn ln(x: u64, fraction: i32) -> i64 {
        // SAFETY: arithmetic only.
        unsafe { astraea_native_ln(x, fraction) }
    }

    /// `e^x` in Q30 for x in Q30.
    pub fn exp(x: i64) -> u64 {
        // SAFETY: arithmetic only.
        unsafe { astraea_native_exp(x) }
    }

    /// The root of a number with so many bits below the point.
    pub fn root(x: u64, fraction: i32) -> u64 {
        // SAFETY: arithmetic only.
        unsafe { astraea_native_root(x, fraction) }
    }

    /// The hyperbolic tangent of a Q24 number.
    pub fn tanh(x: i64) -> i64 {
        // SAFETY: arithmetic only.
        unsafe { astraea_native_tanh(x) }
    }
}
