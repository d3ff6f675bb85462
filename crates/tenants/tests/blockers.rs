//! What tenants may do while they are being moved, document by document; and that each rule is noticed when it is gone.

use pando_base::{ErrorCode, OpTime, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder};
use pando_tenants::mutants::{Mutant, activate};
use pando_tenants::{AccessBlockers, Decision, Kind, Operation, Reading, blockers};
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

fn at(n: u64) -> Timestamp {
    Timestamp(n << 32)
}

struct Doc {
    id: u8,
    state: &'static str,
    block: Option<u64>,
    decided: Option<u64>,
    expires: bool,
}

fn doc(state: &'static str) -> Doc {
    Doc { id: 1, state, block: None, decided: None, expires: false }
}

impl Doc {
    fn bson(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.uuid("_id", &[self.id; 16]).str("recipientSetName", "new").str("recipientTagName", "tag");
        b.array("tenantIds", |list| _ = list.str("acme").str("zeta"));
        b.str("state", self.state);
        if let Some(block) = self.block {
            b.timestamp("blockTimestamp", at(block));
        }
        if let Some(decided) = self.decided {
            b.doc("commitOrAbortOpTime", |d| _ = d.timestamp("ts", at(decided)).i64("t", 1));
        }
        if self.expires {
            b.date("expireAt", 1);
        }
        b.finish()
    }
    fn operation(&self) -> Operation {
        Operation::parse(Kind::ShardSplit, &self.bson()).expect("a state")
    }
}

fn id() -> Uuid {
    Uuid([1; 16])
}

/// Write, index build, read without a time, read at 3, read at 9: `+` goes, `w` waits, `x` is refused.
fn may(blockers: &AccessBlockers, db: &str) -> String {
    let asked = |result: pando_base::Result<()>| match result.map_err(|e| e.code) {
        Ok(()) => '+',
        Err(ErrorCode::TenantMigrationConflict) => 'w',
        Err(ErrorCode::TenantMigrationCommitted) => 'x',
        Err(code) => panic!("{code:?}"),
    };
    let read = |at| match blockers.read(db, at) {
        Reading::Goes => '+',
        Reading::Waits => 'w',
        Reading::Refused(e) => {
            assert_eq!(e.code, ErrorCode::TenantMigrationCommitted);
            'x'
        }
    };
    [
        asked(blockers.check_write(db)),
        asked(blockers.check_build(db)),
        read(None),
        read(Some(at(3))),
        read(Some(at(9))),
    ]
    .iter()
    .collect()
}

