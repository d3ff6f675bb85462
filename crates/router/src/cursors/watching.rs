//! What a merged change stream knows: up to where each shard has sent everything, and where its reader is.

use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_query::change_stream::Token;
use pando_routing::ShardId;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Tokens are texts that sort as the events do.
fn data(token: &RawDoc) -> &str {
    token.get("_data").and_then(|v| v.as_str()).unwrap_or_default()
}

pub(crate) struct Watching {
    /// Those that there were when it was opened.
    shards: BTreeSet<ShardId>,
    /// Events of updates come with the document as it is now.
    pub(super) looks_up: bool,
    /// Up to this event the reader has seen everything.
    after: Option<String>,
    /// That event has to be there, and nobody has sent it yet.
    missing: bool,
    /// Of each shard.
    tokens: Vec<Option<DocBuf>>,
    /// Up to which time each shard was made to write.
    told: Vec<Timestamp>,
    /// Of the event that was given last.
    last: Option<DocBuf>,
    pub(super) invalidated: bool,
}

impl Watching {
    /// `after`: where the reader wants to go on; `must_be_there`: an event of that token is looked for.
    pub(crate) fn new(
        shards: impl IntoIterator<Item = ShardId>,
        after: Option<&RawDoc>,
        must_be_there: bool,
        looks_up: bool,
    ) -> Watching {
        let after = after.map(|token| data(token).to_owned());
        let shards: BTreeSet<ShardId> = shards.into_iter().collect();
        let n = shards.len();
        Watching {
            shards,
            looks_up,
            after,
            missing: must_be_there,
            tokens: vec![None; n],
            told: vec![Timestamp::ZERO; n],
            last: None,
            invalidated: false,
        }
    }
    /// A shard has sent everything up to this token; as a document that sorts like the event.
    pub(super) fn sent_up_to(&mut self, shard: usize, token: DocBuf) -> DocBuf {
        let mut b = DocBuilder::new();
        b.raw_doc("_id", &token);
        if let Some(known) = self.tokens.get_mut(shard) {
            *known = Some(token);
        }
        b.finish()
    }
    /// Whether the reader wants the next event of all shards. One behind the place where it wants to go on says that no shard has
    /// what was there (280).
    pub(super) fn wants(&mut self, event: &RawDoc) -> Result<bool> {
        let Some(token) = event.get("_id").and_then(|v| v.as_doc()) else { return Ok(true) };
        match self.after.as_deref().map(|after| data(token).cmp(after)) {
            None => Ok(true),
            Some(Ordering::Less) => Ok(false),
            Some(Ordering::Equal) => {
                self.missing = false;
                Ok(false)
            }
            Some(Ordering::Greater) if self.missing => Err(not_found(token)),
            Some(Ordering::Greater) => {
                self.after = None;
                Ok(true)
            }
        }
    }
    /// Whether a shard was added since it was opened, whose events nobody sends.
    ///
    /// # Errors
    /// 234: drivers open it anew behind the last event that they have seen, at all shards.
    pub(super) fn check_all(&self, now: impl Iterator<Item = ShardId>) -> Result<()> {
        for shard in now {
            if !self.shards.contains(&shard) {
                let text = format!("shard {shard} was added since the change stream was opened; resume it");
                return Err(Error::new(ErrorCode::RetryChangeStream, text));
            }
        }
        Ok(())
    }
    /// Those of `who` that have not been made to pass a time.
    pub(super) fn not_told_to_pass(&self, time: Timestamp, who: &[usize]) -> Vec<usize> {
        let is_late = |at: &usize| self.told.get(*at).is_some_and(|told| *told < time);
        who.iter().copied().filter(is_late).collect()
    }
    /// This shard has been.
    pub(super) fn told(&mut self, at: usize, time: Timestamp) {
        if let Some(told) = self.told.get_mut(at) {
            *told = time.max(*told);
        }
    }
    /// The time that all shards must have passed before this event can be given.
    pub(super) fn time_of(event: &RawDoc) -> Option<Timestamp> {
        let token = event.get("_id").and_then(|v| v.as_doc())?;
        Token::parse(token).ok().map(|t| t.time)
    }
    /// An event is given; whether it is the last one.
    pub(super) fn give(&mut self, event: &RawDoc) -> bool {
        self.last = event.get("_id").and_then(|v| v.as_doc()).map(RawDoc::to_buf);
        self.invalidated = event.get("operationType").is_some_and(|v| v.as_str() == Some("invalidate"));
        self.invalidated
    }
    /// Behind what was given, or, where nothing waits to be, behind what all shards have sent.
    pub(super) fn resume_token(&self, waits: bool) -> Option<&DocBuf> {
        if waits || self.invalidated {
            return self.last.as_ref();
        }
        let all: Option<Vec<&DocBuf>> = self.tokens.iter().map(Option::as_ref).collect();
        let least = all?.into_iter().min_by(|a, b| data(a).cmp(data(b)));
        match (least, &self.last) {
            (Some(least), Some(last)) if data(last) > data(least) => Some(last),
            (least, _) => least,
        }
    }
}

