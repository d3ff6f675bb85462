use super::*;
use pando_base::Result;
use pando_bson::Document;

fn of_six() -> ReplSetConfig {
    let mut c = ReplSetConfig::single("donor", "n0:1");
    (c.version, c.term) = (4, 7);
    c.settings.replica_set_id = Some(ObjectId([1; 12]));
    c.settings.election_timeout_ms = 1234;
    c.members = [5, 0, 1, 2, 8, 9].map(|id| Member::new(id, &format!("n{id}:1"))).into();
    for i in [0, 4, 5] {
        let m = &mut c.members[i];
        (m.votes, m.priority, m.hidden) = (0, 0.0, true);
        m.tags = vec![("split".to_owned(), format!("v{i}")), ("dc".to_owned(), "east".to_owned())];
    }
    c
}
fn refused<T: std::fmt::Debug>(r: Result<T>) -> (i32, String) {
    let e = r.unwrap_err();
    (e.code.0, e.message.to_string())
}
fn split() -> ReplSetConfig {
    split_config(&of_six(), "split", "recipient", ObjectId([2; 12]), None).unwrap()
}
fn without(change: impl FnOnce(&mut ReplSetConfig)) -> (i32, String) {
    let mut c = of_six();
    change(&mut c);
    refused(check_recipients(&c, "split", "recipient"))
}

#[test]
fn members_with_the_tag_may_leave() {
    assert_eq!(check_recipients(&of_six(), "split", "recipient").unwrap(), ["n5:1", "n8:1", "n9:1"]);
}

#[test]
fn what_cannot_be_split_is_refused_with_its_reason() {
    assert_eq!(refused(check_recipients(&of_six(), "split", "")).0, 2);
    assert_eq!(refused(check_recipients(&of_six(), "", "recipient")).0, 2);
    assert_eq!(refused(check_recipients(&of_six(), "split", "donor")).0, 2);
    let (code, text) = refused(check_recipients(&of_six(), "other", "recipient"));
    assert_eq!((code, text.contains("needs at least 3 nodes with tag other")), (93, true), "{text}");
    for change in
        [|m: &mut Member| m.votes = 1, |m: &mut Member| m.priority = 1.0, |m: &mut Member| m.hidden = false]
    {
        let (code, text) = without(|c| change(&mut c.members[4]));
        assert_eq!((code, text.contains("n8:1")), (93, true), "{text}");
    }
    let (code, text) = without(|c| c.members[5].tags[0].1 = "v4".to_owned());
    assert_eq!((code, text.contains("n9:1")), (72, true), "{text}");
}

#[test]
fn the_donor_keeps_its_members_as_they_are_and_recipients_become_voters() {
    let next = split();
    let ids = |c: &ReplSetConfig| c.members.iter().map(|m| (m.id, m.host.clone())).collect::<Vec<_>>();
    let pair = |id: i64, host: &str| (id, host.to_owned());
    assert_eq!(ids(&next), [pair(0, "n0:1"), pair(1, "n1:1"), pair(2, "n2:1")]);
    assert_eq!((next.version, next.term, next.name.as_str()), (5, 7, "donor"));
    let inner = next.recipient_config.as_ref().unwrap();
    assert_eq!(ids(inner), [pair(0, "n5:1"), pair(1, "n8:1"), pair(2, "n9:1")]);
    assert_eq!((inner.version, inner.term, inner.name.as_str()), (5, 1007, "recipient"));
    assert!(inner.members.iter().all(|m| m.is_electable() && !m.hidden));
    assert!(inner.members.iter().all(|m| m.tags == [("dc".to_owned(), "east".to_owned())]));
    assert_eq!(inner.settings.election_timeout_ms, 1234);
    assert_eq!(inner.settings.replica_set_id, Some(ObjectId([2; 12])));
    assert!(of_six().check_successor(&next, false).is_ok());
    assert_eq!(is_split_for(&next, "recipient").unwrap(), ["n5:1", "n8:1", "n9:1"]);
    assert_eq!((is_split_for(&next, "donor"), is_split_for(inner, "recipient")), (None, None));
}

