//! Change streams: every change once, in the order of its list.

use crate::history::History;
use std::collections::BTreeMap;
use std::fmt::Debug;

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

/// How what was shown is not what is there: each as often, in its order.
pub fn differ<T: Ord + Debug>(there: &[T], shown: &[T]) -> Option<String> {
    if there == shown {
        return None;
    }
    let (all, seen) = (times(there), times(shown));
    let missing: Vec<_> = all.iter().filter(|(e, n)| seen.get(*e).unwrap_or(&0) < n).collect();
    let unknown: Vec<_> = seen.keys().filter(|e| !all.contains_key(*e)).collect();
    let doubled: Vec<_> = seen.iter().filter(|(e, n)| all.get(*e).unwrap_or(&0) < n).collect();
    Some(if let [first, ..] = &missing[..] {
        format!("a gap: {:?} never came ({} in all)", first.0, missing.len())
    } else if let [first, ..] = &unknown[..] {
        format!("{first:?} came and is not there ({} in all)", unknown.len())
    } else if let [first, ..] = &doubled[..] {
        format!("{:?} came twice ({} in all)", first.0, doubled.len())
    } else {
        let wrong = there.iter().zip(shown).find(|(a, b)| a != b);
        format!("another order: {wrong:?} should be equal")
    })
}

fn times<T: Ord>(all: &[T]) -> BTreeMap<&T, usize> {
    let mut times = BTreeMap::new();
    all.iter().for_each(|e| *times.entry(e).or_default() += 1);
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_repetitions_inventions_and_disorder_are_told_apart() {
        let why = |shown: &[u64]| differ(&[1, 2, 3], shown).unwrap_or_default();
        assert_eq!(why(&[1, 2, 3]), "");
        assert!(why(&[1, 3]).contains("gap: 2 never"));
        assert!(why(&[1, 2, 3, 4]).contains("4 came and"));
        assert!(why(&[1, 2, 2, 3]).contains("2 came twice"));
        assert!(why(&[1, 3, 2]).contains("order"));
    }
    #[test]
    fn a_list_that_a_stream_never_showed_is_a_gap() {
        let h = History::parse("end 1 5\nend 2 6\nevent 0 1 5").unwrap();
        assert_eq!(check(&h).len(), 1);
    }
}
