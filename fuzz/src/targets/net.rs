//! What a peer sends before and below the protocol.

use super::Fields;
use crate::Target;
use privet_net::certs::CertificateInfo;
use privet_net::frame::{Decoder, Encoder, HEADER_LEN, Header, Kind, MAX_CHUNK, MAX_NAME, parse_header};
use privet_net::hello::PROTOCOL_VERSION;
use privet_net::mem::{MemOptions, pair_with};
use privet_net::{Channel, Fingerprint, Hello, Identity, NetworkProfile, Step, Terms};
use std::time::Duration;

/// A frame header from raw bytes, and a stream of them however it is cut.
pub const HEADER: Target = Target { name: "frame-header", run: header, seeds: header_seeds, words: &["pv"] };

fn header(data: &[u8]) {
    if let Ok(h) = parse_header(data) {
        assert!(h.len as usize <= MAX_CHUNK && u64::from(h.len) <= h.total);
        assert!(usize::from(h.name_len) <= MAX_NAME);
    }
    let cut = data.first().map_or(1, |&b| usize::from(b) + 1);
    let mut decoder = Decoder::default();
    for part in data.chunks(cut) {
        if decoder.feed(part, &mut |_| {}).is_err() {
            return;
        }
    }
}

fn header_seeds() -> Vec<Vec<u8>> {
    let mut encoder = Encoder::default();
    let (step, message) = (Step::new(3, "conv1 / open"), b"payload".as_slice());
    let (head, name) = encoder.data(&step, message, 0);
    let mut stream = [&head[..], message, name].concat();
    stream.extend_from_slice(&encoder.control(Kind::Heartbeat, b""));
    stream.extend_from_slice(&encoder.control(Kind::Abort, b"why"));
    stream.extend_from_slice(b"why");
    vec![stream]
}

/// Frames with arbitrary fields and right checksums: the checks behind the checksum.
pub const FRAMES: Target = Target { name: "frames", run: frames, seeds: fields_seeds, words: &[] };

fn frames(data: &[u8]) {
    let mut decoder = Decoder::default();
    for (header, bytes) in crafted(data) {
        let mut got = Vec::new();
        match decoder.feed(&bytes, &mut |f| got.push(f)) {
            Err(_) => return,
            Ok(()) => {
                assert!(got.iter().all(|f| f.header == header && f.payload.len() == header.len as usize))
            }
        }
    }
}

static FULL: [u8; MAX_CHUNK] = [7; MAX_CHUNK];

/// Frames with fields from the input, correctly encoded.
fn crafted(data: &[u8]) -> Vec<(Header, Vec<u8>)> {
    let mut fields = Fields(data);
    let mut out = Vec::new();
    for due in 0..32u64 {
        if fields.0.is_empty() {
            break;
        }
        let kind = [Kind::Data, Kind::Data, Kind::Data, Kind::Heartbeat, Kind::Abort, Kind::Bye];
        let flags = fields.byte();
        let name_len = usize::from(fields.byte()) % (MAX_NAME + 1);
        let name = fields.slice(name_len);
        let step = [u32::from(fields.byte()) % 3, u32::from_le_bytes(fields.bytes())][usize::from(flags & 1)];
        // A full chunk is the only one that others may follow; its bytes are no part of the input.
        let len = usize::from(fields.byte());
        let payload = if len == 255 { &FULL } else { fields.slice(len) };
        let total = [
            payload.len() as u64,
            MAX_CHUNK as u64 + u64::from(fields.byte()),
            u64::from_le_bytes(fields.bytes()),
        ][usize::from(flags >> 1) % 3];
        let header = Header {
            kind: kind[usize::from(flags >> 3) % kind.len()],
            first: flags & 4 != 0,
            summed: flags & 128 == 0,
            name_len: name.len() as u8,
            step,
            len: payload.len() as u32,
            seq: if flags == 255 { u64::from_le_bytes(fields.bytes()) } else { due },
            total,
        };
        let bytes = [&header.encode(payload, name)[..], payload, name].concat();
        out.push((header, bytes));
    }
    out
}

fn fields_seeds() -> Vec<Vec<u8>> {
    let two_frames =
        [&[14, 0, 0, 0, 0, 0, 0, 255, 3][..], &[0; 8], &[2, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3, 3], &[0; 8]]
            .concat();
    vec![
        two_frames,
        vec![4, 2, b'o', b'k', 1, 3, 7, 8, 9],
        vec![4, 0, 0, 0, 4, 0, 1, 1, 2, 2, 0, 1, 5, 5, 2, 1, 1],
    ]
}

/// The same frames, put together to messages at steps by a channel.
pub const MESSAGES: Target = Target { name: "messages", run: messages, seeds: fields_seeds, words: &[] };

