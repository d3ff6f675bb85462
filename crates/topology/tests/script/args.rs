//! Reading a script line: words, `key=value` pairs, positions, configurations.

use pando_base::{OpTime, Timestamp};
use pando_topology::*;

pub struct Args {
    pub command: String,
    pub words: Vec<String>,
    pub pairs: Vec<(String, String)>,
}

impl Args {
    pub fn parse(line: &str) -> Args {
        let mut it = line.split_whitespace();
        let command = it.next().unwrap_or_default().to_owned();
        let (mut words, mut pairs) = (Vec::new(), Vec::new());
        for token in it {
            match token.split_once('=') {
                Some((k, v)) => pairs.push((k.to_owned(), v.to_owned())),
                None => words.push(token.to_owned()),
            }
        }
        Args { command, words, pairs }
    }
    pub fn word(&self, i: usize) -> &str {
        self.words.get(i).unwrap_or_else(|| panic!("{} wants more words", self.command))
    }
    pub fn node(&self, i: usize) -> i64 {
        node(self.word(i))
    }
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }
    pub fn number(&self, key: &str) -> Option<i64> {
        self.get(key).map(|v| v.parse().unwrap_or_else(|_| panic!("{key} wants a number")))
    }
    pub fn flag(&self, word: &str) -> bool {
        self.words.iter().any(|w| w == word)
    }
}

/// `n2` is member 2; `none` is nobody.
pub fn node(name: &str) -> i64 {
    if name == "none" { -1 } else { name.trim_start_matches('n').parse().expect("a member") }
}

/// `lost=n1 lost-in=2`: member 1, primary of term 2 (or the present one).
pub fn lost(a: &Args, term: i64) -> Option<message::LostPrimary> {
    let id = node(a.get("lost")?);
    Some(message::LostPrimary { id, term: a.number("lost-in").unwrap_or(term) })
}

pub fn optime(text: &str) -> OpTime {
    let (term, ts) = text.split_once(':').expect("term:seconds");
    let (secs, inc) = ts.split_once('.').unwrap_or((ts, "1"));
    let number = |s: &str| s.parse::<u32>().expect("a number");
    OpTime::new(Timestamp::new(number(secs), number(inc)), term.parse().expect("a term"))
}
pub fn position(text: &str) -> Position {
    let op = optime(text);
    Position::new(op, i64::from(op.ts.secs()) * 1000)
}
/// `set-id=2`: metadata of that set.
pub fn set_id(a: &Args) -> Option<pando_bson::ObjectId> {
    a.number("set-id").map(|n| pando_bson::ObjectId([n as u8; 12]))
}
/// `version,term`.
pub fn config_id(text: &str) -> ConfigId {
    let (version, term) = text.split_once(',').expect("version,term");
    ConfigId { version: version.parse().expect("a version"), term: term.parse().expect("a term") }
}

pub fn timer(name: &str) -> Timer {
    match name {
        "election" => Timer::Election,
        "priority" => Timer::PriorityTakeover,
        "takeover" => Timer::CatchUpTakeover,
        "fast" => Timer::FastElection,
        "wholestart" => Timer::WholeStart,
        "uptodate" => Timer::UpToDate,
        "votes" => Timer::Votes,
        "liveness" => Timer::Liveness,
        "catchup" => Timer::CatchUp,
        "stepdown" => Timer::StepDown,
        "period" => Timer::StepDownPeriod,
        "keepalive" => Timer::KeepAlive,
        "quorum" => Timer::Quorum,
        other => panic!("no such timer: {other}"),
    }
}

/// `set 3 n1.priority=2 n2.arbiter=yes chaining=no …`
pub fn config_from(a: &Args) -> ReplSetConfig {
    let mut c = ReplSetConfig::single("rs", "n0:1");
    let n: i64 = a.word(0).parse().expect("how many members");
    c.members = (0..n).map(|i| Member::new(i, &format!("n{i}:1"))).collect();
    c.term = 0;
    for (key, value) in &a.pairs {
        let yes = value == "yes";
        if let Some((who, what)) = key.split_once('.') {
            let id = node(who);
            let m = c.members.iter_mut().find(|m| m.id == id).expect("a member");
            match what {
                "priority" => m.priority = value.parse().expect("a priority"),
                "votes" => m.votes = value.parse().expect("votes"),
                "arbiter" => {
                    m.arbiter_only = yes;
                    m.priority = 0.0;
                }
                "hidden" => {
                    m.hidden = yes;
                    m.priority = 0.0;
                }
                "delay" => {
                    m.secondary_delay_secs = value.parse().expect("seconds");
                    m.priority = 0.0;
                }
                "indexes" => m.build_indexes = yes,
                "tag" => {
                    let (k, v) = value.split_once(':').expect("key:value");
                    m.tags.push((k.to_owned(), v.to_owned()));
                }
                other => panic!("no such member field: {other}"),
            }
            continue;
        }
        match key.as_str() {
            "version" => c.version = value.parse().expect("a version"),
            "term" => c.term = value.parse().expect("a term"),
            "chaining" => c.settings.chaining_allowed = yes,
            "id" => {
                c.settings.replica_set_id = Some(pando_bson::ObjectId([value.parse().expect("a byte"); 12]))
            }
            "split" => {
                let (tag, name) = value.split_once(':').expect("tag:set");
                c = split::split_config(&c, tag, name, pando_bson::ObjectId([2; 12]), None)
                    .expect("a set to split");
            }
            // Carried on by a primary of that term.
            "carried-in" => c.term = value.parse().expect("a term"),
            "journal" => c.write_concern_majority_journal_default = yes,
            "catchup" => c.settings.catch_up_timeout_ms = value.parse().expect("milliseconds"),
            "without" => c.members.retain(|m| m.id != node(value)),
            "mode" => {
                // name:tag:count
                let parts: Vec<&str> = value.split(':').collect();
                let mut wanted = pando_bson::Document::new();
                wanted.push(parts[1], parts[2].parse::<i32>().expect("a count"));
                c.settings.get_last_error_modes.push(parts[0], wanted);
            }
            other => panic!("no such setting: {other}"),
        }
    }
    c
}
