//! How a cluster is: the routers, and each set with what its members say; a shard with its number of chunks.

use super::Plan;
use super::shards::Chunks;
use crate::set::status::{Row, Watch};

/// The routers, or a set.
pub(super) struct Group {
    name: String,
    rows: Vec<Row>,
    chunks: Option<i64>,
}

pub(super) fn groups(plan: &Plan, watch: &Watch, pids: &[Option<u32>], chunks: &Chunks) -> Vec<Group> {
    let (mut first, servers) = (0, plan.servers());
    let routers = watch.rows(servers, &pids[servers..]);
    let mut groups = vec![Group { name: "routers".to_owned(), rows: routers, chunks: None }];
    for set in plan.sets() {
        let rows = watch.rows(first, &pids[first..first + set.members]);
        first += set.members;
        groups.push(Group { name: set.set.clone(), rows, chunks: chunks.of(&set.set) });
    }
    // Config servers are the second group, and have none.
    groups[1].chunks = None;
    groups
}

/// In no more than `room` lines: first members have no lines of their own, then groups.
pub(super) fn table(groups: &[Group], room: usize) -> Vec<String> {
    let whole = members(groups);
    if whole.len() <= room {
        return whole;
    }
    let mut lines: Vec<String> = groups.iter().map(Group::line).collect();
    if lines.len() > room {
        let hidden = lines.len() + 1 - room;
        lines.truncate(room.saturating_sub(1));
        lines.push(format!("and {hidden} more: the terminal is too low"));
    }
    lines
}

impl Group {
    fn line(&self) -> String {
        let mut states: Vec<(&str, usize)> = Vec::new();
        for state in self.rows.iter().map(Row::state) {
            match states.iter_mut().find(|(known, _)| *known == state) {
                Some((_, n)) => *n += 1,
                None => states.push((state, 1)),
            }
        }
        let states: Vec<String> = states.iter().map(|(state, n)| format!("{n} {state}")).collect();
        let chunks = self.chunks.map(|n| n.to_string()).unwrap_or_default();
        let first = self.rows.first().map_or("", Row::host);
        line(&self.name, &chunks, &format!("{first:<22}{}", states.join(", ")))
    }
}

fn line(name: &str, chunks: &str, row: &str) -> String {
    format!("{name:<9}{chunks:>6}  {row}")
}

/// A group's name stands before the first of its rows.
fn members(groups: &[Group]) -> Vec<String> {
    let mut lines = vec![line("set", "chunks", &Row::titles())];
    for group in groups {
        let chunks = group.chunks.map(|n| n.to_string()).unwrap_or_default();
        let heads = [(group.name.as_str(), chunks.as_str())].into_iter().chain(std::iter::repeat(("", "")));
        lines.extend(
            group.rows.iter().zip(heads).map(|(row, (name, chunks))| line(name, chunks, &row.line())),
        );
    }
    lines
}

/// As many for a group at all times: they are compared by their places.
pub(super) fn facts(groups: &[Group]) -> Vec<String> {
    let of_group = |g: &Group| {
        let rows = g.rows.iter().map(|row| format!("{} {}", g.name, row.fact()));
        let chunks = g.chunks.map(|n| format!("{} has {n} chunk{}", g.name, if n == 1 { "" } else { "s" }));
        rows.chain([chunks.unwrap_or_default()]).collect::<Vec<_>>()
    };
    groups.iter().flat_map(of_group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three shards of three members, and a router.
    fn groups() -> Vec<Group> {
        let group = |name: &str, states: &[&str], chunks| Group {
            name: name.to_owned(),
            rows: states.iter().map(|state| Row::for_tests("h:1", state)).collect(),
            chunks,
        };
        let states = ["PRIMARY", "SECONDARY", "SECONDARY"];
        let shard = |i| group(&format!("shard{i}"), &states, Some(i));
        [group("routers", &["UP"], None)].into_iter().chain((1..4).map(shard)).collect()
    }

    #[test]
    fn a_low_terminal_shows_sets_instead_of_members() {
        assert_eq!(table(&groups(), 11).len(), 11);
        let low = table(&groups(), 10);
        assert_eq!(low.len(), 4);
        assert_eq!(low[3], "shard3        3  h:1                   1 PRIMARY, 2 SECONDARY");
        assert_eq!(table(&groups(), 3)[2], "and 2 more: the terminal is too low");
        assert_eq!(table(&groups(), 0).len(), 1);
    }

    #[test]
    fn facts_keep_their_places() {
        let mut unknown = groups();
        unknown.iter_mut().for_each(|g| g.chunks = None);
        let (known, unknown) = (facts(&groups()), facts(&unknown));
        assert_eq!(known.len(), unknown.len());
        assert!(known.contains(&"shard1 has 1 chunk".to_owned()), "{known:?}");
    }
}
