//! Transactions that append unique elements to lists and read them whole: every read tells the order of all writes so far,
//! so that who depends on whom is known, and what no isolation level allows shows up as a cycle (Adya, PhD thesis 1999;
//! the method is Elle's, Kingsbury and Alvaro 2020).
//!
//! Edges, from transaction to transaction ([`graph`]):
//!
//! ```text
//!   ww  appended the next element           wr  read what the other appended last
//!   rw  appended what the other did not     so  the next transaction of the same session
//!       read yet
//! ```
//! Cycles ([`cycles`]): of ww only, G0; with wr, G1c; with one rw, G-single; with more rw of which no two follow each other,
//! G-nonadjacent; all others, G2, which snapshot isolation allows. Session order counts as ww does: then a session that does
//! not see its own writes, or sees less than before, is a cycle, too (causal order, INV-27).

pub mod cycles;
pub mod graph;
mod reads;

use crate::history::{History, Txn};
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Anomaly {
    /// A committed element that is not there in the end.
    Lost,
    /// An element twice in a list: a retried write took effect again.
    Duplicate,
    /// A read that is no prefix of what is there in the end.
    Undone,
    /// A transaction that did not see its own writes, or saw a list change.
    Internal,
    /// G1a: a read of what was never committed.
    AbortedRead,
    /// G1b: a read of a transaction half done.
    IntermediateRead,
    G0,
    G1c,
    GSingle,
    GNonadjacent,
    G2,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    pub anomaly: Anomaly,
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.anomaly, self.text)
    }
}

/// What must not happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Everything but G2.
    Snapshot,
    Serializable,
}

/// What is wrong, the simplest first; of cycles one for each knot of transactions.
pub fn check(history: &History, level: Level) -> Vec<Problem> {
    let mut problems = reads::check(history);
    // Without an order of the elements there is no graph.
    if problems.iter().all(|p| p.anomaly > Anomaly::Undone) {
        problems.extend(cycles::find(&graph::Graph::of(history), &history.txns));
    }
    problems.retain(|p| level == Level::Serializable || p.anomaly != Anomaly::G2);
    problems.sort_by_key(|p| p.anomaly);
    problems
}

