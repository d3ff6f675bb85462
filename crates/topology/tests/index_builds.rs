//! Stories of index builds: who votes, and when a primary commits. Each broken rule makes one of them untrue.

use pando_base::Uuid;
use pando_bson::{Bson, Document};
use pando_topology::ReplSetConfig;
use pando_topology::commit_quorum::CommitQuorum;
use pando_topology::config::Member;
use pando_topology::index_builds::{Action, Entry, Event, IndexBuilds, Part};
use pando_topology::mutants::{OF_INDEX_BUILDS, activate};
use std::sync::Arc;

const BUILD: Uuid = Uuid([7; 16]);

/// Members a, b, c hold data and vote, d holds data only, e is an arbiter.
fn config() -> ReplSetConfig {
    let mut config = ReplSetConfig::single("rs", "a");
    let mut add = |id, host: &str, change: fn(&mut Member)| {
        let mut m = Member::new(id, host);
        change(&mut m);
        config.members.push(m);
    };
    add(1, "b", |m| m.tags.push(("dc".into(), "east".into())));
    add(2, "c", |m| m.tags.push(("dc".into(), "west".into())));
    add(3, "d", |m| (m.votes, m.priority) = (0, 0.0));
    add(4, "e", |m| m.arbiter_only = true);
    let mut both = Document::new();
    both.push("dc", Bson::Int32(2));
    config.settings.get_last_error_modes.push("bothCenters", Bson::from(both));
    config
}

struct Node(IndexBuilds);

impl Node {
    /// `me` in the set above, with `primary` in office in term 1.
    fn new(me: &str, primary: &str) -> Node {
        let mut n = Node(IndexBuilds::default());
        n.step(Event::Configured { config: Arc::new(config()), me: Some(me.into()) });
        n.office(1, Some(primary), me == primary);
        n
    }
    fn step(&mut self, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        self.0.step(event, &mut out);
        out
    }
    fn office(&mut self, term: i64, primary: Option<&str>, writable: bool) -> Vec<Action> {
        self.step(Event::Office { term, primary: primary.map(Into::into), writable })
    }
    fn running(&mut self, ready: bool) -> Vec<Action> {
        self.part(if ready { Part::Ready } else { Part::Building })
    }
    fn part(&mut self, part: Part) -> Vec<Action> {
        self.step(Event::Running { build: BUILD, part, unwanted: false })
    }
    fn unwanted(&mut self, part: Part) -> Vec<Action> {
        self.step(Event::Running { build: BUILD, part, unwanted: true })
    }
    fn entry(&mut self, quorum: CommitQuorum, ready: &[&str]) -> Vec<Action> {
        let ready = ready.iter().map(|h| (*h).to_owned()).collect();
        self.step(Event::Entries(vec![Entry { build: BUILD, quorum, ready, unfinished: true }]))
    }
}

fn vote(to: &str, term: i64) -> Action {
    Action::Vote { build: BUILD, to: to.into(), term }
}
fn vote_abort(to: &str, term: i64) -> Action {
    Action::VoteAbort { build: BUILD, to: to.into(), term }
}
const PERMIT: Action = Action::Permit { build: BUILD };
const ABORT: Action = Action::Abort { build: BUILD };
const KEEP: Action = Action::Keep { build: BUILD };

fn a_member_votes_when_it_has_its_part_and_once() {
    let mut b = Node::new("b", "a");
    assert_eq!(b.running(false), []);
    assert_eq!(b.running(true), [vote("a", 1)]);
    assert_eq!(b.running(true), []);
    b.step(Event::Voted { build: BUILD, to: "a".into(), term: 1, taken: true });
    assert_eq!(b.running(true), []);
    assert!(!b.0.is_waiting());
}

fn a_vote_that_was_not_taken_is_told_again() {
    let mut b = Node::new("b", "a");
    b.running(true);
    assert_eq!(b.step(Event::Voted { build: BUILD, to: "a".into(), term: 1, taken: false }), []);
    assert!(b.0.is_waiting());
    assert_eq!(b.running(true), [vote("a", 1)]);
}

fn the_next_primary_is_told_too_and_so_is_the_same_one_after_a_rollback() {
    let mut b = Node::new("b", "a");
    b.running(true);
    assert_eq!(b.office(2, None, false), []);
    assert_eq!(b.office(2, Some("c"), false), [vote("c", 2)]);
    assert_eq!(b.step(Event::RolledBack), [vote("c", 2)]);
    // The old primary's late refusal says nothing of the new one.
    b.step(Event::Voted { build: BUILD, to: "a".into(), term: 1, taken: false });
    assert!(!b.0.is_waiting());
}

