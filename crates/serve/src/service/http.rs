//! The metrics over HTTP: just enough of it for a scraper.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use prometheus_client::registry::Registry;

use super::metrics;

/// Longest request that is read.
const LONGEST: usize = 8192;

/// Time that a scraper has for its request, and for taking the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Serves metrics from a thread of its own, until the process ends; returns the address.
pub(super) fn serve(address: SocketAddr, registry: Registry) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let bound = listener.local_addr()?;
    std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
        for stream in listener.incoming() {
            match stream {
                // One scraper after the other: whoever dawdles is cut off.
                Ok(stream) => drop(answer(stream, &registry)),
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    })?;
    Ok(bound)
}

fn answer(mut stream: TcpStream, registry: &Registry) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = head(&mut stream)?;
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
fn head(stream: &mut TcpStream) -> io::Result<String> {
    let (mut bytes, until) = (Vec::new(), Instant::now() + PATIENCE);
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
