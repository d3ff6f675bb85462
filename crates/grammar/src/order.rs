//! Which of several mistakes is told first: the proof that a difference is nothing else.
//!
//! Two servers that refuse one program with different errors may both know both mistakes and look for them in another order. That is
//! shown, not assumed: parts of the program are left out, or made right, until one server's mistake alone is left, and both servers tell it, with
//! the code and the text that it had; then the same for the other's. A mistake that one of them does not know stays a difference.

use crate::compare::{Difference, code};
use crate::data;
use crate::judge::blurred;
use crate::program::Program;
use crate::report::json;
use crate::shrink::{Pair, fewer};
use pando_bson::{Bson, Document, doc};
use std::collections::BTreeSet;

/// Programs that are tried for each of the two mistakes.
const TRIES: usize = 600;

/// An error as a client sees it: the code, and the text without numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Told {
    code: String,
    text: String,
}

impl Told {
    fn of(reply: &Document) -> Told {
        let first = reply.get("writeErrors").and_then(Bson::as_array).and_then(<[Bson]>::first);
        let text = first.and_then(Bson::as_doc).unwrap_or(reply).get("errmsg").and_then(Bson::as_str);
        Told { code: code(reply), text: blurred(text.unwrap_or_default()) }
    }
    fn is_error(&self) -> bool {
        self.code != "ok"
    }
}

/// What both servers said to the command under test.
struct Answers {
    ours: Told,
    theirs: Told,
}

/// Whether both servers know both mistakes of a program that they refuse with different errors.
pub(crate) fn is_order_of_mistakes(pair: &mut Pair, p: &Program, d: &Difference) -> std::io::Result<bool> {
    if d.kind != "code" || d.at != p.prep.len() {
        return Ok(false);
    }
    let mut part = p.clone();
    both_are_known(&p.test.db, &p.test.cmd, |cmd| {
        part.test.cmd.clone_from(cmd);
        let (ours, theirs) = pair.answers(&part)?;
        Ok(Answers { ours: Told::of(&ours), theirs: Told::of(&theirs) })
    })
}

fn both_are_known(
    db: &str,
    cmd: &Document,
    mut ask: impl FnMut(&Document) -> std::io::Result<Answers>,
) -> std::io::Result<bool> {
    let whole = ask(cmd)?;
    if !whole.ours.is_error() || !whole.theirs.is_error() || whole.ours.code == whole.theirs.code {
        return Ok(false);
    }
    let theirs = |a: &Answers| a.theirs == whole.theirs && a.ours.code == whole.theirs.code;
    let ours = |a: &Answers| a.ours == whole.ours && a.theirs.code == whole.ours.code;
    Ok(remains(db, cmd, &whole, &mut ask, theirs)? && remains(db, cmd, &whole, &mut ask, ours)?)
}

/// Whether some part of the command is answered as `wanted`. Parts that are answered as the whole are looked into further.
fn remains(
    db: &str,
    cmd: &Document,
    whole: &Answers,
    ask: &mut impl FnMut(&Document) -> std::io::Result<Answers>,
    wanted: impl Fn(&Answers) -> bool,
) -> std::io::Result<bool> {
    let mut open = vec![cmd.clone()];
    let mut seen = BTreeSet::new();
    while let Some(cmd) = open.pop() {
        for part in parts(db, &cmd) {
            if !seen.insert(json(&part)) {
                continue;
            }
            if seen.len() > TRIES {
                return Ok(false);
            }
            let answers = ask(&part)?;
            if wanted(&answers) {
                return Ok(true);
            }
            if answers.ours == whole.ours && answers.theirs == whole.theirs {
                open.push(part);
                break;
            }
        }
    }
    Ok(false)
}

/// The command with one thing less, or with one thing made right: what a mistake needs may be what the other one is about.
fn parts(db: &str, cmd: &Document) -> Vec<Document> {
    let mut out = made_right(db, cmd);
    out.extend(fewer(cmd));
    for (i, (_, v)) in cmd.iter().enumerate().skip(1) {
        for v in with_another_leaf(v) {
            let mut fields = cmd.clone().into_fields();
            fields[i].1 = v;
            out.push(fields.into());
        }
    }
    out
}

