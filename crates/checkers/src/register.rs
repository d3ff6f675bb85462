//! One value that is written and read: is there an order of all commands, true to real time, in which every read returns
//! the newest write (INV-23)?

// States are asked for, never read in order.
#![allow(clippy::disallowed_types)]

use std::collections::HashSet;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Write(i64),
    Read(Option<i64>),
}

/// One command and when it was under way.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    pub called: Duration,
    /// `None`: nobody knows whether and when it took effect.
    pub returned: Option<Duration>,
    pub what: What,
}

/// Tries orders, remembering which have failed: what was carried out so far and the value it left is all that matters.
/// Takes histories of at most 128 commands.
pub fn is_linearizable(history: &[Command]) -> bool {
    assert!(history.len() <= 128, "a history of {} commands", history.len());
    let mut tried: HashSet<(u128, Option<i64>)> = HashSet::new();
    let mut open = vec![(0u128, None)];
    while let Some((done, value)) = open.pop() {
        if !tried.insert((done, value)) {
            continue;
        }
        let left = || history.iter().enumerate().filter(move |(i, _)| done & (1 << i) == 0);
        // Nothing may come before a command that had returned when it was called.
        let Some(first_return) = left().filter_map(|(_, c)| c.returned).min() else { return true };
        for (i, c) in left().filter(|(_, c)| c.called <= first_return) {
            match c.what {
                What::Write(v) => open.push((done | 1 << i, Some(v))),
                What::Read(v) if v == value => open.push((done | 1 << i, value)),
                What::Read(_) => {}
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(called: u64, returned: Option<u64>, what: What) -> Command {
        Command { called: Duration::from_secs(called), returned: returned.map(Duration::from_secs), what }
    }
    use What::{Read, Write};

    #[test]
    fn a_stale_read_and_a_lost_write_are_found_and_concurrent_ones_are_not() {
        let w = |from, to, v| command(from, Some(to), Write(v));
        let r = |from, to, v| command(from, Some(to), Read(v));
        assert!(is_linearizable(&[
            w(0, 1, 1),
            r(2, 3, Some(1)),
            w(4, 9, 2),
            r(5, 6, Some(1)),
            r(7, 8, Some(2))
        ]));
        assert!(!is_linearizable(&[w(0, 1, 1), w(2, 3, 2), r(4, 5, Some(1))]), "stale");
        assert!(!is_linearizable(&[w(0, 1, 1), r(2, 3, None)]), "lost");
        assert!(!is_linearizable(&[w(0, 9, 1), r(1, 2, Some(1)), r(3, 4, None)]), "back again");
        let unknown = command(0, None, Write(7));
        assert!(is_linearizable(&[unknown, r(2, 3, None), r(4, 5, Some(7))]), "it may take effect late");
        assert!(is_linearizable(&[unknown, r(2, 3, None)]), "or never");
    }
}