fn a_primary_commits_when_all_voters_have_their_part() {
    let mut a = Node::new("a", "a");
    let all = CommitQuorum::VotingMembers;
    assert_eq!(a.entry(all.clone(), &[]), []);
    assert_eq!(a.running(false), []);
    assert_eq!(a.running(true), [vote("a", 1)]);
    assert_eq!(a.entry(all.clone(), &["a", "b"]), []);
    assert_eq!(a.entry(all.clone(), &["a", "b", "d"]), [], "d has no vote");
    assert_eq!(a.entry(all.clone(), &["a", "b", "c"]), [PERMIT]);
    assert_eq!(a.entry(all, &["a", "b", "c"]), [], "once");
}

fn a_primary_without_its_own_part_does_not_commit() {
    let mut a = Node::new("a", "a");
    a.running(false);
    assert_eq!(a.entry(CommitQuorum::Nodes(2), &["b", "c"]), []);
    assert_eq!(a.running(true), [vote("a", 1), PERMIT]);
}

fn strangers_and_arbiters_do_not_count() {
    let mut a = Node::new("a", "a");
    assert_eq!(a.entry(CommitQuorum::Nodes(2), &["a", "stranger", "e"]), []);
    assert_eq!(a.running(true), []);
    assert_eq!(a.entry(CommitQuorum::Nodes(2), &["a", "d"]), [PERMIT]);
}

fn a_majority_is_that_of_the_voters_and_a_mode_is_its_tags() {
    let mut a = Node::new("a", "a");
    assert_eq!(a.entry(CommitQuorum::Majority, &["a", "b"]), []);
    assert_eq!(a.running(true), []);
    assert_eq!(a.entry(CommitQuorum::Majority, &["a", "b", "c"]), [PERMIT]);
    let mut a = Node::new("a", "a");
    let both = CommitQuorum::Mode("bothCenters".into());
    assert_eq!(a.entry(both.clone(), &["a", "b"]), []);
    assert_eq!(a.running(true), []);
    assert_eq!(a.entry(both, &["a", "b", "c"]), [PERMIT]);
}

fn a_smaller_quorum_and_a_smaller_set_are_looked_at_anew() {
    let mut a = Node::new("a", "a");
    a.entry(CommitQuorum::VotingMembers, &["a"]);
    assert_eq!(a.running(true), []);
    assert_eq!(a.entry(CommitQuorum::Nodes(1), &["a"]), [PERMIT]);
    let mut a = Node::new("a", "a");
    a.entry(CommitQuorum::VotingMembers, &["a", "b"]);
    a.running(true);
    let mut smaller = config();
    smaller.members.retain(|m| m.host != "c");
    assert_eq!(a.step(Event::Configured { config: Arc::new(smaller), me: Some("a".into()) }), [PERMIT]);
}

fn nobody_is_asked_where_the_quorum_is_off() {
    let mut a = Node::new("a", "a");
    a.entry(CommitQuorum::Nodes(0), &[]);
    assert_eq!(a.running(true), [PERMIT]);
    // Nor where the build was begun without a document.
    let mut a = Node::new("a", "a");
    assert_eq!(a.running(true), [], "nobody has read what there is");
    assert_eq!(a.step(Event::Entries(Vec::new())), [PERMIT]);
}

fn only_a_primary_commits_and_the_next_one_takes_over() {
    let mut b = Node::new("b", "a");
    b.running(true);
    assert_eq!(b.entry(CommitQuorum::Nodes(1), &["a", "b"]), []);
    // Elected: its own vote is there already.
    assert_eq!(b.office(2, Some("b"), false), []);
    assert_eq!(b.office(2, Some("b"), true), [PERMIT]);
    // Primary again after another was: the build is looked at once more.
    b.office(3, Some("c"), false);
    assert_eq!(b.office(4, Some("b"), true), [PERMIT]);
}

fn a_document_goes_when_its_build_is_over() {
    let mut a = Node::new("a", "a");
    a.running(true);
    a.entry(CommitQuorum::Nodes(1), &["a"]);
    assert_eq!(a.step(Event::Ended { build: BUILD }), [], "unfinished here");
    let over =
        Entry { build: BUILD, quorum: CommitQuorum::Nodes(1), ready: Default::default(), unfinished: false };
    assert_eq!(a.step(Event::Entries(vec![over.clone()])), [Action::Forget { build: BUILD }]);
    let mut b = Node::new("b", "a");
    assert_eq!(b.step(Event::Entries(vec![over])), [], "the primary's business");
}

