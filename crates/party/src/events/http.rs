//! `GET /metrics`, and nothing else: HTTP/1.1 for one scraper or a few, in the clear and without authentication, so on this
//! machine's own addresses unless the operator says otherwise.
//!
//! What callers can take is bounded: so many connections at a time, so many bytes of a request, so long for all of it.

use super::metrics::Metrics;
use crate::config::Address;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Connections at a time; further ones are closed at once.
pub const MOST_CONNECTIONS: usize = 8;
/// Largest request, bytes.
pub const MAX_REQUEST: usize = 4096;
/// For a request to arrive, and again for its answer to leave.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// A scraper's connection; its place is free again when it is dropped.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Serve on `address` from now on, on threads of its own; gives the address that it has. An error where the address cannot
/// be used, or is not this machine's own and `anywhere` is false.
pub fn serve(address: &Address, anywhere: bool, metrics: Arc<Metrics>) -> io::Result<Address> {
    let found = address.resolve()?;
    let own = |a: &SocketAddr| a.ip().to_canonical().is_loopback();
    if !anywhere && !found.iter().all(own) {
        let why = "others could reach it, and metrics are served in the clear to everybody: use 127.0.0.1, or say that you \
                   accept that (`anywhere = true` in [metrics], `--metrics-anywhere`)";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let listener = TcpListener::bind(&found[..])?;
    let bound = listener.local_addr().unwrap_or_else(|_| (Ipv4Addr::LOCALHOST, address.port).into());
    Builder::new().name("privet-metrics".into()).spawn(move || take_calls(&listener, &metrics))?;
    Ok(Address { host: bound.ip().to_string(), port: bound.port() })
}

fn take_calls(listener: &TcpListener, metrics: &Arc<Metrics>) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Out of descriptors, for example.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        let place = Place(open.clone());
        if open.fetch_add(1, Ordering::SeqCst) >= MOST_CONNECTIONS {
            continue;
        }
        let metrics = metrics.clone();
        let answer = move || {
            let _place = place;
            // A caller that leaves early is no business of anybody's.
            let _ = answer(stream, &metrics);
        };
        let _ = Builder::new().name("privet-scrape".into()).spawn(answer);
    }
}

/// One request, one answer.
fn answer(mut stream: TcpStream, metrics: &Metrics) -> io::Result<()> {
    let (status, body) = match request(&mut stream)? {
        Ok(()) => ("200 OK", metrics.text()),
        Err(status) => (status, format!("{status}\n")),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    let deadline = Instant::now() + PATIENCE;
    let text = head + &body;
    let mut left = text.as_bytes();
    while !left.is_empty() {
        stream.set_write_timeout(Some(remaining(deadline)?))?;
        match stream.write(left)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => left = &left[n..],
        }
    }
    Ok(())
}

/// Read a request up to its empty line; the status of the answer where it is refused.
fn request(stream: &mut TcpStream) -> io::Result<Result<(), &'static str>> {
    let deadline = Instant::now() + PATIENCE;
    let (mut head, mut buffer) = (Vec::new(), [0; 512]);
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        // One deadline for all of it: a byte now and then does not keep the connection.
        stream.set_read_timeout(Some(remaining(deadline)?))?;
        let n = stream.read(&mut buffer)?;
        if n == 0 {
            return Ok(Err("400 Bad Request"));
        }
        head.extend_from_slice(&buffer[..n]);
        if head.len() > MAX_REQUEST {
            return Ok(Err("431 Request Header Fields Too Large"));
        }
    }
    let line = head.split(|&b| b == b'\r').next().unwrap_or_default();
    let mut words = line.split(|&b| b == b' ');
    Ok(match (words.next(), words.next(), words.next(), words.next()) {
        (Some(b"GET"), Some(b"/metrics"), Some(b"HTTP/1.1" | b"HTTP/1.0"), None) => Ok(()),
        (Some(b"GET"), Some(_), Some(b"HTTP/1.1" | b"HTTP/1.0"), None) => Err("404 Not Found"),
        (Some(_), Some(_), Some(b"HTTP/1.1" | b"HTTP/1.0"), None) => Err("405 Method Not Allowed"),
        _ => Err("400 Bad Request"),
    })
}

/// What is left of the time; an error where nothing is.
fn remaining(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Event, Inline};

    /// Where metrics of some events are served.
    fn served() -> SocketAddr {
        let metrics = Arc::new(Metrics::default());
        Event::samples().iter().for_each(|event| metrics.take(event));
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let address = serve(&free.to_string().parse().unwrap(), false, metrics).unwrap();
        address.to_string().parse().unwrap()
    }

    fn asked(at: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn metrics_are_served_and_nothing_else() {
        let at = served();
        let answer = asked(at, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        assert!(
            body.contains("# TYPE privet_runs_total counter\nprivet_runs_total{plan=\"infer\"} 1\n"),
            "{body}"
        );
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", "404"),
            ("GET /metrics/../x HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("GET /metrics SPDY\r\n\r\n", "400"),
            ("\0\0\0\r\n\r\n", "400"),
        ] {
            assert!(asked(at, request.as_bytes()).starts_with(&format!("HTTP/1.1 {status}")), "{request}");
        }
    }

    #[test]
    fn a_request_is_bounded_in_size_and_time_and_connections_in_number() {
        let at = served();
        let long = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(2 * MAX_REQUEST));
        let answer = asked(at, long.as_bytes());
        // What was sent and not read may reset the connection before the answer is read.
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
        // Whoever sends a byte now and then is let go all the same, and nobody else waits for it.
        let begun = Instant::now();
        let mut slow: Vec<TcpStream> =
            (0..MOST_CONNECTIONS - 1).map(|_| TcpStream::connect(at).unwrap()).collect();
        // The place of the request before is free a moment after its answer came.
        while !asked(at, b"GET /metrics HTTP/1.1\r\n\r\n").contains("200 OK") {
            assert!(begun.elapsed() < PATIENCE, "the last place did not become free");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(50));
        slow.push(TcpStream::connect(at).unwrap());
        std::thread::sleep(Duration::from_millis(200));
        assert!(
            !asked(at, b"GET /metrics HTTP/1.1\r\n\r\n").contains("200 OK"),
            "one more than there are places"
        );
        let mut dripping = slow.remove(0);
        dripping.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        loop {
            let _ = dripping.write(b"G");
            match dripping.read(&mut [0; 64]) {
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                _ => break,
            }
            assert!(begun.elapsed() < 6 * PATIENCE, "it is still connected");
        }
        assert!(begun.elapsed() >= PATIENCE / 2);
        while !asked(at, b"GET /metrics HTTP/1.1\r\n\r\n").contains("200 OK") {
            assert!(begun.elapsed() < 6 * PATIENCE, "no place became free");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    #[test]
    fn others_can_reach_it_only_where_the_operator_says_so() {
        let any =
            || format!("0.0.0.0:{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
        let refused = serve(&any().parse().unwrap(), false, Arc::default()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert!(refused.to_string().contains("anywhere"), "{refused}");
        serve(&any().parse().unwrap(), true, Arc::default()).unwrap();
    }
}
