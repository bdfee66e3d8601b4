//! Figures of links while they run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use astraea_sim::mesh::{Mesh, Passage};

/// A link's counters at some recent time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveLink {
    /// Wire bytes whose transmission has begun.
    pub served_bytes: u64,
    /// Packets dropped by the queue.
    pub dropped: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets waiting.
    pub queued: u64,
}

#[derive(Default)]
struct Cell {
    served_bytes: AtomicU64,
    dropped: AtomicU64,
    lost: AtomicU64,
    queued: AtomicU64,
}

/// What the threads of an emulation publish. Every link is written by one thread.
pub(crate) struct Live {
    cells: Vec<Cell>,
    log: Mutex<Vec<Passage>>,
}

impl Live {
    pub(crate) fn new(links: usize) -> Self {
        Self { cells: (0..links).map(|_| Cell::default()).collect(), log: Mutex::default() }
    }

    pub(crate) fn publish(&self, mesh: &mut Mesh) {
        for (index, cell) in self.cells.iter().enumerate() {
            let queued = mesh.queue_length(index) as u64;
            let stats = mesh.link_stats(index);
            if stats.offered == 0 {
                continue;
            }
            cell.served_bytes.store(stats.served_bytes, Ordering::Relaxed);
            cell.dropped.store(stats.dropped, Ordering::Relaxed);
            cell.lost.store(stats.lost, Ordering::Relaxed);
            cell.queued.store(queued, Ordering::Relaxed);
        }
        let mut log = mesh.take_log().peekable();
        if log.peek().is_some()
            && let Ok(mut kept) = self.log.lock()
        {
            kept.extend(log);
        }
    }

    pub(crate) fn link(&self, index: usize) -> LiveLink {
        let cell = &self.cells[index];
        LiveLink {
            served_bytes: cell.served_bytes.load(Ordering::Relaxed),
            dropped: cell.dropped.load(Ordering::Relaxed),
            lost: cell.lost.load(Ordering::Relaxed),
            queued: cell.queued.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn take_log(&self) -> Vec<Passage> {
        self.log.lock().map(|mut log| std::mem::take(&mut *log)).unwrap_or_default()
    }
}