fn not_found(seen: &RawDoc) -> Error {
    let text = format!("cannot resume stream; the resume token was not found. {seen}");
    Error::new(ErrorCode::ChangeStreamFatalError, text).with_label("NonResumableChangeStreamError")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(shards: usize) -> impl Iterator<Item = ShardId> {
        (0..shards).map(|n| ShardId::new(&format!("s{n}")))
    }

    #[test]
    fn a_shard_that_was_added_is_noticed_and_one_that_is_gone_is_not_missed() {
        let w = Watching::new(of(2), None, false, false);
        assert!(w.check_all(of(2)).is_ok() && w.check_all(of(1)).is_ok());
        assert_eq!(w.check_all(of(3)).unwrap_err().code, ErrorCode::RetryChangeStream);
    }
    use pando_metadata_cache::testing::doc;

    fn token(text: &str) -> DocBuf {
        doc(&format!(r#"{{"_data": "{text}"}}"#))
    }
    fn event(text: &str, kind: &str) -> DocBuf {
        doc(&format!(r#"{{"_id": {{"_data": "{text}"}}, "operationType": "{kind}"}}"#))
    }

    #[test]
    fn a_stream_goes_on_where_all_shards_have_sent_everything() {
        let mut w = Watching::new(of(2), Some(&token("82A")), true, false);
        assert!(!w.wants(&event("82A", "insert")).unwrap() && w.wants(&event("82B", "insert")).unwrap());
        assert_eq!(w.resume_token(false), None, "one has said nothing yet");
        w.sent_up_to(0, token("82F"));
        w.sent_up_to(1, token("82C"));
        assert_eq!(w.resume_token(false), Some(&token("82C")));
        assert!(!w.give(&event("82D", "insert")));
        assert_eq!(w.resume_token(true), Some(&token("82D")));
        assert!(w.give(&event("82E", "invalidate")) && w.invalidated);
    }
    #[test]
    fn a_shard_is_told_once_to_pass_a_time() {
        let mut w = Watching::new(of(3), None, false, false);
        let at = |secs| Timestamp::new(secs, 1);
        assert_eq!(w.not_told_to_pass(at(5), &[0, 2]), [0, 2]);
        w.told(2, at(5));
        assert_eq!(w.not_told_to_pass(at(5), &[0, 2]), [0], "one that could not be told is told again");
        assert_eq!(w.not_told_to_pass(at(4), &[2]), Vec::<usize>::new());
        assert_eq!(w.not_told_to_pass(at(6), &[2]), [2]);
    }
    #[test]
    fn a_place_where_no_shard_has_an_event_is_no_place_to_go_on() {
        let mut w = Watching::new(of(2), Some(&token("82B")), true, false);
        assert!(!w.wants(&event("82A", "insert")).unwrap(), "what came before says nothing");
        let e = w.wants(&event("82C", "insert")).unwrap_err();
        assert_eq!(e.code, ErrorCode::ChangeStreamFatalError);
        let mut w = Watching::new(of(2), Some(&token("82B")), false, false);
        assert!(w.wants(&event("82C", "insert")).unwrap(), "a time has no event");
    }
}
