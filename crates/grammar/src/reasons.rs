//! Differences that are accepted, each with its reason: `reasons.json` beside this crate's manifest.
//!
//! An entry may say which command, which codes (`pairs` are ours and theirs together), which kind of difference and which text (of
//! the command as JSON, or of one of the two answers) it is about, and that the answers are the same but for the last digit of long
//! decimals (`last_digit`) or what a `distinct` says of values from an index's keys (`from_keys`); all that it says must fit.

use crate::compare::Difference;
use crate::program::Program;
use crate::report::json;
use pando_bson::{Bson, Document, extjson};
use std::collections::BTreeSet;

const TEXT: &str = include_str!("../reasons.json");

pub struct Reasons {
    entries: Vec<Document>,
    /// How often each was used.
    pub used: Vec<usize>,
}

impl Reasons {
    pub fn read() -> Reasons {
        let list = extjson::parse_value(TEXT).expect("reasons.json is JSON");
        let entries: Vec<Document> =
            list.as_array().unwrap_or_default().iter().filter_map(|e| e.as_doc().cloned()).collect();
        let used = vec![0; entries.len()];
        Reasons { entries, used }
    }

    /// Whether some entry explains the difference.
    pub fn explain(&mut self, p: &Program, d: &Difference) -> bool {
        let cmd = json(&p.test.cmd);
        let name = p.calls().nth(d.at).map_or("", |c| c.name());
        let fits = |e: &Document| {
            e.iter().all(|(key, v)| {
                let texts: Vec<&str> = match v {
                    Bson::String(s) => vec![s.as_str()],
                    Bson::Array(a) => a.iter().filter_map(Bson::as_str).collect(),
                    _ => Vec::new(),
                };
                match key {
                    "command" => texts.contains(&name),
                    "kind" => texts.contains(&d.kind),
                    "ours" => texts.contains(&d.ours_code.as_str()),
                    "theirs" => texts.contains(&d.theirs_code.as_str()),
                    "text" | "also_text" => texts.iter().any(|t| cmd.contains(t)),
                    "ours_text" => texts.iter().any(|t| d.ours.contains(t)),
                    "theirs_text" => texts.iter().any(|t| d.theirs.contains(t)),
                    "pairs" => texts.contains(&format!("{} {}", d.ours_code, d.theirs_code).as_str()),
                    "last_digit" => is_last_digit(&d.ours, &d.theirs),
                    "from_keys" => is_from_keys(&d.ours, &d.theirs),
                    _ => key == "reason",
                }
            })
        };
        match self.entries.iter().position(fits) {
            Some(at) => {
                self.used[at] += 1;
                true
            }
            None => false,
        }
    }

    pub fn print(&self) -> String {
        let rows = self.entries.iter().zip(&self.used).filter(|(_, n)| **n > 0);
        rows.map(|(e, n)| format!("  {n} × {}\n", e.get("reason").and_then(Bson::as_str).unwrap_or_default()))
            .collect()
    }
}

/// Two answers that differ by one in the last of a decimal's 34 digits.
fn is_last_digit(a: &str, b: &str) -> bool {
    const NAME: &str = "\"$numberDecimal\":\"";
    let digits = |text: &str| {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        (digits.len() == 34).then(|| digits.parse::<u128>().unwrap_or(0))
    };
    let mut differs = false;
    let (mut a, mut b) = (a.split(NAME), b.split(NAME));
    loop {
        let (x, y) = match (a.next(), b.next()) {
            (None, None) => return differs,
            (Some(x), Some(y)) => (x, y),
            _ => return false,
        };
        if x == y {
            continue;
        }
        let (Some((x, after_x)), Some((y, after_y))) = (x.split_once('"'), y.split_once('"')) else {
            return false;
        };
        let near = matches!((digits(x), digits(y)), (Some(x), Some(y)) if x.abs_diff(y) <= 1);
        if !near || after_x != after_y || x.find('.') != y.find('.') {
            return false;
        }
        differs = true;
    }
}

/// Two answers of `distinct` that are the same but for a null or undefined of theirs, once arrays within arrays are taken apart:
/// an index has a missing field as null, an empty array as undefined, and the elements of inner arrays.
fn is_from_keys(ours: &str, theirs: &str) -> bool {
    let values = |text: &str| {
        let all = extjson::parse_value(text).ok()?;
        let all = all.as_doc()?.get("v")?.as_doc()?.get("values")?.as_array()?.to_vec();
        let apart = all.into_iter().flat_map(|v| match v {
            Bson::Array(inner) => inner,
            v => vec![v],
        });
        let (nothing, some): (Vec<Bson>, Vec<Bson>) =
            apart.partition(|v| matches!(v, Bson::Null | Bson::Undefined));
        let some: BTreeSet<String> = some.iter().map(|v| format!("{v:?}")).collect();
        Some((nothing.contains(&Bson::Null), some))
    };
    match (values(ours), values(theirs)) {
        (Some((our_null, ours)), Some((their_null, theirs))) => ours == theirs && their_null >= our_null,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_says_why_and_what() {
        const KEYS: &[&str] = &[
            "command",
            "kind",
            "ours",
            "theirs",
            "pairs",
            "text",
            "also_text",
            "ours_text",
            "theirs_text",
            "last_digit",
            "from_keys",
            "reason",
        ];
        for e in &Reasons::read().entries {
            assert!(e.get("reason").and_then(Bson::as_str).is_some_and(|r| r.len() > 20), "{e:?}");
            assert!(e.len() > 1 && e.iter().all(|(k, _)| KEYS.contains(&k)), "{e:?}");
        }
    }

    #[test]
    fn only_the_last_digit_of_a_long_decimal_may_differ() {
        let with = |digits: &str| format!(r#"{{"v":{{"a":1,"d":{{"$numberDecimal":"{digits}"}},"z":2}}}}"#);
        let ours = with("1.623257279731768682088563620225517");
        assert!(is_last_digit(&ours, &with("1.623257279731768682088563620225516")));
        assert!(!is_last_digit(&ours, &with("1.623257279731768682088563620225515")));
        assert!(!is_last_digit(&ours, &with("16.23257279731768682088563620225516")));
        assert!(!is_last_digit(&with("1.5"), &with("1.6")));
        assert!(!is_last_digit(&ours, &ours));
    }

    #[test]
    fn only_what_an_index_has_beside_values_may_differ() {
        let with = |values: &str| format!(r#"{{"v":{{"values":[{values}]}}}}"#);
        assert!(is_from_keys(&with("1,2"), &with("null,1,2")));
        assert!(is_from_keys(&with("1,2,[1,2]"), &with("1,2")));
        assert!(is_from_keys(&with("1"), &with(r#"null,{"$undefined":true},1"#)));
        assert!(!is_from_keys(&with("null,1,2"), &with("1,2")));
        assert!(!is_from_keys(&with("1,2"), &with("null,1,2,3")));
        assert!(!is_from_keys(&with("1,[4]"), &with("1")));
    }
}
