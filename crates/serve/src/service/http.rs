//! The metrics over HTTP: just enough of it for a scraper.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use prometheus_client::registry::Registry;

use super::metrics;

/// Longest request that is read.
const LONGEST: usize = 8192;

/// Time that a scraper has for its request, and for taking the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Scrapers that have a thread each; beyond them one waits for the other.
const THREADS: usize = 16;

/// Serves metrics from threads of its own, until the process ends; returns the address.
pub(super) fn serve(address: SocketAddr, registry: Registry) -> io::Result<SocketAddr> {
    listen(address, registry, PATIENCE)
}

fn listen(address: SocketAddr, registry: Registry, patience: Duration) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let bound = listener.local_addr()?;
    let registry = Arc::new(registry);
    let thread = |name: &str| thread::Builder::new().name(name.to_owned());
    thread("metrics").spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            // Whoever dawdles is cut off, and in nobody's way until then.
            let shared = Arc::clone(&registry);
            let scraper = move || drop(answer(stream, &shared, patience));
            if Arc::strong_count(&registry) > THREADS + 1 {
                scraper();
            } else if let Err(error) = thread("scraper").spawn(scraper) {
                tracing::warn!("metrics: {error}");
            }
        }
    })?;
    Ok(bound)
}

fn answer(mut stream: TcpStream, registry: &Registry, patience: Duration) -> io::Result<()> {
    stream.set_write_timeout(Some(patience))?;
    let request = head(&mut stream, patience)?;
    let (status, body) = match request.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["GET", "/metrics"] => ("200 OK", metrics::text(registry)),
        ["GET", _] => ("404 Not Found", "expected /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "expected GET\n".to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
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
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        // Nobody is cut off while the test runs.
        let address = listen(address, Registry::default(), Duration::from_mins(10)).expect("a port is free");
        let silent: Vec<_> = (1..THREADS).map(|_| TcpStream::connect(address).expect("it listens")).collect();
        let mut scraper = TcpStream::connect(address).expect("it listens");
        scraper.set_read_timeout(Some(Duration::from_mins(1))).expect("not zero");
        scraper.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("it is open");
        let mut answer = String::new();
        scraper.read_to_string(&mut answer).expect("it is answered");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"), "{answer}");
        drop(silent);
    }
}