fn a_member_whose_part_failed_tells_each_primary() {
    let mut b = Node::new("b", "a");
    assert_eq!(b.part(Part::Failed), [vote_abort("a", 1)]);
    assert_eq!(b.part(Part::Failed), [], "once");
    b.step(Event::Voted { build: BUILD, to: "a".into(), term: 1, taken: false });
    assert!(b.0.is_waiting());
    assert_eq!(b.part(Part::Failed), [vote_abort("a", 1)], "it was not heard");
    assert_eq!(b.office(2, Some("c"), false), [vote_abort("c", 2)]);
    // What it had said before does not count for what it says now.
    let mut b = Node::new("b", "a");
    b.running(true);
    assert_eq!(b.part(Part::Failed), [vote_abort("a", 1)]);
}

fn a_primary_gives_up_what_it_cannot_make() {
    let mut a = Node::new("a", "a");
    a.entry(CommitQuorum::Nodes(2), &["b", "c"]);
    assert_eq!(a.part(Part::Failed), [ABORT]);
    // Elected with a part that failed: before, the old primary knew.
    let mut b = Node::new("b", "a");
    b.part(Part::Failed);
    assert_eq!(b.office(2, Some("b"), false), []);
    assert_eq!(b.office(2, Some("b"), true), [ABORT]);
}

fn a_wish_is_heard_by_a_primary_or_not_at_all() {
    let mut a = Node::new("a", "a");
    a.entry(CommitQuorum::Nodes(1), &["a"]);
    assert_eq!(a.unwanted(Part::Ready), [ABORT], "and not committed");
    assert_eq!(a.unwanted(Part::Ready), [ABORT], "as long as it has not come true");
    // It steps down before the log has it.
    assert_eq!(a.office(2, Some("b"), false), [vote("b", 2), KEEP]);
    a.running(true);
    assert_eq!(a.office(3, Some("a"), true), [PERMIT], "the wish is forgotten");
    let mut b = Node::new("b", "a");
    assert_eq!(b.unwanted(Part::Building), [KEEP]);
    assert_eq!(b.office(2, Some("b"), true), [], "also where nobody repeats what is so");
}

const STORIES: &[(&str, fn())] = &[
    ("vote once", a_member_votes_when_it_has_its_part_and_once),
    ("vote again", a_vote_that_was_not_taken_is_told_again),
    ("next primary", the_next_primary_is_told_too_and_so_is_the_same_one_after_a_rollback),
    ("all voters", a_primary_commits_when_all_voters_have_their_part),
    ("own part", a_primary_without_its_own_part_does_not_commit),
    ("strangers", strangers_and_arbiters_do_not_count),
    ("majority", a_majority_is_that_of_the_voters_and_a_mode_is_its_tags),
    ("smaller", a_smaller_quorum_and_a_smaller_set_are_looked_at_anew),
    ("off", nobody_is_asked_where_the_quorum_is_off),
    ("take over", only_a_primary_commits_and_the_next_one_takes_over),
    ("forget", a_document_goes_when_its_build_is_over),
    ("failed", a_member_whose_part_failed_tells_each_primary),
    ("give up", a_primary_gives_up_what_it_cannot_make),
    ("wish", a_wish_is_heard_by_a_primary_or_not_at_all),
];

#[test]
fn stories_of_index_builds_hold() {
    for (name, story) in STORIES {
        println!("{name}");
        story();
    }
}

#[test]
fn every_broken_rule_of_index_builds_makes_a_story_untrue() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut unseen = Vec::new();
    for mutant in OF_INDEX_BUILDS {
        activate(Some(*mutant));
        if !STORIES.iter().any(|(_, story)| std::panic::catch_unwind(story).is_err()) {
            unseen.push(*mutant);
        }
        activate(None);
    }
    std::panic::set_hook(hook);
    assert!(unseen.is_empty(), "no story notices {unseen:?}");
}

#[test]
fn quorums_are_checked_against_the_set() {
    let config = config();
    let code = |q: CommitQuorum| config.check_commit_quorum(&q).err().map(|e| e.code.0);
    assert_eq!(code(CommitQuorum::Nodes(4)), None);
    assert_eq!(code(CommitQuorum::Nodes(5)), Some(278), "the arbiter holds nothing");
    assert_eq!(code(CommitQuorum::Mode("x".into())), Some(79));
    assert_eq!(code(CommitQuorum::Mode("bothCenters".into())), None);
    let mut lazy = config.clone();
    lazy.members[3].build_indexes = false;
    let refused = lazy.check_commit_quorum(&CommitQuorum::Nodes(4)).unwrap_err();
    assert!(refused.message.contains("buildIndexes:false"), "{refused:?}");
    assert!(lazy.check_commit_quorum(&CommitQuorum::VotingMembers).is_ok());
}
