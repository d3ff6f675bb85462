//! The configuration by which members without a vote leave a set for one of their own (SV-SPLIT-1, SV-SPLIT-9).
//!
//! ```text
//!   {_id: donor, members: [0 1 2, 3 4 5 with the tag]}
//!     └► {_id: donor, version + 1, members: [0 1 2], recipientConfig: {_id: recipient, version + 1, members: [0 1 2, once 3 4 5]}}
//! ```
//! Members that stay keep their `_id`s. A set knows its members by them: a reconfiguration that moves a host to another `_id` is
//! refused (R-CONF-4), and a recipient that still asks under its old `_id` would be taken for the member that got it. Those that leave
//! are numbered anew from 0: nobody in their new set knows them by another number.
//!
//! The terms of the new set begin [`limits::SPLIT_TERMS_AHEAD`] above the old set's. Its members leave one after the other, and one that
//! comes late may hold entries of a later term of the donor than those before it: no term may mean two offices, for two logs whose
//! newest entries are of one term are taken for one log (R-CP-3).
//!
//! What a member does that finds itself in a recipient configuration says [`crate::recipient`].

use crate::config::{Member, ReplSetConfig, invalid};
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{ObjectId, RawDoc};
use std::collections::BTreeSet;

fn value_of<'a>(m: &'a Member, tag: &str) -> Option<&'a str> {
    m.tags.iter().find(|(key, _)| key == tag).map(|(_, value)| value.as_str())
}

