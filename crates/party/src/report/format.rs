//! Numbers as people read them.

/// `1.21 GB`: decimal units, three significant digits.
pub fn bytes(n: u64) -> String {
    scaled(n as f64, &["B", "kB", "MB", "GB", "TB", "PB"])
}

/// `64 bit`, `12.3 Mbit`.
pub fn bits(n: u64) -> String {
    scaled(n as f64, &["bit", "kbit", "Mbit", "Gbit", "Tbit", "Pbit"])
}

/// `1.2 s`, `35 ms`, `12 us`, `3 min 20 s`.
pub fn seconds(s: f64) -> String {
    match s {
        s if !s.is_finite() => "unknown".into(),
        s if s >= 120.0 => format!("{} min {:.0} s", (s / 60.0).floor(), s % 60.0),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{} ms", (s * 1e4).round() / 10.0),
        0.0 => "0 s".into(),
        s => format!("{:.1} us", s * 1e6),
    }
}

/// `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

fn scaled(n: f64, units: &[&str]) -> String {
    let mut value = n;
    let mut unit = 0;
    // 999.5 would print as 1000 with three digits.
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{value:.0} {}", units[0]),
        _ if value >= 99.95 => format!("{value:.0} {}", units[unit]),
        _ if value >= 9.995 => format!("{value:.1} {}", units[unit]),
        _ => format!("{value:.2} {}", units[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_where_three_digits_end() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1000), "1.00 kB");
        assert_eq!(bytes(999_499), "999 kB");
        assert_eq!(bytes(999_500), "1.00 MB");
        assert_eq!(bytes(2_780_000_000), "2.78 GB");
        assert_eq!(bytes(u64::MAX), "18447 PB");
        assert_eq!(bits(64), "64 bit");
    }

    #[test]
    fn seconds_and_counts() {
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(seconds(0.0000123), "12.3 us");
        assert_eq!(seconds(0.035), "35 ms");
        assert_eq!(seconds(1.234), "1.23 s");
        assert_eq!(seconds(200.0), "3 min 20 s");
        assert_eq!(seconds(f64::NAN), "unknown");
        assert_eq!(count(0), "0");
        assert_eq!(count(123), "123");
        assert_eq!(count(1_234_567), "1,234,567");
    }
}
