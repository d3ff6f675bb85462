//! State documents of both sides: what they say, and what is none.

use pando_base::{OpTime, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, doc};
use pando_workflows::Workflow;
use pando_workflows::donate_tenants::{self, DonateTenants};
use pando_workflows::receive_tenants::{self, Progress, ReceiveTenants};
use pando_workflows::shard_split::append_op_time;

pub(super) fn document(state: &str, fields: &[&str]) -> DocBuf {
    let mut b = DocBuilder::new();
    b.uuid("_id", &Uuid([9; 16]).0).str("tenantId", "t").str("recipientConnectionString", "r/a:1");
    b.str("donorConnectionString", "d/b:1").str("donorSetName", "d").str("recipientSetName", "r");
    b.str("state", state);
    for field in fields {
        match *field {
            "copied" => _ = b.bool("copied", true),
            "commitOrAbortOpTime" => append_op_time(&mut b, field, OpTime::new(Timestamp::new(6, 1), 2)),
            "abortReason" => _ = b.raw_doc(field, &doc! { "code": 2, "errmsg": "no" }.to_raw()),
            "expireAt" => _ = b.date(field, 7),
            other => _ = b.timestamp(other, Timestamp::new(5, 1)),
        }
    }
    b.finish()
}

#[test]
fn a_donor_says_what_its_state_needs_and_nothing_else() {
    let (block, decided, why, expires) = ("blockTimestamp", "commitOrAbortOpTime", "abortReason", "expireAt");
    let good: &[(&str, &[&str])] = &[
        ("uninitialized", &[]),
        ("aborting index builds", &[]),
        ("data sync", &[]),
        ("blocking", &[block]),
        ("committed", &[block, decided]),
        ("committed", &[block, decided, expires]),
        ("aborted", &[decided, why]),
        ("aborted", &[block, decided, why, expires]),
    ];
    for (state, fields) in good {
        let doc = document(state, fields);
        let machine = DonateTenants::of(&doc).expect(state);
        let kept = machine.document().expect("a document");
        assert!(DonateTenants::of(&kept).is_ok(), "{state}");
        assert_eq!(kept.iter().filter(|e| doc.elem(e.name()).is_none()).count(), 0, "{kept}");
        assert_eq!(donate_tenants::decided(&doc).is_some(), fields.contains(&decided));
        assert_eq!(donate_tenants::is_forgotten(&doc), fields.contains(&expires));
    }
    let bad: &[(&str, &[&str])] = &[
        ("nothing", &[]),
        ("uninitialized", &[block]),
        ("data sync", &[block]),
        ("blocking", &[]),
        ("blocking", &[block, expires]),
        ("committed", &[block]),
        ("committed", &[block, decided, why]),
        ("committed", &[decided]),
        ("aborted", &[decided]),
        ("aborted", &[why]),
    ];
    for (state, fields) in bad {
        assert!(DonateTenants::of(&document(state, fields)).is_err(), "{state} {fields:?}");
    }
}

#[test]
fn a_recipient_says_what_its_state_needs_and_nothing_else() {
    let (start, before, block) =
        ("startApplyingDonorTimestamp", "rejectReadsBeforeTimestamp", "blockTimestamp");
    let good: &[(&str, &[&str], Progress)] = &[
        ("uninitialized", &[], Progress::Copies),
        ("started", &[], Progress::Copies),
        ("started", &["copied"], Progress::Copies),
        ("consistent", &["copied", start], Progress::Consistent),
        ("consistent", &["copied", start, before, block], Progress::Received),
        ("committed", &["copied", start, before, block], Progress::Committed),
        ("committed", &["copied", start, before, block, "expireAt"], Progress::Committed),
        ("aborted", &["abortReason"], Progress::Aborted),
        ("aborted", &["copied", start, "abortReason", "expireAt"], Progress::Aborted),
    ];
    for (state, fields, progress) in good {
        let doc = document(state, fields);
        let kept = ReceiveTenants::of(&doc).expect(state).document().expect("a document");
        assert!(ReceiveTenants::of(&kept).is_ok(), "{state}");
        assert_eq!(receive_tenants::progress(&doc), *progress);
        assert_eq!(receive_tenants::is_forgotten(&doc), fields.contains(&"expireAt"));
        assert_eq!(receive_tenants::why_aborted(&doc).is_some(), *progress == Progress::Aborted);
    }
    let bad: &[(&str, &[&str])] = &[
        ("nothing", &[]),
        ("started", &[start]),
        ("consistent", &[]),
        ("consistent", &[before]),
        ("consistent", &[start, "expireAt"]),
        ("committed", &[start]),
        ("committed", &[start, before]),
        ("committed", &[start, before, block, "abortReason"]),
        ("aborted", &[]),
    ];
    for (state, fields) in bad {
        assert!(ReceiveTenants::of(&document(state, fields)).is_err(), "{state} {fields:?}");
    }
}
