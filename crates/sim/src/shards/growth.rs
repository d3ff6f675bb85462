//! How the cost of a step grows with the number of shards: not faster than n log n.

use super::Report;
use super::cost::Row;

/// A step may cost so many times more than its growth allows: chance, heartbeats, what others do meanwhile.
const SLACK: f64 = 2.0;
/// ... and so much in any case.
const FREE_MESSAGES: f64 = 60.0;
/// ... and what each shard says by itself in a second, to the config servers and to those that it watches: a step that waits sees it.
const OF_EACH_SHARD_A_SECOND: f64 = 2.0;
const FREE_WORK: f64 = 400.0;
const FREE_BYTES: f64 = 50_000.0;
const FREE_SECONDS: f64 = 1.0;

/// By how much a cost may grow from one number of shards to another.
fn allowed(from: u64, to: u64) -> f64 {
    let of = |n: u64| n as f64 * (n as f64).log2().max(1.0);
    of(to) / of(from.max(1))
}

/// Steps of the larger cluster that cost more than those of the smaller one allow.
pub fn problems(small: &Report, large: &Report) -> Vec<String> {
    let factor = allowed(small.shards, large.shards) * SLACK;
    let pairs = large.rows.iter().filter_map(|l| Some((small.rows.iter().find(|s| s.name == l.name)?, l)));
    let mut out = Vec::new();
    for (s, l) in pairs {
        let each = |row: &Row, what: f64| what / row.times.max(1) as f64;
        let by_themselves = OF_EACH_SHARD_A_SECOND * large.shards as f64 * each(l, l.time.as_secs_f64());
        let costs = [
            (
                "messages of the router",
                s.of_router.messages as f64,
                l.of_router.messages as f64,
                FREE_MESSAGES,
            ),
            ("bytes of the router", s.of_router.bytes as f64, l.of_router.bytes as f64, FREE_BYTES),
            (
                "messages of all",
                s.of_all.messages as f64,
                l.of_all.messages as f64,
                FREE_MESSAGES + by_themselves,
            ),
            ("polls of the router", s.work as f64, l.work as f64, FREE_WORK),
            ("seconds", s.time.as_secs_f64(), l.time.as_secs_f64(), FREE_SECONDS),
        ];
        for (what, of_small, of_large, free) in costs {
            let most = each(s, of_small) * factor + free;
            if each(l, of_large) > most {
                out.push(format!(
                    "{}: {:.1} {what} with {} shards, {:.1} with {}: more than n log n ({most:.1})",
                    l.name,
                    each(s, of_small),
                    small.shards,
                    each(l, of_large),
                    large.shards
                ));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Sent;
    use std::time::Duration;

    fn report(shards: u64, messages: u64) -> Report {
        let sent = Sent { messages, bytes: 0 };
        let row = Row {
            name: "a step",
            times: 1,
            time: Duration::from_millis(messages),
            of_router: sent,
            of_all: sent,
            work: messages,
            cpu: Duration::ZERO,
        };
        Report { shards, rows: vec![row], ..Report::default() }
    }

    #[test]
    fn what_grows_with_the_number_of_shards_may_and_what_grows_with_its_square_may_not() {
        assert_eq!(problems(&report(10, 1_000), &report(100, 10_000)), Vec::<String>::new());
        let found = problems(&report(10, 1_000), &report(100, 100_000));
        assert!(found.len() == 4 && found[0].starts_with("a step: 1000.0 messages"), "{found:?}");
    }
}