#[test]
fn modes_of_tags_that_left_or_stayed_behind_are_dropped() {
    let mut c = of_six();
    c.members[1].tags = vec![("rack".to_owned(), "a".to_owned())];
    let mode = |key: &str| {
        let mut d = Document::new();
        d.push(key, 1);
        d
    };
    c.settings.get_last_error_modes.push("left", mode("dc"));
    c.settings.get_last_error_modes.push("stayed", mode("rack"));
    c.settings.get_last_error_modes.push("split", mode("split"));
    c.validate().unwrap();
    let next = split_config(&c, "split", "recipient", ObjectId([2; 12]), None).unwrap();
    let modes = |c: &ReplSetConfig| {
        c.settings.get_last_error_modes.iter().map(|(k, _)| k.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(modes(&next), ["stayed"]);
    assert_eq!(modes(next.recipient_config.as_ref().unwrap()), ["left"]);
}

#[test]
fn no_set_is_split_twice_nor_a_member_that_could_not_vote_taken_along() {
    let (code, text) = refused(split_config(&split(), "split", "another", ObjectId([3; 12]), None));
    assert_eq!((code, text.contains("split already")), (93, true), "{text}");
    let mut again = split();
    let late = |id: i64| Member {
        votes: 0,
        priority: 0.0,
        hidden: true,
        tags: vec![("late".to_owned(), format!("v{id}"))],
        ..Member::new(id, &format!("late{id}:1"))
    };
    again.members.extend((10..13).map(late));
    assert_eq!(refused(split_config(&again, "late", "third", ObjectId([3; 12]), Some("other"))).0, 93);
    // Those of the one before have left.
    let next = split_config(&again, "late", "third", ObjectId([3; 12]), Some("recipient")).unwrap();
    let third = next.recipient_config.as_ref().unwrap();
    assert_eq!((third.name.as_str(), third.members.len(), next.members.len()), ("third", 3, 3));
    assert!(third.recipient_config.is_none());
    let mut c = of_six();
    c.members[4].secondary_delay_secs = 60;
    assert_eq!(refused(split_config(&c, "split", "recipient", ObjectId([2; 12]), None)).0, 93);
    let same = split_config(&of_six(), "split", "recipient", ObjectId([1; 12]), None);
    assert!(refused(same).1.contains("replicaSetId"));
}

#[test]
fn a_split_configuration_survives_its_document() {
    let next = split();
    assert_eq!(ReplSetConfig::parse(&next.to_doc()).unwrap(), next);
}

#[test]
fn a_recipient_configuration_is_another_set_and_has_none_of_its_own() {
    let broken = |change: fn(&mut ReplSetConfig)| {
        let mut c = split();
        change(c.recipient_config.as_mut().unwrap());
        refused(c.validate())
    };
    let text = |change| {
        let (code, text) = broken(change);
        assert_eq!(code, 93);
        text
    };
    assert!(text(|r| r.name = "donor".to_owned()).contains("another set"));
    assert!(text(|r| r.members[0].host = "n1:1".to_owned()).contains("n1:1"));
    assert!(text(|r| r.settings.replica_set_id = None).contains("replicaSetId"));
    assert!(text(|r| r.settings.replica_set_id = Some(ObjectId([1; 12]))).contains("replicaSetId"));
    assert!(text(|r| r.members.clear()).contains("0 members"));
    assert!(text(|r| r.recipient_config = Some(Box::new(r.clone()))).contains("of its own"));
    let mut c = split();
    let inner = c.recipient_config.as_mut().unwrap();
    inner.recipient_config = Some(Box::new((**inner).clone()));
    assert!(refused(ReplSetConfig::parse(&c.to_doc())).1.contains("of its own"));
}
