//! How fast connections come from each address.
//!
//! Each address has a bucket: it holds `burst` connections, one is taken by each that comes, and it fills by `per_second`. Buckets that are
//! full again are forgotten; where there are too many of others, all are, which lets everybody begin anew rather than nobody connect.

use pando_base::HashMap;
use pando_base::limits::{CONNECTION_RATE_TOLD_SECS, CONNECTION_RATES_KEPT_MAX};
use pando_base::panics::poisoned;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

/// Parameters `connectionRatePerAddress` and `connectionBurstPerAddress`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Above zero.
    pub per_second: u32,
    pub burst: u32,
}

#[derive(Debug)]
struct Bucket {
    left: f64,
    /// When `left` was right.
    at: Duration,
    refused: u64,
    told: Option<Duration>,
}

impl Bucket {
    fn fill(&mut self, now: Duration, rate: Rate) {
        let since = now.saturating_sub(self.at).as_secs_f64();
        self.left = (self.left + since * f64::from(rate.per_second)).min(f64::from(rate.burst));
        self.at = now;
    }
}

#[derive(Default, Debug)]
pub(super) struct Rates(Mutex<HashMap<IpAddr, Bucket>>);

impl Rates {
    /// Takes one from the bucket of `from`. Where it is empty: how many were refused since that was last told, when it is time to tell again.
    pub(super) fn take(&self, from: IpAddr, now: Duration, rate: Rate) -> Result<(), Option<u64>> {
        let mut all = self.0.lock().unwrap_or_else(poisoned);
        if all.len() >= CONNECTION_RATES_KEPT_MAX && !all.contains_key(&from) {
            all.retain(|_, bucket| {
                bucket.fill(now, rate);
                bucket.left < f64::from(rate.burst)
            });
            if all.len() >= CONNECTION_RATES_KEPT_MAX {
                all.clear();
            }
        }
        let full = Bucket { left: f64::from(rate.burst), at: now, refused: 0, told: None };
        let bucket = all.entry(from).or_insert(full);
        bucket.fill(now, rate);
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        bucket.refused += 1;
        let is_time =
            bucket.told.is_none_or(|t| now.saturating_sub(t).as_secs() >= CONNECTION_RATE_TOLD_SECS);
        if !is_time {
            return Err(None);
        }
        bucket.told = Some(now);
        Err(Some(std::mem::take(&mut bucket.refused)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_bounded_and_full_ones_forgotten() {
        let rates = Rates::default();
        let rate = Rate { per_second: 1, burst: 1 };
        let address = |n: usize| IpAddr::V4((n as u32).into());
        for n in 0..CONNECTION_RATES_KEPT_MAX {
            rates.take(address(n), Duration::ZERO, rate).unwrap();
        }
        // After a second they are full again, but for the one that has just been used.
        rates.take(address(0), Duration::from_secs(1), rate).unwrap();
        rates.take(address(CONNECTION_RATES_KEPT_MAX), Duration::from_secs(1), rate).unwrap();
        assert_eq!(rates.0.lock().unwrap().len(), 2);
        assert!(rates.take(address(0), Duration::from_secs(1), rate).is_err());
    }

    #[test]
    fn what_is_refused_is_told_now_and_then() {
        let rates = Rates::default();
        let rate = Rate { per_second: 1, burst: 1 };
        let from = IpAddr::V4(7.into());
        let secs = Duration::from_secs;
        rates.take(from, secs(0), rate).unwrap();
        assert_eq!(rates.take(from, secs(0), rate), Err(Some(1)));
        for _ in 0..5 {
            assert_eq!(rates.take(from, secs(0), rate), Err(None));
        }
        rates.take(from, secs(CONNECTION_RATE_TOLD_SECS), rate).unwrap();
        assert_eq!(rates.take(from, secs(CONNECTION_RATE_TOLD_SECS), rate), Err(Some(6)));
    }
}