fn named(n: usize, txn: &Txn) -> String {
    format!("transaction {n} (session {})", txn.session)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Anomaly> {
        check(&History::parse(text).unwrap(), Level::Serializable).iter().map(|p| p.anomaly).collect()
    }

    #[test]
    fn a_history_that_took_turns_is_fine() {
        let text = "txn 1 ok a:1:1 r:1:1\ntxn 2 ok r:1:1 a:1:2 a:2:1\ntxn 1 fail a:1:9\ntxn 2 unknown a:1:3
                    txn 1 ok r:1:1,2,3 r:2:1\nend 1 1,2,3\nend 2 1";
        assert_eq!(found(text), []);
    }
    #[test]
    fn lost_doubled_and_undone_elements() {
        assert_eq!(found("txn 1 ok a:1:1\ntxn 1 ok a:1:2\nend 1 1"), [Anomaly::Lost]);
        assert_eq!(found("txn 1 ok a:1:1\nend 1 1,1"), [Anomaly::Duplicate]);
        assert_eq!(found("txn 1 ok a:1:1\ntxn 2 unknown a:1:2\ntxn 3 ok r:1:2\nend 1 1"), [Anomaly::Undone]);
        assert_eq!(found("txn 1 ok r:1:7\nend 1 7"), [Anomaly::AbortedRead], "nobody wrote it");
    }
    #[test]
    fn a_transaction_sees_its_own_writes_and_nothing_else_new() {
        assert_eq!(found("txn 1 ok a:1:1 r:1:\nend 1 1"), [Anomaly::Internal]);
        let changed = "txn 1 ok r:1: r:1:1\ntxn 2 ok a:1:1\nend 1 1";
        assert!(found(changed).contains(&Anomaly::Internal));
    }
    #[test]
    fn aborted_and_half_done_transactions_are_not_seen() {
        let aborted = "txn 1 fail a:1:1\ntxn 2 ok r:1:1\nend 1 1";
        assert!(found(aborted).contains(&Anomaly::AbortedRead));
        let half = "txn 1 ok a:1:1 a:1:2\ntxn 2 ok r:1:1\nend 1 1,2";
        assert!(found(half).contains(&Anomaly::IntermediateRead));
    }
    #[test]
    fn writes_of_two_transactions_are_not_mixed() {
        let text = "txn 1 ok a:1:1 a:2:1\ntxn 2 ok a:1:2 a:2:2\nend 1 1,2\nend 2 2,1";
        assert_eq!(found(text), [Anomaly::G0]);
    }
    #[test]
    fn information_does_not_flow_in_a_circle() {
        let text = "txn 1 ok a:1:1 r:2:1\ntxn 2 ok a:2:1 r:1:1\nend 1 1\nend 2 1";
        assert_eq!(found(text), [Anomaly::G1c]);
    }
    #[test]
    fn a_read_of_two_times_and_a_lost_update() {
        let skew = "txn 1 ok a:1:1 a:2:1\ntxn 2 ok r:1:1 r:2:\nend 1 1\nend 2 1";
        assert_eq!(found(skew), [Anomaly::GSingle]);
        let update = "txn 1 ok r:1: a:1:1\ntxn 2 ok r:1: a:1:2\nend 1 1,2";
        assert_eq!(found(update), [Anomaly::GSingle]);
    }
    #[test]
    fn two_observers_agree_on_the_order_of_two_writes() {
        let fork =
            "txn 1 ok a:1:1\ntxn 2 ok a:2:1\ntxn 3 ok r:1:1 r:2:\ntxn 4 ok r:1: r:2:1\nend 1 1\nend 2 1";
        assert_eq!(found(fork), [Anomaly::GNonadjacent]);
    }
    #[test]
    fn write_skew_is_allowed_under_snapshot_isolation_only() {
        let text = "txn 1 ok r:1: a:2:1\ntxn 2 ok r:2: a:1:1\nend 1 1\nend 2 1";
        assert_eq!(found(text), [Anomaly::G2]);
        assert_eq!(check(&History::parse(text).unwrap(), Level::Snapshot), []);
    }
    #[test]
    fn a_session_sees_its_own_writes_and_never_less_than_before() {
        assert_eq!(found("txn 1 ok a:1:1\ntxn 1 ok r:1:\nend 1 1"), [Anomaly::GSingle], "own write");
        let back = "txn 1 ok a:1:1\ntxn 2 ok r:1:1\ntxn 2 ok r:1:\nend 1 1";
        assert_eq!(found(back), [Anomaly::GSingle], "monotonic reads");
        let other =
            "txn 1 ok a:1:1\ntxn 2 ok r:1:1\ntxn 2 ok a:2:1\ntxn 3 ok r:2:1\ntxn 3 ok r:1:\nend 1 1\nend 2 1";
        assert_eq!(found(other), [Anomaly::GSingle], "writes follow reads");
        assert_eq!(found("txn 1 ok a:1:1\ntxn 1 ok a:1:2\nend 1 2,1"), [Anomaly::G0], "monotonic writes");
        assert_eq!(found("txn 1 ok a:1:1\ntxn 2 ok r:1:\nend 1 1"), [], "another session may be behind");
    }
    #[test]
    fn what_nobody_was_told_counts_once_it_is_seen() {
        let text = "txn 1 unknown a:1:1 a:2:1\ntxn 2 ok r:1:1 r:2:\nend 1 1\nend 2 1";
        assert_eq!(found(text), [Anomaly::GSingle]);
        assert_eq!(found("txn 1 unknown a:1:1\ntxn 2 ok r:1:\nend 1"), [], "it may never have happened");
    }
    #[test]
    fn a_long_history_is_judged_in_no_time() {
        use std::fmt::Write;
        let (mut text, mut lists) = (String::new(), vec![Vec::new(); 50]);
        for n in 0..20_000u64 {
            let (a, b) = ((n * 7 % 50) as usize, (n * 13 % 50) as usize);
            let read = lists[b].iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            writeln!(text, "txn {} ok r:{b}:{read} a:{a}:{n}", n % 16).unwrap();
            lists[a].push(n);
            if lists[a].len() > 60 {
                break;
            }
        }
        for (l, list) in lists.iter().enumerate() {
            writeln!(text, "end {l} {}", list.iter().map(u64::to_string).collect::<Vec<_>>().join(","))
                .unwrap();
        }
        assert_eq!(found(&text), []);
    }
}
