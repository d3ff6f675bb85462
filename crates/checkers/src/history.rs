//! What users did to lists, and what they were told.
//!
//! The text form has a line for each fact; `#` begins a comment:
//!
//! ```text
//! txn 3 ok a:7:31 r:7:12,31     a session's transactions in their order: append 31 to list 7, then read [12, 31]
//! txn 3 fail a:7:32             nothing of it may ever be seen
//! txn 3 unknown a:7:33          nobody was told
//! end 7 12,31                   what the list holds in the end
//! event 0 7 12                  change stream 0 showed that 12 was appended to list 7
//! ```
//! Elements are unique within their list. A single write or read is a transaction of one operation.

use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Committed,
    Aborted,
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    Append { list: u64, element: u64 },
    Read { list: u64, elements: Vec<u64> },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Txn {
    /// Whose transactions follow each other.
    pub session: u64,
    pub outcome: Outcome,
    pub ops: Vec<Op>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct History {
    pub txns: Vec<Txn>,
    /// What each list holds in the end.
    pub end: BTreeMap<u64, Vec<u64>>,
    /// By stream: list and element.
    pub streams: BTreeMap<u64, Vec<(u64, u64)>>,
}

impl History {
    /// The line that cannot be read, and why.
    pub fn parse(text: &str) -> Result<History, String> {
        let mut history = History::default();
        for (n, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            history.note(line).ok_or_else(|| format!("line {}: not a fact: {line}", n + 1))?;
        }
        Ok(history)
    }

    fn note(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            ["txn", session, outcome, ref ops @ ..] => {
                let outcome = match outcome {
                    "ok" => Outcome::Committed,
                    "fail" => Outcome::Aborted,
                    "unknown" => Outcome::Unknown,
                    _ => return None,
                };
                let ops = ops.iter().map(|op| parse_op(op)).collect::<Option<Vec<_>>>()?;
                self.txns.push(Txn { session: session.parse().ok()?, outcome, ops });
            }
            ["end", list] => drop(self.end.insert(list.parse().ok()?, Vec::new())),
            ["end", list, elements] => drop(self.end.insert(list.parse().ok()?, parse_elements(elements)?)),
            ["event", stream, list, element] => {
                let events = self.streams.entry(stream.parse().ok()?).or_default();
                events.push((list.parse().ok()?, element.parse().ok()?));
            }
            _ => return None,
        }
        Some(())
    }
}

fn parse_op(word: &str) -> Option<Op> {
    let (kind, rest) = word.split_once(':')?;
    let (list, what) = rest.split_once(':')?;
    let list = list.parse().ok()?;
    match kind {
        "a" => Some(Op::Append { list, element: what.parse().ok()? }),
        "r" => Some(Op::Read { list, elements: parse_elements(what)? }),
        _ => None,
    }
}

fn parse_elements(text: &str) -> Option<Vec<u64>> {
    text.split(',').filter(|e| !e.is_empty()).map(|e| e.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_and_nonsense_is_told_with_its_line() {
        let text =
            "txn 3 ok a:7:31 r:7:12,31 r:8:\n# a comment\ntxn 3 unknown\nend 7 12,31\nend 8\nevent 0 7 12\n";
        let h = History::parse(text).unwrap();
        let read = |list, elements: &[u64]| Op::Read { list, elements: elements.to_vec() };
        assert_eq!(h.txns[0].ops, [Op::Append { list: 7, element: 31 }, read(7, &[12, 31]), read(8, &[])]);
        assert_eq!((h.txns[1].outcome, h.txns[1].ops.len()), (Outcome::Unknown, 0));
        assert_eq!(
            (&h.end[&7][..], &h.end[&8][..], &h.streams[&0][..]),
            (&[12, 31][..], &[][..], &[(7, 12)][..])
        );
        for wrong in ["txn", "txn 1 maybe", "txn 1 ok a:7", "txn 1 ok x:1:1", "end", "event 0 7", "what 1"] {
            assert!(History::parse(wrong).unwrap_err().starts_with("line 1"), "{wrong}");
        }
    }
}
