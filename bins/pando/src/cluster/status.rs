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

/// A group's name stands before the first of its rows.
pub(super) fn table(groups: &[Group]) -> Vec<String> {
    let line = |name: &str, chunks: &str, row: &str| format!("{name:<9}{chunks:>6}  {row}");
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
