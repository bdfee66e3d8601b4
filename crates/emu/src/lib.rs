//! Emulated links on a real clock, for unmodified kernel TCP.
//!
//! A whole network of links lives in one process between one pair of TUN devices. Packets are read as the
//! super-packets of segmentation offload, but pass the links segment by segment: the links are the simulator's
//! ([`astraea_sim::mesh`]), so rates, delays, losses and queue disciplines are the same code on a real clock. What is
//! due is merged again and written to the other device. One thread does all of it, or one for each
//! direction where a link is fast, at real-time priority where that is permitted.
//!
//! ```no_run
//! use astraea_emu::{Config, Emulator, Route, receiver_address, sender_address};
//!
//! let link = serde_json::from_str(
//!     r#"{"name": "bottleneck", "rate": {"constant": 1e8}, "delay": {"constant": 15000000}, "limit": {"bytes": 375000}}"#,
//! )?;
//! let route = Route { path: vec![0], ..Route::default() };
//! let emulator = Emulator::start(Config { links: vec![link], routes: vec![route], ..Config::default() })?;
//!
//! // Sockets belong to the namespace of the thread that opens them.
//! let listener = emulator.receivers().run(|| std::net::TcpListener::bind((receiver_address(0), 5001)))?;
//! let mut command = std::process::Command::new("ping");
//! command.args(["-c1", "-I", &sender_address(0).to_string(), &receiver_address(0).to_string()]);
//! emulator.senders().attach(&mut command)?;
//! command.status()?;
//!
//! let mut report = emulator.stop();
//! let packets = report.link_stats(0).served;
//! println!("{packets} packets; problems: {:?}", report.problems());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * [`Emulator`]: senders and receivers in namespaces of their own, a route for each flow by its address.
//! * [`Running`]: the emulation alone, between two [`Tun`] devices that the caller has put where it wants them.
//! * [`Report`]: counters and time series in the simulator's terms, lateness, and whether it can be believed.
//!
//! Linux only.

mod clock;
mod config;
mod device;
mod early;
mod emulator;
mod engine;
mod error;
mod handle;
mod live;
mod namespace;
mod orphans;
mod pace;
mod packet;
mod report;
mod running;

pub use clock::{PRIORITY, monotonic};
pub use config::{Config, MOST_FLOWS, Route, Routing};
pub use device::Tun;
pub use emulator::{DEVICE, Emulator, receiver_address, sender_address};
pub use error::Error;
pub use live::LiveLink;
pub use namespace::Namespace;
pub use orphans::kill_orphans;
pub use report::Report;
pub use running::Running;
