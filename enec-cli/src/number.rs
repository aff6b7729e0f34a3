//! Numbers as people read them: sizes, ratios, times, rates.

use std::fmt;
use std::time::Duration;

/// Bytes, in decimal units as file managers show them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
        if self.0 < 1000 {
            return write!(f, "{} bytes", self.0);
        }
        let mut value = real(self.0) / 1000.0;
        let mut unit = 0;
        // What would be rounded to 1000.00 of one unit is 1.00 of the next.
        while value >= 999.995 && unit + 1 < UNITS.len() {
            value /= 1000.0;
            unit += 1;
        }
        write!(f, "{value:.2} {}", UNITS[unit])
    }
}

/// The quotient of two sizes; one if there is nothing on either side.
pub(crate) fn ratio(before: u64, after: u64) -> f64 {
    if before == after { 1.0 } else { quotient(before, after) }
}

/// A quotient; zero if there is nothing to divide by.
pub(crate) fn quotient(dividend: u64, divisor: u64) -> f64 {
    if divisor == 0 { 0.0 } else { real(dividend) / real(divisor) }
}

/// Gigabytes per second; zero for no time.
pub(crate) fn gigabytes_per_second(bytes: u64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 { real(bytes) / 1e9 / seconds } else { 0.0 }
}

/// A count as a real number, for people: exact up to 2^53.
#[allow(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn real(count: u64) -> f64 {
    count as f64
}

/// A count and what is counted.
pub(crate) fn count(number: usize, singular: &str) -> String {
    if number == 1 { format!("1 {singular}") } else { format!("{number} {singular}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_fits() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1.00 kB"),
            (999_994, "999.99 kB"),
            (999_996, "1.00 MB"),
            (5_000_000_000, "5.00 GB"),
            (u64::MAX, "18.45 EB"),
        ] {
            assert_eq!(Size(bytes).to_string(), expected);
        }
    }

    #[test]
    fn quotients_of_nothing_are_numbers() {
        assert_eq!(ratio(0, 0), 1.0);
        assert_eq!(ratio(3, 2), 1.5);
        assert_eq!(quotient(1, 0), 0.0);
        assert_eq!(gigabytes_per_second(1, Duration::ZERO), 0.0);
    }
}