/// The command about a collection that nothing is the matter with, and with what it needs.
fn made_right(db: &str, cmd: &Document) -> Vec<Document> {
    let mut out = Vec::new();
    let Some((name, first)) = cmd.iter().next() else { return out };
    let with = |field: &str, v: Bson| {
        let mut other = cmd.clone();
        other.set(field, v);
        other
    };
    match (name, first) {
        ("getMore", _) => {}
        ("explain", Bson::Document(inner)) => {
            out.extend(made_right(db, inner).into_iter().map(|inner| with(name, inner.into())));
        }
        _ => {
            // One that is there as the program has prepared it, and one that is not.
            let names = if db == data::DDL_DB { ["x", "fresh"] } else { ["w", "fresh"] };
            out.extend(names.into_iter().filter(|n| first.as_str() != Some(n)).map(|n| with(name, n.into())));
        }
    }
    let lacking = needed(name).into_iter().filter(|(field, v)| cmd.get(field) != Some(v));
    out.extend(lacking.map(|(field, v)| with(field, v)));
    out
}

/// Arguments without which a command is refused.
fn needed(command: &str) -> Vec<(&'static str, Bson)> {
    match command {
        "findAndModify" => vec![("remove", true.into())],
        "createIndexes" => {
            let index = doc! { "key": doc! { "a": 1 }, "name": "a_1" };
            vec![("indexes", Bson::Array(vec![index.into()]))]
        }
        "mapReduce" => vec![
            ("map", "function() {}".into()),
            ("reduce", "function() {}".into()),
            ("out", doc! { "inline": 1 }.into()),
        ],
        "update" => {
            let nothing = doc! { "q": Document::new(), "u": doc! { "$set": doc! { "a": 1 } } };
            vec![("updates", Bson::Array(vec![nothing.into()]))]
        }
        _ => Vec::new(),
    }
}

/// The value with one of its leaves replaced by something that is right in many places.
fn with_another_leaf(v: &Bson) -> Vec<Bson> {
    match v {
        Bson::Array(a) if !a.is_empty() => {
            let each =
                a.iter().enumerate().flat_map(|(i, x)| with_another_leaf(x).into_iter().map(move |y| (i, y)));
            let changed = each.map(|(i, y)| {
                let mut a = a.clone();
                a[i] = y;
                Bson::Array(a)
            });
            changed.collect()
        }
        Bson::Document(d) if !d.is_empty() => {
            let each = d
                .iter()
                .enumerate()
                .flat_map(|(i, (_, x))| with_another_leaf(x).into_iter().map(move |y| (i, y)));
            let changed = each.map(|(i, y)| {
                let mut fields = d.clone().into_fields();
                fields[i].1 = y;
                Bson::Document(fields.into())
            });
            changed.collect()
        }
        leaf => {
            let right: [Bson; 5] = [1.into(), "$a".into(), "day".into(), true.into(), Document::new().into()];
            right.into_iter().filter(|r| r != leaf).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(code: &str) -> Told {
        Told { code: code.into(), text: format!("{code} is wrong") }
    }
    /// A server that looks at fields in this order, and tells the first that is a text.
    fn server(order: &[&str], cmd: &Document) -> Told {
        let wrong = order.iter().find(|f| matches!(cmd.get(f), Some(Bson::String(_))));
        wrong.map_or(Told { code: "ok".into(), text: String::new() }, |f| told(f))
    }
    fn known(ours: &[&str], theirs: &[&str]) -> bool {
        let cmd = doc! { "find": "w", "limit": "x", "skip": "y", "batchSize": 1 };
        both_are_known("df", &cmd, |cmd| Ok(Answers { ours: server(ours, cmd), theirs: server(theirs, cmd) }))
            .unwrap()
    }

    #[test]
    fn two_mistakes_that_both_know_are_told_from_one_that_only_one_knows() {
        assert!(known(&["limit", "skip"], &["skip", "limit"]));
        assert!(!known(&["limit", "skip"], &["skip"]));
        assert!(!known(&["limit"], &["skip", "limit"]));
        assert!(!known(&["limit", "skip"], &["limit", "skip"]));
    }

    #[test]
    fn the_same_code_with_another_text_is_another_mistake() {
        let cmd = doc! { "find": "w", "limit": "x", "skip": "y" };
        let blunt = |cmd: &Document| match server(&["skip", "limit"], cmd) {
            // It calls everything a mistake in `skip`.
            Told { code, .. } if code != "ok" => {
                Told { code: "skip".into(), text: format!("{code} is no skip") }
            }
            fine => fine,
        };
        let proven = both_are_known("df", &cmd, |cmd| {
            Ok(Answers { ours: server(&["limit", "skip"], cmd), theirs: blunt(cmd) })
        });
        assert!(!proven.unwrap());
    }
}
