//! Metrics over HTTP: just enough of it for a scraper.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest request that is read.
const LONGEST: usize = 8192;

/// Time that a scraper has for its request, and for taking the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Scrapers that have a thread each; beyond them one waits for the other.
const THREADS: usize = 16;

/// Formats of metrics.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// Prometheus' own.
    Prometheus,
    /// `OpenMetrics`, which came of it.
    OpenMetrics,
}

impl Format {
    /// Its media type.
    fn media(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A socket for scrapers of `/metrics`, bound before anything is done that would be in vain without it.
#[derive(Debug)]
pub struct Page(TcpListener);

impl Page {
    /// Listens at an address.
    ///
    /// # Errors
    /// It is taken, or not of this host.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).map(Self)
    }

    /// Answers each scraper with what `metrics` says then, or why it says nothing, from threads of its own, until the process
    /// ends. Returns the address.
    ///
    /// # Errors
    /// There are no threads left.
    pub fn serve(
        self,
        format: Format,
        metrics: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    ) -> io::Result<SocketAddr> {
        serve(self.0, format, metrics, PATIENCE)
    }
}

fn serve(
    listener: TcpListener,
    format: Format,
    metrics: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    patience: Duration,
) -> io::Result<SocketAddr> {
    let bound = listener.local_addr()?;
    let metrics = Arc::new(metrics);
    let thread = |name: &str| thread::Builder::new().name(name.to_owned());
    thread("metrics").spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            // Whoever dawdles is cut off, and in nobody's way until then.
            let shared = Arc::clone(&metrics);
            let scraper = move || drop(answer(stream, format, &*shared, patience));
            if Arc::strong_count(&metrics) > THREADS + 1 {
                scraper();
            } else if let Err(error) = thread("scraper").spawn(scraper) {
                tracing::warn!("metrics: {error}");
            }
        }
    })?;
    Ok(bound)
}

fn answer(
    mut stream: TcpStream,
    format: Format,
    metrics: &dyn Fn() -> Result<String, String>,
    patience: Duration,
) -> io::Result<()> {
    stream.set_write_timeout(Some(patience))?;
    let request = head(&mut stream, patience)?;
    let plain = "text/plain; charset=utf-8";
    let (status, media, body) = match request.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["GET", "/metrics"] => match metrics() {
            Ok(body) => ("200 OK", format.media(), body),
            Err(reason) => ("503 Service Unavailable", plain, reason + "\n"),
        },
        ["GET", _] => ("404 Not Found", plain, "expected /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", plain, "expected GET\n".to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The request up to the empty line.
fn head(stream: &mut TcpStream, patience: Duration) -> io::Result<String> {
    let (mut bytes, until) = (Vec::new(), Instant::now() + patience);
    let mut buffer = [0; 1024];
    while !bytes.ends_with(b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let read = stream.read(&mut buffer)?;
        bytes.extend(&buffer[..read]);
        if read == 0 || bytes.len() > LONGEST || left.is_zero() {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_say_nothing_are_in_nobodys_way() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        // Nobody is cut off while the test runs.
        let patience = Duration::from_mins(10);
        let address = serve(listener, Format::Prometheus, || Ok("x 1\n".to_owned()), patience).expect("it has threads");
        let silent: Vec<_> = (1..THREADS).map(|_| TcpStream::connect(address).expect("it listens")).collect();
        let mut scraper = TcpStream::connect(address).expect("it listens");
        scraper.set_read_timeout(Some(Duration::from_mins(1))).expect("not zero");
        scraper.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("it is open");
        let mut answer = String::new();
        scraper.read_to_string(&mut answer).expect("it is answered");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nx 1\n"), "{answer}");
        drop(silent);
    }
}
