//! Differences that are accepted, each with its reason: `reasons.json` beside this crate's manifest.
//!
//! An entry may say which command, which codes (`pairs` are ours and theirs together), which kind of difference and which text (of
//! the command as JSON, or of one of the two answers) it is about; all that it says must fit.

use crate::compare::Difference;
use crate::program::Program;
use crate::report::json;
use pando_bson::{Bson, Document, extjson};

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
            "reason",
        ];
        for e in &Reasons::read().entries {
            assert!(e.get("reason").and_then(Bson::as_str).is_some_and(|r| r.len() > 20), "{e:?}");
            assert!(e.len() > 1 && e.iter().all(|(k, _)| KEYS.contains(&k)), "{e:?}");
        }
    }
}
