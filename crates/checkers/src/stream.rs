//! Change streams: every change once, in the order of its list.

use crate::history::History;
use std::collections::{BTreeMap, BTreeSet};

/// Streams are expected to have been open from before the first change until after the last.
pub fn check(history: &History) -> Vec<String> {
    let mut problems = Vec::new();
    for (stream, events) in &history.streams {
        let mut shown: BTreeMap<u64, Vec<u64>> = history.end.keys().map(|l| (*l, Vec::new())).collect();
        events.iter().for_each(|(list, element)| shown.entry(*list).or_default().push(*element));
        for (list, shown) in &shown {
            let there = history.end.get(list).map_or(&[][..], Vec::as_slice);
            if let Some(why) = differ(there, shown) {
                problems.push(format!("change stream {stream}, list {list}: {why}"));
            }
        }
    }
    problems
}

fn differ(there: &[u64], shown: &[u64]) -> Option<String> {
    if there == shown {
        return None;
    }
    let (all, seen): (BTreeSet<_>, BTreeSet<_>) = (there.iter().collect(), shown.iter().collect());
    let missing: Vec<_> = all.difference(&seen).collect();
    let unknown: Vec<_> = seen.difference(&all).collect();
    Some(if !missing.is_empty() {
        format!("a gap: {missing:?} never came")
    } else if !unknown.is_empty() {
        format!("{unknown:?} came and are not there")
    } else if shown.len() > seen.len() {
        format!("{} changes came twice", shown.len() - seen.len())
    } else {
        format!("another order: {shown:?} for {there:?}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_repetitions_inventions_and_disorder_are_told_apart() {
        let why = |shown: &[u64]| differ(&[1, 2, 3], shown).unwrap_or_default();
        assert_eq!(why(&[1, 2, 3]), "");
        assert!(why(&[1, 3]).contains("gap: [2]"));
        assert!(why(&[1, 2, 3, 4]).contains("[4] came"));
        assert!(why(&[1, 2, 2, 3]).contains("1 changes came twice"));
        assert!(why(&[1, 3, 2]).contains("order"));
    }
    #[test]
    fn a_list_that_a_stream_never_showed_is_a_gap() {
        let h = History::parse("end 1 5\nend 2 6\nevent 0 1 5").unwrap();
        assert_eq!(check(&h).len(), 1);
    }
}
