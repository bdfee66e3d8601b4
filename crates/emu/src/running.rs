//! An emulation between two devices, from start to report.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use astraea_sim::Nanos;
use astraea_sim::mesh::Passage;

use crate::clock::{keep_time, monotonic};
use crate::config::Config;
use crate::device::Tun;
use crate::engine::{Direction, Engine};
use crate::error::Error;
use crate::live::{Live, LiveLink};
use crate::pace::{self, Pace};
use crate::report::Report;

/// An emulation that runs on threads of its own until it is stopped or dropped.
pub struct Running {
    config: Config,
    epoch: Nanos,
    stop: Arc<AtomicBool>,
    live: Arc<Live>,
    devices: [Arc<Tun>; 2],
    threads: Vec<JoinHandle<Engine>>,
}

impl Running {
    /// Moves packets between the senders' and the receivers' device from now on; time 0 of the links is
    /// `lead_ns` later.
    ///
    /// # Errors
    /// If the configuration is inconsistent, a trace cannot be read, or no thread can be started.
    pub fn start(config: Config, senders: Tun, receivers: Tun) -> Result<Self, Error> {
        let flows = config.routes.len();
        let (senders, receivers) = (Arc::new(senders), Arc::new(receivers));
        let live = Arc::new(Live::new(config.links.len()));
        let stop = Arc::new(AtomicBool::new(false));
        let out = |first_path| Direction {
            from: Arc::clone(&senders),
            to: Arc::clone(&receivers),
            forward: true,
            first_path,
            gone: false,
        };
        let back = |first_path| Direction {
            from: Arc::clone(&receivers),
            to: Arc::clone(&senders),
            forward: false,
            first_path,
            gone: false,
        };
        let distance = if config.prompt { pace::SHORTEST } else { pace::distance(&config.links, &config.routes) };
        let meshes = config.meshes()?;
        let directions = match meshes.len() {
            1 => vec![vec![out(0), back(flows)]],
            _ => vec![vec![out(0)], vec![back(0)]],
        };
        let epoch = monotonic() + config.lead_ns;
        let devices = [Arc::clone(&senders), Arc::clone(&receivers)];
        let mut running = Self { epoch, stop, live, devices, threads: Vec::new(), config };
        for (mesh, directions) in meshes.into_iter().zip(directions) {
            let live = Arc::clone(&running.live);
            let pace = Pace::new(distance);
            let engine = Engine::new(mesh, directions, flows, running.config.routing, epoch, pace, live);
            running.spawn(engine)?;
        }
        Ok(running)
    }

    fn spawn(&mut self, mut engine: Engine) -> Result<(), Error> {
        let stop = Arc::clone(&self.stop);
        let work = move || {
            engine.tally.realtime = keep_time();
            engine.run(&stop);
            engine
        };
        let builder = std::thread::Builder::new().name("emulator".into());
        self.threads.push(builder.spawn(work).map_err(|error| Error::system("starting a thread", error))?);
        Ok(())
    }

    /// Time 0 of the links on the monotonic clock, in ns.
    pub fn epoch(&self) -> Nanos {
        self.epoch
    }

    /// A link's counters, at most some tens of milliseconds old.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn link(&self, link: usize) -> LiveLink {
        self.live.link(link)
    }

    /// What happened to packets since the last call, if [`Config::log`] is set. Departures are known ahead of their
    /// time, so lines are not in order.
    pub fn take_log(&self) -> Vec<Passage> {
        self.live.take_log()
    }

    /// Stops. What is still on its way is lost; the devices go.
    ///
    /// # Panics
    /// If a thread of the emulation has panicked.
    pub fn stop(mut self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        let join = |thread: JoinHandle<Engine>| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut engines: Vec<Engine> = self.threads.drain(..).map(join).collect();
        for engine in &mut engines {
            self.live.publish(&mut engine.mesh);
        }
        let elapsed = monotonic().saturating_sub(self.epoch);
        let mut report = Report::new(&self.config, elapsed, engines);
        // Where the counters cannot be read there is no telling.
        report.device_dropped = self.devices.iter().filter_map(|device| device.dropped().ok()).sum();
        report.log = self.live.take_log();
        report
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}
