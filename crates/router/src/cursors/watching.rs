//! What a merged change stream knows: up to where each shard has sent everything, and where its reader is.

use pando_bson::{DocBuf, DocBuilder, RawDoc};

/// Tokens are texts that sort as the events do.
fn data(token: &RawDoc) -> &str {
    token.get("_data").and_then(|v| v.as_str()).unwrap_or_default()
}

pub(crate) struct Watching {
    /// Events of updates come with the document as it is now.
    pub(super) looks_up: bool,
    /// Up to this event the reader has seen everything.
    after: Option<String>,
    /// Of each shard.
    tokens: Vec<Option<DocBuf>>,
    /// Of the event that was given last.
    last: Option<DocBuf>,
    pub(super) invalidated: bool,
}

impl Watching {
    pub(crate) fn new(shards: usize, after: Option<&RawDoc>, looks_up: bool) -> Watching {
        let after = after.map(|token| data(token).to_owned());
        Watching { looks_up, after, tokens: vec![None; shards], last: None, invalidated: false }
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
    /// Before where the reader wants to go on.
    pub(super) fn has_been_seen(&self, event: &RawDoc) -> bool {
        let token = event.get("_id").and_then(|v| v.as_doc());
        match (&self.after, token) {
            (Some(after), Some(token)) => data(token) <= after.as_str(),
            _ => false,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use pando_metadata_cache::testing::doc;

    fn token(text: &str) -> DocBuf {
        doc(&format!(r#"{{"_data": "{text}"}}"#))
    }
    fn event(text: &str, kind: &str) -> DocBuf {
        doc(&format!(r#"{{"_id": {{"_data": "{text}"}}, "operationType": "{kind}"}}"#))
    }

    #[test]
    fn a_stream_goes_on_where_all_shards_have_sent_everything() {
        let mut w = Watching::new(2, Some(&token("82A")), false);
        assert!(w.has_been_seen(&event("82A", "insert")) && !w.has_been_seen(&event("82B", "insert")));
        assert_eq!(w.resume_token(false), None, "one has said nothing yet");
        w.sent_up_to(0, token("82F"));
        w.sent_up_to(1, token("82C"));
        assert_eq!(w.resume_token(false), Some(&token("82C")));
        assert!(!w.give(&event("82D", "insert")));
        assert_eq!(w.resume_token(true), Some(&token("82D")));
        assert!(w.give(&event("82E", "invalidate")) && w.invalidated);
    }
}