fn now<F: Future>(f: Pin<&mut F>) -> Option<F::Output> {
    match f.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

fn a_split_that_commits() {
    let b = AccessBlockers::default();
    assert!(!b.any());
    b.follow(doc("uninitialized").operation(), true);
    assert_eq!(may(&b, "acme_db"), "+++++");
    assert!(!b.any(), "nobody is asked for nothing");
    b.follow(doc("aborting index builds").operation(), true);
    assert_eq!(may(&b, "acme_db"), "+w+++");
    b.block_writes(&id());
    assert_eq!(may(&b, "acme_db"), "ww+++", "writes wait before the document says so");
    b.follow(doc("aborting index builds").operation(), true);
    assert_eq!(may(&b, "acme_db"), "ww+++", "and whatever is written again meanwhile");
    let e = b.check_write("acme_db").expect_err("blocked");
    assert_eq!(blockers::tenant_of(&e).as_deref(), Some("acme"));
    let mut waits = pin!(b.decided("acme", true));
    assert!(now(waits.as_mut()).is_none());

    b.follow(Doc { block: Some(5), ..doc("blocking") }.operation(), true);
    for (db, can) in [
        ("acme_db", "ww++w"),
        ("zeta_db", "ww++w"),
        ("acme2_db", "+++++"),
        ("acme", "+++++"),
        ("admin", "+++++"),
        ("other_db", "+++++"),
    ] {
        assert_eq!(may(&b, db), can, "{db}");
    }
    b.commit_point(OpTime::new(at(6), 1));
    assert!(now(waits.as_mut()).is_none());
    b.follow(Doc { block: Some(5), decided: Some(8), ..doc("committed") }.operation(), true);
    assert_eq!(may(&b, "acme_db"), "wwwww", "no majority has the decision, and there is no other");
    assert!(now(waits.as_mut()).is_none());
    b.commit_point(OpTime::new(at(8), 1));
    assert_eq!(may(&b, "acme_db"), "xxxxx");
    assert!(b.is_moved("acme_db") && !b.is_moved("other_db"));
    let Some(Decision::Committed(e)) = now(waits) else { panic!("committed") };
    assert_eq!(e.code, ErrorCode::TenantMigrationCommitted);

    b.follow(Doc { block: Some(5), decided: Some(8), expires: true, ..doc("committed") }.operation(), true);
    assert_eq!(may(&b, "acme_db"), "xxxxx", "until the document goes");
    b.remove(&id());
    assert_eq!(may(&b, "acme_db"), "+++++");
    assert!(!b.any());
}

fn a_split_that_aborts() {
    let b = AccessBlockers::default();
    b.follow(Doc { block: Some(5), ..doc("blocking") }.operation(), true);
    let mut waits = pin!(b.decided("acme", true));
    assert!(now(waits.as_mut()).is_none());
    b.follow(Doc { block: Some(5), decided: Some(8), ..doc("aborted") }.operation(), true);
    assert_eq!(may(&b, "acme_db"), "ww++w", "no majority has the decision");
    b.commit_point(OpTime::new(at(9), 1));
    assert_eq!(may(&b, "acme_db"), "+++++");
    let Some(Decision::Aborted(e)) = now(waits) else { panic!("aborted") };
    assert_eq!(e.code, ErrorCode::TenantMigrationAborted);
    // Forgotten before somebody else who waited has looked.
    let b = AccessBlockers::default();
    b.follow(Doc { block: Some(5), ..doc("blocking") }.operation(), true);
    let mut waits = pin!(b.decided("acme", true));
    assert!(now(waits.as_mut()).is_none());
    b.follow(Doc { block: Some(5), decided: Some(8), ..doc("aborted") }.operation(), true);
    b.commit_point(OpTime::new(at(9), 1));
    b.follow(Doc { block: Some(5), decided: Some(8), expires: true, ..doc("aborted") }.operation(), true);
    b.remove(&id());
    assert!(!b.any(), "gone as soon as it may be forgotten");
    assert!(matches!(now(waits), Some(Decision::Aborted(_))));
}

fn aborted_before_anything_was_blocked() {
    let b = AccessBlockers::default();
    b.follow(doc("aborting index builds").operation(), true);
    b.follow(Doc { decided: Some(8), ..doc("aborted") }.operation(), true);
    assert_eq!(may(&b, "acme_db"), "+w+++");
    b.commit_point(OpTime::new(at(8), 1));
    assert_eq!(may(&b, "acme_db"), "+++++");
}

fn a_primary_that_steps_down() {
    let b = AccessBlockers::default();
    b.follow(doc("aborting index builds").operation(), true);
    b.block_writes(&id());
    let (mut writes, mut reads) = (pin!(b.decided("acme", true)), pin!(b.decided("acme", false)));
    assert!(now(writes.as_mut()).is_none() && now(reads.as_mut()).is_none());
    b.step_down();
    assert_eq!(may(&b, "acme_db"), "+w+++", "only documents count");
    let Some(Decision::Gone(e)) = now(writes) else { panic!("gone") };
    assert_eq!(e.code, ErrorCode::InterruptedDueToReplStateChange);
    assert!(now(reads).is_none(), "who reads is no matter of offices");
}

fn a_lagging_member_that_is_told_late() {
    let b = AccessBlockers::default();
    b.rebuild(vec![Doc { block: Some(5), decided: Some(8), expires: true, ..doc("committed") }.operation()]);
    assert_eq!(may(&b, "acme_db"), "xxxxx", "what may be forgotten was decided by a majority");
    let b = AccessBlockers::default();
    b.rebuild(vec![Doc { block: Some(5), decided: Some(8), ..doc("committed") }.operation()]);
    assert_eq!(may(&b, "acme_db"), "wwwww", "behind a start nobody knows how far the majority is");
    b.rebuild(vec![Doc { block: Some(5), ..doc("blocking") }.operation()]);
    assert_eq!(may(&b, "acme_db"), "ww++w", "rolled back");
    let mut waits = pin!(b.decided("acme", true));
    assert!(now(waits.as_mut()).is_none());
    b.rebuild(Vec::new());
    assert_eq!(may(&b, "acme_db"), "+++++");
    let Some(Decision::Gone(e)) = now(waits) else { panic!("gone") };
    assert_eq!(e.code, ErrorCode::Interrupted);
}

fn one_kind_at_a_time_and_a_tenant_in_one_operation() {
    let split = Doc { block: Some(5), ..doc("blocking") }.operation();
    let merge = |expires| Operation {
        kind: Kind::MergeRecipient,
        expires,
        tenants: vec!["beta".to_owned()],
        ..split.clone()
    };
    let begun = |id, tenant: &str| Operation {
        tenants: vec![tenant.to_owned()],
        ..Doc { id, ..doc("uninitialized") }.operation()
    };
    let reserve = |there: &[Operation], new: &Operation| {
        let b = AccessBlockers::default();
        b.rebuild(there.to_vec());
        b.reserve(new).map_err(|e| e.code)
    };
    assert_eq!(reserve(&[], &begun(2, "acme")), Ok(()));
    let taken = Err(ErrorCode::ConflictingOperationInProgress);
    assert_eq!(reserve(std::slice::from_ref(&split), &begun(2, "acme")), taken);
    let elsewhere = Operation { recipient_set: "newer".to_owned(), ..begun(2, "beta") };
    assert_eq!(reserve(std::slice::from_ref(&split), &elsewhere), Ok(()));
    assert_eq!(reserve(std::slice::from_ref(&split), &begun(2, "beta")), taken, "one set is made once");
    let acme_elsewhere = Operation { recipient_set: "newer".to_owned(), ..begun(2, "acme") };
    assert_eq!(reserve(std::slice::from_ref(&split), &acme_elsewhere), taken, "a tenant is in one");
    let aborted = Doc { decided: Some(7), ..doc("aborted") }.operation();
    assert_eq!(reserve(&[aborted], &begun(2, "beta")), Ok(()), "it was not made");
    assert_eq!(reserve(std::slice::from_ref(&split), &split), Ok(()), "itself");
    let other = Err(ErrorCode::ConflictingServerlessOperation);
    assert_eq!(reserve(&[merge(false)], &begun(2, "acme")), other);
    assert_eq!(reserve(&[merge(true)], &begun(2, "acme")), Ok(()));

    let b = AccessBlockers::default();
    let (one, two) = (begun(1, "acme"), begun(2, "acme"));
    b.rebuild(vec![one.clone(), two.clone()]);
    assert!(b.reserve(&two).is_ok() && b.reserve(&two).is_ok(), "once more is no other");
    assert_eq!(b.reserve(&one).map_err(|e| e.code), taken, "who comes first has it");
    b.step_down();
    assert!(b.reserve(&one).is_ok(), "the next office asks anew");
}

fn documents_go_on_step_by_step() {
    let begun = || doc("uninitialized");
    let builds = || doc("aborting index builds");
    let blocking = || Doc { block: Some(5), ..doc("blocking") };
    let committed = |expires| Doc { block: Some(5), decided: Some(8), expires, ..doc("committed") };
    let aborted = |block, expires| Doc { block, decided: Some(8), expires, ..doc("aborted") };
    let all = [
        begun(),
        builds(),
        blocking(),
        committed(false),
        committed(true),
        aborted(None, false),
        aborted(Some(5), false),
        aborted(Some(5), true),
    ];
    let legal: Vec<String> = all
        .iter()
        .map(|from| {
            let may = |to: &Doc| if from.operation().may_become(&to.operation()) { '+' } else { '-' };
            all.iter().map(may).collect()
        })
        .collect();
    assert_eq!(
        legal,
        ["++---+--", "-++--+--", "--++--+-", "---++---", "----+---", "-----+--", "------++", "-------+"]
    );
    let first: String = all.iter().map(|d| if d.operation().may_be_first() { '+' } else { '-' }).collect();
    assert_eq!(first, "++---+--");
    let other = Operation { tenants: vec!["beta".to_owned()], ..builds().operation() };
    assert!(!begun().operation().may_become(&other), "other tenants");
    let late =
        Operation { phase: blocking().operation().phase, ..Doc { block: Some(6), ..blocking() }.operation() };
    assert!(blocking().operation().may_become(&late));
    assert!(!blocking().operation().may_become(&Doc { block: Some(6), ..blocking() }.operation()));
}

/// Of two that began at the same time one was aborted: its document says nothing of what the other one's tenants may do.
fn an_aborted_one_beside_the_one_that_has_the_tenant() {
    for other in [0, 2] {
        let b = AccessBlockers::default();
        b.rebuild(vec![Doc { id: other, decided: Some(2), ..doc("aborted") }.operation()]);
        b.commit_point(OpTime::new(at(3), 1));
        b.follow(doc("aborting index builds").operation(), true);
        b.block_writes(&id());
        assert!(may(&b, "acme_db").starts_with('w'), "{}", may(&b, "acme_db"));
        b.follow(Doc { block: Some(5), ..doc("blocking") }.operation(), true);
        assert_eq!(may(&b, "acme_db"), "ww++w");
        b.follow(Doc { block: Some(5), decided: Some(6), ..doc("committed") }.operation(), true);
        b.commit_point(OpTime::new(at(7), 1));
        assert_eq!(may(&b, "acme_db"), "xxxxx");
    }
}

/// A document of a migration, by the side that keeps it.
fn state(kind: Kind, state: &str, fields: &[(&str, u64)]) -> Operation {
    let mut b = DocBuilder::new();
    b.uuid("_id", &[1; 16]).str("tenantId", "acme").str("state", state);
    b.str("recipientSetName", "R").str("donorSetName", "D");
    for (name, n) in fields {
        match *name {
            "expireAt" => _ = b.date("expireAt", *n as i64),
            "commitOrAbortOpTime" => {
                b.doc(name, |d| _ = d.timestamp("ts", at(*n)).i64("t", 1));
            }
            _ => _ = b.timestamp(name, at(*n)),
        }
    }
    Operation::parse(kind, &b.finish()).expect("a state")
}
/// Write, read without a time, read of history at 3 and at 9: `+` goes, `w` waits, `r` is refused for now.
fn here(blockers: &AccessBlockers) -> String {
    let refused = |code| matches!(code, ErrorCode::IllegalOperation | ErrorCode::SnapshotTooOld);
    let asked = |result: pando_base::Result<()>| match result.map_err(|e| e.code) {
        Ok(()) => '+',
        Err(code) if refused(code) => 'r',
        Err(code) => panic!("{code:?}"),
    };
    let read = match blockers.read("acme_db", None) {
        Reading::Goes => '+',
        Reading::Waits => 'w',
        Reading::Refused(e) => {
            assert_eq!(e.code, ErrorCode::SnapshotTooOld);
            'r'
        }
    };
    let history = |n| asked(blockers.check_history("acme_db", at(n)));
    [asked(blockers.check_write("acme_db")), read, history(3), history(9)].iter().collect()
}

fn a_tenant_that_comes() {
    let b = AccessBlockers::default();
    let recipient = |text: &str, fields: &[(&str, u64)]| state(Kind::Recipient, text, fields);
    b.follow(recipient("uninitialized", &[]), true);
    assert_eq!(here(&b), "++++");
    let begun = b.version();
    assert!(!b.has_come_since("acme_db", begun));
    for copying in ["started", "consistent"] {
        b.follow(recipient(copying, &[]), true);
        assert_eq!(here(&b), "rr++", "{copying}");
    }
    b.follow(recipient("consistent", &[("rejectReadsBeforeTimestamp", 5)]), true);
    assert_eq!(here(&b), "rw++", "the donor may abort it still");
    let mut waits = pin!(b.decided("acme", false));
    assert!(now(waits.as_mut()).is_none());
    b.follow(recipient("committed", &[("rejectReadsBeforeTimestamp", 5), ("blockTimestamp", 4)]), true);
    assert_eq!(here(&b), "rw++", "a majority may not have all of it, for all that is known");
    b.commit_point(OpTime::new(at(5), 1));
    assert_eq!(here(&b), "++r+");
    assert!(b.has_come_since("acme_db", begun) && !b.has_come_since("acme_db", b.version()));
    assert!(b.has_log_from("acme_db", at(4)) && !b.has_log_from("acme_db", at(3)));
    assert!(matches!(now(waits), Some(Decision::Arrived)));
    // It leaves again at once: what it had not here it still has not.
    let leaving = Operation { id: Uuid([2; 16]), ..state(Kind::Donor, "data sync", &[]) };
    b.follow(leaving, true);
    assert_eq!(here(&b), "++r+");
    b.remove(&Uuid([2; 16]));
    b.follow(
        recipient("committed", &[("rejectReadsBeforeTimestamp", 5), ("blockTimestamp", 4), ("expireAt", 1)]),
        true,
    );
    assert_eq!(here(&b), "++r+", "until the document goes");
    b.remove(&id());
    assert_eq!(here(&b), "++++");
}

fn a_tenant_that_does_not_come() {
    let b = AccessBlockers::default();
    b.follow(state(Kind::Recipient, "consistent", &[("rejectReadsBeforeTimestamp", 5)]), true);
    let mut waits = pin!(b.decided("acme", false));
    assert!(now(waits.as_mut()).is_none());
    b.follow(state(Kind::Recipient, "aborted", &[]), true);
    assert_eq!(here(&b), "rr++", "what was copied is still there");
    assert!(matches!(now(waits), Some(Decision::Gone(e)) if e.code == ErrorCode::SnapshotTooOld));
    b.follow(state(Kind::Recipient, "aborted", &[("expireAt", 1)]), true);
    assert_eq!(here(&b), "++++");
    assert!(!b.any());
}

fn a_tenant_comes_back_when_it_is_forgotten() {
    let b = AccessBlockers::default();
    let decided = [("blockTimestamp", 4), ("commitOrAbortOpTime", 5), ("expireAt", 1)];
    b.rebuild(vec![state(Kind::Donor, "committed", &decided)]);
    assert_eq!(b.log_ends_at("acme_db"), Some(at(4)));
    assert_eq!(b.log_ends_at("other_db"), None);
    let back = Operation { id: Uuid([2; 16]), ..state(Kind::Recipient, "uninitialized", &[]) };
    assert_eq!(b.reserve(&back).map_err(|e| e.code), Err(ErrorCode::ConflictingOperationInProgress));
    b.rebuild(vec![state(Kind::Donor, "aborted", &decided)]);
    assert!(b.reserve(&back).is_ok());
    b.rebuild(Vec::new());
    assert!(b.reserve(&back).is_ok());
}

fn what_has_gone_does_not_go_with_another_one() {
    let b = AccessBlockers::default();
    let decided = [("blockTimestamp", 4), ("commitOrAbortOpTime", 5), ("expireAt", 1)];
    let again = Operation { id: Uuid([2; 16]), ..state(Kind::Donor, "uninitialized", &[]) };
    let merge = Operation { all: true, tenants: Vec::new(), ..again.clone() };
    let other = Operation { tenants: vec!["other".to_owned()], ..again.clone() };
    b.rebuild(vec![state(Kind::Donor, "committed", &decided)]);
    for operation in [&again, &merge] {
        let refused = b.reserve(operation).map_err(|e| e.code);
        assert_eq!(refused, Err(ErrorCode::ConflictingOperationInProgress), "its data are here still");
    }
    assert!(b.reserve(&other).is_ok());
    b.rebuild(vec![state(Kind::Donor, "aborted", &decided)]);
    assert!(b.reserve(&again).is_ok());
    b.rebuild(Vec::new());
    assert!(b.reserve(&merge).is_ok());
}

fn a_set_that_is_merged() {
    let b = AccessBlockers::default();
    let all =
        |text: &str, fields: &[(&str, u64)]| Operation { all: true, ..state(Kind::Donor, text, fields) };
    b.follow(all("aborting index builds", &[]), true);
    assert_eq!(may(&b, "acme_db"), "+w+++");
    assert_eq!(may(&b, "nobody-knows_db"), "ww+++", "it would not be copied");
    assert_eq!(may(&b, "admin"), "+++++");
    b.follow(all("data sync", &[]), true);
    b.block_writes(&id());
    for tenant in ["acme_db", "new_db"] {
        assert_eq!(may(&b, tenant), "ww+++");
    }
    b.follow(all("blocking", &[("blockTimestamp", 5)]), true);
    assert_eq!(may(&b, "new_db"), "ww++w");
    let one = Operation { id: Uuid([2; 16]), ..state(Kind::Donor, "uninitialized", &[]) };
    let one = Operation { tenants: vec!["zeta".to_owned()], ..one };
    assert_eq!(b.reserve(&one).map_err(|e| e.code), Err(ErrorCode::ConflictingOperationInProgress));
}

fn documents_of_migrations_go_on_step_by_step() {
    let block = [("blockTimestamp", 5)];
    let decided = [("blockTimestamp", 5), ("commitOrAbortOpTime", 6)];
    let gives = |text: &str, fields: &[(&str, u64)]| state(Kind::Donor, text, fields);
    let takes = |text: &str, fields: &[(&str, u64)]| state(Kind::Recipient, text, fields);
    let before = [("rejectReadsBeforeTimestamp", 5), ("blockTimestamp", 4)];
    let table = |all: &[Operation]| -> Vec<String> {
        let row =
            |from: &Operation| all.iter().map(|to| if from.may_become(to) { '+' } else { '-' }).collect();
        all.iter().map(row).collect()
    };
    let donor = [
        gives("uninitialized", &[]),
        gives("aborting index builds", &[]),
        gives("data sync", &[]),
        gives("blocking", &block),
        gives("committed", &decided),
        gives("aborted", &decided[1..]),
        gives("aborted", &decided),
    ];
    assert_eq!(table(&donor), ["++---+-", "-++--+-", "--++-+-", "---++-+", "----+--", "-----+-", "------+"]);
    let recipient = [
        takes("uninitialized", &[]),
        takes("started", &[]),
        takes("consistent", &before),
        takes("committed", &before),
        takes("aborted", &[]),
        takes("aborted", &[("expireAt", 1)]),
    ];
    assert_eq!(table(&recipient), ["++--+-", "-++-+-", "--+++-", "---+--", "----++", "-----+"]);
    let late = takes("committed", &[("rejectReadsBeforeTimestamp", 6), ("blockTimestamp", 4)]);
    assert!(!recipient[2].may_become(&late));
}

const ALL: &[fn()] = &[
    a_tenant_that_comes,
    a_tenant_that_does_not_come,
    a_tenant_comes_back_when_it_is_forgotten,
    what_has_gone_does_not_go_with_another_one,
    a_set_that_is_merged,
    documents_of_migrations_go_on_step_by_step,
    an_aborted_one_beside_the_one_that_has_the_tenant,
    a_split_that_commits,
    a_split_that_aborts,
    aborted_before_anything_was_blocked,
    a_primary_that_steps_down,
    a_lagging_member_that_is_told_late,
    one_kind_at_a_time_and_a_tenant_in_one_operation,
    documents_go_on_step_by_step,
];

#[test]
fn tenants_wait_and_are_refused_as_the_documents_say() {
    ALL.iter().for_each(|story| story());
}

#[test]
fn each_rule_that_is_gone_is_noticed() {
    for mutant in Mutant::ALL {
        activate(Some(*mutant));
        let noticed = ALL.iter().any(|story| std::panic::catch_unwind(story).is_err());
        activate(None);
        assert!(noticed, "{mutant:?} was not noticed");
    }
}

#[test]
fn no_other_document_is_a_state() {
    let bad = [
        doc("blocking"),
        doc("committed"),
        Doc { block: Some(5), ..doc("committed") },
        doc("aborted"),
        doc("nothing"),
    ];
    for doc in bad {
        assert!(Operation::parse(Kind::ShardSplit, &doc.bson()).is_err(), "{}", doc.state);
    }
}