/// Whether the members with the key `tag` may leave for a set named `set_name`; their hosts, in the configuration's order (SV-SPLIT-1).
pub fn check_recipients(config: &ReplSetConfig, tag: &str, set_name: &str) -> Result<Vec<String>> {
    if set_name.is_empty() {
        return Err(Error::bad_value("The name of the recipient set must not be empty"));
    }
    if tag.is_empty() {
        return Err(Error::bad_value("The tag of the recipient members must not be empty"));
    }
    if set_name == config.name {
        let text = format!("The recipient set must not be named as the donor set is: {set_name}");
        return Err(Error::bad_value(text));
    }
    let recipients: Vec<&Member> = config.members.iter().filter(|m| value_of(m, tag).is_some()).collect();
    let (found, least) = (recipients.len(), limits::SPLIT_RECIPIENTS_MIN);
    if found < least {
        return Err(invalid(format!(
            "A shard split needs at least {least} nodes with tag {tag}, but the configuration of {} has {found}",
            config.name
        )));
    }
    let mut values = BTreeSet::new();
    for m in &recipients {
        if m.votes != 0 || m.priority != 0.0 || !m.hidden {
            return Err(invalid(format!(
                "The recipient node {} must be hidden, without a vote and with priority 0; it has votes {}, priority {}, \
                 hidden {}",
                m.host, m.votes, m.priority, m.hidden
            )));
        }
        let value = value_of(m, tag).unwrap_or_default();
        if !values.insert(value) {
            let text = format!(
                "Each recipient node needs a value of its own for tag {tag}: {} has '{value}' too",
                m.host
            );
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
    }
    Ok(recipients.into_iter().map(|m| m.host.clone()).collect())
}

/// The configuration that splits `config`; the set that leaves gets `new_id` (SV-SPLIT-9). Its terms follow once the donor's primary
/// installs it ([`set_terms`]). One that is split already is so for the set `before`, all of whose members have left.
pub fn split_config(
    config: &ReplSetConfig,
    tag: &str,
    set_name: &str,
    new_id: ObjectId,
    before: Option<&str>,
) -> Result<ReplSetConfig> {
    let present = config.recipient_config.as_ref();
    if let Some(present) = present.filter(|present| before != Some(present.name.as_str())) {
        let text = format!("The configuration is split already, for the set {}", present.name);
        return Err(invalid(text));
    }
    check_recipients(config, tag, set_name)?;
    let (leave, stay): (Vec<Member>, Vec<Member>) =
        config.members.iter().cloned().partition(|m| value_of(m, tag).is_some());
    let mut recipient = ReplSetConfig {
        name: set_name.to_owned(),
        version: config.version + 1,
        members: leave.into_iter().enumerate().map(|(i, m)| as_voter(i, m, tag)).collect(),
        ..config.clone()
    };
    recipient.settings.replica_set_id = Some(new_id);
    recipient.recipient_config = None;
    let mut next = ReplSetConfig { version: config.version + 1, members: stay, ..config.clone() };
    drop_modes(&mut recipient);
    drop_modes(&mut next);
    recipient.members.iter().try_for_each(|m| {
        m.validate().map_err(|e| invalid(format!("The recipient node {} cannot vote: {}", m.host, e.message)))
    })?;
    next.recipient_config = Some(Box::new(recipient));
    set_terms(&mut next, config.term);
    next.validate()?;
    Ok(next)
}

/// A recipient as a full member of its own set.
fn as_voter(place: usize, m: Member, tag: &str) -> Member {
    let tags = m.tags.into_iter().filter(|(key, _)| key != tag).collect();
    Member { id: place as i64, votes: 1, priority: 1.0, hidden: false, newly_added: false, tags, ..m }
}

/// Modes of write concerns that ask for tags which nobody has any more.
fn drop_modes(config: &mut ReplSetConfig) {
    let has = |key: &str| config.members.iter().any(|m| value_of(m, key).is_some());
    let mut kept = pando_bson::Document::new();
    for (name, wanted) in config.settings.get_last_error_modes.iter() {
        if wanted.as_doc().is_some_and(|d| d.iter().all(|(key, _)| has(key))) {
            kept.push(name, wanted.clone());
        }
    }
    config.settings.get_last_error_modes = kept;
}

/// The term of a split configuration, and of the set that leaves.
pub(crate) fn set_terms(config: &mut ReplSetConfig, term: pando_base::Term) {
    config.term = term;
    if let Some(recipient) = &mut config.recipient_config {
        recipient.term = term.max(0) + limits::SPLIT_TERMS_AHEAD;
    }
}

/// The hosts that leave, where this is the configuration that splits off the set `set_name`.
pub fn is_split_for(config: &ReplSetConfig, set_name: &str) -> Option<Vec<String>> {
    let recipient = config.recipient_config.as_ref().filter(|r| r.name == set_name)?;
    Some(recipient.members.iter().map(|m| m.host.clone()).collect())
}

/// Only one that is none within another one.
pub(crate) fn parse_recipient(doc: &RawDoc) -> Result<ReplSetConfig> {
    if doc.get("recipientConfig").is_some() {
        return Err(invalid("recipientConfig must not contain a recipientConfig of its own"));
    }
    ReplSetConfig::parse(doc).map_err(|e| invalid(format!("recipientConfig :: caused by :: {}", e.message)))
}

impl ReplSetConfig {
    /// That the set that leaves is one by itself, and another one (SV-SPLIT-9).
    pub(crate) fn validate_recipient(&self) -> Result<()> {
        let Some(recipient) = &self.recipient_config else { return Ok(()) };
        if recipient.recipient_config.is_some() {
            return Err(invalid("recipientConfig must not contain a recipientConfig of its own"));
        }
        recipient
            .validate()
            .map_err(|e| invalid(format!("recipientConfig :: caused by :: {}", e.message)))?;
        if recipient.name == self.name {
            let text = format!("recipientConfig must name another set than {}", self.name);
            return Err(invalid(text));
        }
        let id = recipient.settings.replica_set_id;
        if id.is_none() || id == self.settings.replica_set_id {
            return Err(invalid("recipientConfig must have a settings.replicaSetId of its own"));
        }
        let twice = recipient.members.iter().find(|r| self.members.iter().any(|m| m.host == r.host));
        if let Some(m) = twice {
            let text = format!("The host {} is a member of the set and of its recipientConfig", m.host);
            return Err(invalid(text));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
