//! Both ends of a flow: an application with data to send, and one that compares and counts them.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use astraea_cc::{INITIAL_WINDOW, Nanos};
use astraea_sim::source::Source;
use astraea_sim::{FlowSlot, FlowStats, SourceConfig};
use rand_xoshiro::Xoshiro256PlusPlus;
use s2n_quic::client::Connect;
use s2n_quic::stream::SendStream;
use s2n_quic::{Client, Connection, Server};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::endpoint::{NAME, address};
use super::{Clock, DATAGRAM, FlowPlan, Outcome, pattern};

/// Data that is handed to the stack at once.
const CHUNK: u64 = 1 << 16;

/// How often a sender that must be able to fall silent looks whether the stack wants more.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Error code of a flow that is over.
const OVER: u32 = 0;

/// What both ends know of a flow.
pub(super) struct Record {
    source: Source,
    rng: Xoshiro256PlusPlus,
    received: u64,
    length: Nanos,
    last: usize,
    connected: bool,
    ended_at: Option<Nanos>,
    failure: Option<String>,
    pub(super) stats: FlowStats,
    slots: Vec<FlowSlot>,
}

pub(super) fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Record {
    pub(super) fn new(source: SourceConfig, length: Nanos, duration: Nanos, rng: Xoshiro256PlusPlus) -> Self {
        Self {
            source: Source::new(source),
            rng,
            received: 0,
            length,
            last: duration.div_ceil(length).saturating_sub(1) as usize,
            connected: false,
            ended_at: None,
            failure: None,
            stats: FlowStats::default(),
            slots: Vec::new(),
        }
    }

    /// The slot of that time.
    pub(super) fn slot(&mut self, now: Nanos) -> &mut FlowSlot {
        let index = ((now / self.length) as usize).min(self.last);
        if index >= self.slots.len() {
            self.slots.resize(index + 1, FlowSlot::default());
        }
        &mut self.slots[index]
    }

    fn fail(&mut self, now: Nanos, problem: impl std::fmt::Display) {
        if self.ended_at.is_none() {
            self.failure = Some(problem.to_string());
            self.ended_at = Some(now);
        }
    }

    /// New data has arrived.
    fn on_received(&mut self, now: Nanos, bytes: u64, way_back: Nanos) {
        self.received += bytes;
        self.stats.delivered_bytes += bytes;
        self.slot(now).delivered += bytes;
        while let Some(completion) = self.source.completed(self.received, now) {
            self.stats.completions.push(completion);
            if self.source.is_sized() {
                // Its sender knows when the last acknowledgement is back.
                self.ended_at.get_or_insert(now + way_back);
            }
        }
    }

    /// What is known at the end of the trial, of a flow that was to start at `start`.
    pub(super) fn outcome(&mut self, start: Nanos, end: Nanos) -> Outcome {
        if !self.connected && self.failure.is_none() && start < end {
            self.failure = Some("never connected".to_owned());
        }
        Outcome {
            stats: self.stats.clone(),
            ended_at: self.ended_at,
            failure: self.failure.clone(),
            slots: std::mem::take(&mut self.slots),
        }
    }
}

/// The receiver: accepts the flow's connection and its stream, and takes what arrives.
pub(super) async fn receive(mut server: Server, flow: Arc<FlowPlan>, record: Arc<Mutex<Record>>, clock: Clock) {
    let Some(mut connection) = server.accept().await else { return };
    let Ok(Some(mut stream)) = connection.accept_receive_stream().await else { return };
    let mut offset = 0;
    // An error is how a flow stops; whether that was meant, its sender knows.
    while let Ok(Some(chunk)) = stream.receive().await {
        let now = clock.now();
        let mut record = lock(&record);
        if !pattern::matches(offset, &chunk) {
            record.fail(now, format_args!("the data are not what was sent, near byte {offset}"));
            return;
        }
        offset += chunk.len() as u64;
        record.on_received(now, chunk.len() as u64, flow.way_back);
    }
}

/// The sender: connects, waits for its start, and sends what its source has until it is to stop.
pub(super) async fn send(client: Client, flow: Arc<FlowPlan>, record: Arc<Mutex<Record>>, clock: Clock) {
    sleep_until(clock.at(flow.start, flow.lead)).await;
    let connection = match connect(&client, &flow).await {
        Ok(connection) => connection,
        Err(error) => return lock(&record).fail(clock.now(), error),
    };
    lock(&record).connected = true;
    let stop = flow.stop.map(|stop| clock.at(stop, 0));
    let sending = write(connection.handle(), &flow, &record, clock);
    let result = match stop {
        None => sending.await,
        Some(stop) => timeout_at(stop, sending).await.unwrap_or(Ok(())),
    };
    let mut record = lock(&record);
    match (result, flow.stop) {
        (Err(error), _) => record.fail(clock.now(), error),
        (Ok(()), Some(stop)) => _ = record.ended_at.get_or_insert(stop),
        (Ok(()), None) => {}
    }
    drop(record);
    connection.close(OVER.into());
}

async fn connect(client: &Client, flow: &FlowPlan) -> Result<Connection, String> {
    let address = address(flow).map_err(|error: io::Error| error.to_string())?;
    let connect = Connect::new(address).with_server_name(NAME);
    client.connect(connect).await.map_err(|error| error.to_string())
}

/// Hands the stack what the source has, when it has it, for as long as it is asked to.
async fn write(
    mut handle: s2n_quic::connection::Handle,
    flow: &FlowPlan,
    record: &Mutex<Record>,
    clock: Clock,
) -> Result<(), String> {
    let mut stream = handle.open_send_stream().await.map_err(|error| error.to_string())?;
    sleep_until(clock.at(flow.start, 0)).await;
    // A source keeps its own time, so that being called late does not delay what follows.
    let mut next = Some(flow.start);
    let mut written = 0;
    loop {
        while let Some(at) = next.filter(|at| *at <= clock.now()) {
            let record = &mut *lock(record);
            next = record.source.advance(at, &mut record.rng);
        }
        let wake = next.map_or_else(far, |at| clock.at(at, 0));
        let ready = lock(record).source.next_payload(CHUNK);
        if ready == 0 {
            sleep_until(wake).await;
            continue;
        }
        if matches!(flow.source, SourceConfig::OnOff { .. }) && is_ahead(record, written) {
            sleep_until(wake.min(Instant::now() + LOOK_EVERY)).await;
            continue;
        }
        let piece = pattern::piece(written, ready);
        let length = piece.len() as u64;
        if let Ok(sent) = timeout_at(wake, wait_for_room(&mut stream)).await {
            sent?;
            lock(record).source.take(length);
            written += length;
            stream.send(piece).await.map_err(|error| error.to_string())?;
        }
    }
}

/// Whether the stack has more than it can send within some milliseconds: what it has cannot be taken back.
fn is_ahead(record: &Mutex<Record>, written: u64) -> bool {
    let stats = &lock(record).stats;
    let sent = (stats.sent - stats.declared_lost.min(stats.sent)) * u64::from(DATAGRAM);
    let window = u64::from(INITIAL_WINDOW * DATAGRAM);
    written > sent + window
}

async fn wait_for_room(stream: &mut SendStream) -> Result<(), String> {
    std::future::poll_fn(|context| stream.poll_send_ready(context)).await.map(|_| ()).map_err(|error| error.to_string())
}

/// As good as never.
fn far() -> Instant {
    Instant::now() + Duration::from_hours(24)
}