fn messages(data: &[u8]) {
    const MOST: usize = MAX_CHUNK + 600;
    let wire: Vec<u8> = crafted(data).into_iter().flat_map(|(_, bytes)| bytes).collect();
    let mut sender = MemOptions::named("party 0");
    let mut wire = Some(wire);
    sender.filter = Some(Box::new(move |_| wire.take().into_iter().collect()));
    let mut receiver = MemOptions::named("party 1");
    receiver.patience = Duration::ZERO;
    let (mut a, mut b) = pair_with(sender, receiver);
    let _ = a.send(&Step::new(0, "step"), vec![0]);
    drop(a);
    for i in 0..8 {
        let step = Step::new(i % 3, "step");
        let got = if i % 2 == 0 { b.recv_up_to(&step, MOST) } else { b.recv(&step, 4) };
        match got {
            Err(_) => return,
            Ok(message) => assert!(if i % 2 == 0 { message.len() <= MOST } else { message.len() == 4 }),
        }
    }
}

/// A peer's greeting.
pub const HELLO: Target = Target { name: "hello", run: hello, seeds: hello_seeds, words: &["privetHi"] };

fn hello(data: &[u8]) {
    let Ok(found) = Hello::decode(data) else { return };
    if found.protocol_version == PROTOCOL_VERSION {
        assert_eq!(Hello::decode(&found.encode()), Ok(found.clone()));
    }
    let ours = Hello::new("party 0", [2; 32], "online", terms());
    let _ = ours.check(&found).map_err(|e| e.to_string());
}

fn hello_seeds() -> Vec<Vec<u8>> {
    vec![Hello::new("party 1", [2; 32], "online", terms()).encode()]
}

fn terms() -> Terms {
    Terms::new([("protocol", "rep3"), ("security", "malicious")].map(|(n, v)| (n.to_owned(), v.to_owned())))
}

/// Fingerprints and network profiles, as text.
pub const SETTINGS: Target = Target {
    name: "settings",
    run: settings,
    seeds: settings_seeds,
    words: &[
        "sha256:",
        "rtt=",
        "bandwidth=",
        "ms",
        "us",
        "MB/s",
        "Mbit/s",
        "kB/s",
        "GB/s",
        "lan",
        "wan",
        ",",
        "1e",
        "inf",
        "nan",
    ],
};

fn settings(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(found) = Fingerprint::parse(&text) {
        assert_eq!(Fingerprint::parse(&found.to_string()).ok(), Some(found));
    }
    if let Ok(found) = NetworkProfile::parse(&text) {
        let _ = found.to_string();
        assert!(found.rtt_ms.is_finite() && found.rtt_ms >= 0.0);
        assert!(found.bandwidth_bytes_per_s.is_none_or(|b| b.is_finite() && b > 0.0));
    }
}

fn settings_seeds() -> Vec<Vec<u8>> {
    let fingerprint = Fingerprint::of(b"x").to_string();
    ["lan", "wan", "rtt=60ms,bandwidth=293Mbit/s", &fingerprint].map(|s| s.as_bytes().to_vec()).into()
}

/// A certificate, DER.
pub const CERTIFICATE: Target = Target {
    name: "certificate",
    run: certificate,
    seeds: certificate_seeds,
    words: &["Z", "20991231235959Z"],
};

fn certificate(data: &[u8]) {
    if let Ok(info) = CertificateInfo::from_der(data) {
        let _ = (info.days(), info.days_left(), info.is_valid_at(0));
    }
}

fn certificate_seeds() -> Vec<Vec<u8>> {
    // The PEM armour holds base64 of the DER; decoding it here saves a dependency.
    let Ok(identity) = Identity::generate("fuzz") else { return Vec::new() };
    let digits = |c: u8| {
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".iter().position(|&d| d == c)
    };
    let body: Vec<u8> =
        identity.cert_pem().lines().filter(|l| !l.starts_with('-')).flat_map(|l| l.bytes()).collect();
    let (mut der, mut buffer, mut bits) = (Vec::new(), 0u32, 0);
    for digit in body.into_iter().map_while(digits) {
        buffer = buffer << 6 | digit as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            der.push((buffer >> bits) as u8);
        }
    }
    debug_assert!(der.len() > HEADER_LEN);
    vec![der]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_valid() {
        assert!(certificate_seeds().iter().all(|s| CertificateInfo::from_der(s).is_ok()));
        assert!(hello_seeds().iter().all(|s| Hello::decode(s).is_ok()));
        let mut whole = 0;
        Decoder::default().feed(&header_seeds()[0], &mut |_| whole += 1).unwrap();
        assert_eq!(whole, 3);
    }
}
