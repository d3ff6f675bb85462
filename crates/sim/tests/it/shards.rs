//! What concerns all shards costs in proportion to their number. A thousand of them: `sim shards`.

use pando_sim::shards::cost::{Outside, Row};
use pando_sim::shards::{Options, Report, growth, run};

fn once(shards: u16) -> Report {
    let options = Options { shards, config_members: 1, outside: Outside::nothing(), tell: |_| () };
    run(1, &options).unwrap_or_else(|why| panic!("{shards} shards: {why}"))
}
fn row<'a>(report: &'a Report, name: &str) -> &'a Row {
    report.rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no step {name}"))
}

#[test]
fn what_concerns_all_shards_grows_with_their_number_and_what_concerns_one_does_not() {
    let (few, more) = (once(5), once(20));
    assert_eq!(growth::problems(&few, &more), Vec::<String>::new());
    // A message and its answer for the client, and as much for each shard.
    for name in ["find by the key", "find by the hashed key", "update of one document by its key"] {
        assert_eq!((row(&few, name).each_messages(), row(&more, name).each_messages()), (4.0, 4.0), "{name}");
    }
    for name in ["find without the key", "count by a condition", "$group of all documents"] {
        let (few, more) = (row(&few, name).each_messages(), row(&more, name).each_messages());
        assert!((12.0..14.0).contains(&few) && (42.0..44.0).contains(&more), "{name}: {few} and {more}");
    }
    // Two events of each shard: all are asked for them once, made to pass the last one, and asked once more.
    let events = row(&more, "a change stream, an event of every document").each_messages();
    assert!(events < 240.0, "{events}");
    assert!(more.connections < 100 && more.connections_of_config < 200, "{more:?}");
}

#[test]
fn a_cluster_of_many_shards_repeats_event_for_event() {
    let (first, second) = (once(5), once(5));
    assert_eq!((first.trace, first.rows), (second.trace, second.rows));
}
