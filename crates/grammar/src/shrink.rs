//! Smaller programs with the same difference: parts are left out or made simple as long as it stays.

use crate::compare::{Difference, care_of, compare, is_loose_at};
use crate::data;
use crate::draw::Class;
use crate::program::{Call, Program};
use crate::report::json;
use crate::wire::Wire;
use pando_bson::{Bson, Document, doc};

/// Both servers.
pub(crate) struct Pair {
    pub(crate) ours: Wire,
    pub(crate) theirs: Wire,
    /// What both were prepared with last; reading changes nothing of it.
    prepared: Option<String>,
}

/// Tries of one shrinking.
const TRIES: usize = 400;

impl Pair {
    pub(crate) fn new(ours: Wire, theirs: Wire) -> Pair {
        Pair { ours, theirs, prepared: None }
    }

    /// Runs a program on both; its first difference.
    pub(crate) fn difference(&mut self, p: &Program) -> std::io::Result<Option<Difference>> {
        let care = care_of(p);
        let from = self.prepared_upto(p);
        let calls = || p.calls().skip(from).map(|c| (c.db.as_str(), &c.cmd));
        self.theirs.send(calls());
        self.ours.send(calls());
        let mut first = None;
        for (at, call) in p.calls().enumerate().skip(from) {
            let theirs = Document::from(&*self.theirs.receive()?.body);
            let ours = Document::from(&*self.ours.receive()?.body);
            if first.is_none() && at >= p.prep.len() {
                first = compare(call, at, is_loose_at(p, at, care), care, &ours, &theirs);
            }
        }
        Ok(first)
    }

    /// What both answer to the command under test.
    pub(crate) fn answers(&mut self, p: &Program) -> std::io::Result<(Document, Document)> {
        let from = self.prepared_upto(p);
        let calls = || p.calls().skip(from).map(|c| (c.db.as_str(), &c.cmd));
        self.theirs.send(calls());
        self.ours.send(calls());
        let mut last = (Document::new(), Document::new());
        for at in from..p.len() {
            let theirs = Document::from(&*self.theirs.receive()?.body);
            let ours = Document::from(&*self.ours.receive()?.body);
            if at == p.prep.len() {
                last = (ours, theirs);
            }
        }
        Ok(last)
    }

    /// How many of the program's first commands both servers have run already, with nothing changed since.
    fn prepared_upto(&mut self, p: &Program) -> usize {
        let with = p.prep.iter().map(|c| json(&c.cmd)).collect::<Vec<_>>().join("\n");
        let reads = p.class == Class::Read && p.look.is_empty();
        let from = if reads && self.prepared.as_ref() == Some(&with) { p.prep.len() } else { 0 };
        self.prepared = reads.then_some(with);
        from
    }

    /// The smallest program found, its difference, and what both answered.
    pub(crate) fn shrink(&mut self, p: &Program, d: &Difference) -> std::io::Result<(Program, Difference)> {
        let mut best = p.clone();
        let mut last = d.clone();
        let mut tries = 0;
        // Which of two mistakes is told first is worth less than an answer.
        let most = if d.ours_code != "ok" && d.theirs_code != "ok" { TRIES / 4 } else { TRIES };
        if let Some(plain) = on_plain(&best)
            && let Some(found) = self.difference(&plain)?.filter(|f| f.is_like(d))
        {
            (best, last) = (plain, found);
        }
        loop {
            let mut smaller = false;
            for candidate in candidates(&best) {
                tries += 1;
                if tries > most {
                    return Ok((best, last));
                }
                if let Some(found) = self.difference(&candidate)?.filter(|f| f.is_like(d)) {
                    (best, last) = (candidate, found);
                    smaller = true;
                    break;
                }
            }
            if !smaller {
                return Ok((best, last));
            }
        }
    }
}

/// The same program on a collection of its own without indexes.
fn on_plain(p: &Program) -> Option<Program> {
    let name = p.test.cmd.iter().next()?.0.to_owned();
    let Some(Bson::String(coll)) = p.test.cmd.get(&name) else { return None };
    let known = data::READ.contains(&coll.as_str()) || data::SCRATCH.contains(&coll.as_str());
    if !known || data::is_view(coll) || coll == "nope" || p.test.db != data::DB {
        return None;
    }
    let mut docs = data::documents_for(coll);
    if data::SCRATCH.contains(&coll.as_str()) {
        docs.truncate(6);
    }
    let mut q = p.clone();
    q.test.cmd.set(name, "w");
    q.prep.retain(|c| c.name() != "delete" && c.name() != "insert");
    let everything = doc! { "q": Document::new(), "limit": 0 };
    q.prep.push(Call::new(data::DB, doc! { "delete": "w", "deletes": [everything] }));
    q.prep.push(Call::new(data::DB, data::insertion("w", docs)));
    q.look = match p.class {
        Class::Read => Vec::new(),
        _ => vec![Call::new(data::DB, doc! { "find": "w", "sort": doc! { "_id": 1 } })],
    };
    Some(q)
}

/// Programs with one thing less, the largest cuts first.
fn candidates(p: &Program) -> Vec<Program> {
    let mut out = Vec::new();
    let put = |cmd: Document, out: &mut Vec<Program>| {
        let mut q = p.clone();
        q.test.cmd = cmd;
        out.push(q);
    };
    // Documents of the collection.
    for (i, call) in p.prep.iter().enumerate().filter(|(_, c)| c.name() == "insert") {
        let Some(docs) = call.cmd.get("documents").and_then(Bson::as_array) else { continue };
        let mut with = |docs: Vec<Bson>| {
            if docs.is_empty() {
                return;
            }
            let mut q = p.clone();
            q.prep[i].cmd.set("documents", docs);
            out.push(q);
        };
        if docs.len() > 1 {
            with(docs[..docs.len() / 2].to_vec());
            with(docs[docs.len() / 2..].to_vec());
        }
        if docs.len() <= 4 {
            for at in 0..docs.len() {
                let mut fewer = docs.to_vec();
                fewer.remove(at);
                with(fewer);
            }
            for (at, d) in docs.iter().enumerate() {
                let Some(d) = d.as_doc() else { continue };
                for (name, _) in d.iter().filter(|(n, _)| *n != "_id") {
                    let mut less = d.clone();
                    less.remove(name);
                    let mut changed = docs.to_vec();
                    changed[at] = Bson::Document(less);
                    with(changed);
                }
            }
        }
    }
    fewer(&p.test.cmd).into_iter().for_each(|cmd| put(cmd, &mut out));
    out
}

/// The command with one thing less, or simpler.
pub(crate) fn fewer(cmd: &Document) -> Vec<Document> {
    let mut out = Vec::new();
    for (i, (name, v)) in cmd.iter().enumerate().skip(1) {
        let needed =
            ["pipeline", "cursor", "updates", "deletes", "documents", "u", "q", "key"].contains(&name);
        if !needed {
            let mut less = cmd.clone();
            less.remove(name);
            out.push(less);
        }
        for v in smaller(v, 0) {
            let mut fields = cmd.clone().into_fields();
            fields[i].1 = v;
            out.push(fields.into());
        }
    }
    out
}

/// Simpler values: a part less, a part in its place, a small constant.
fn smaller(v: &Bson, depth: usize) -> Vec<Bson> {
    let mut out = Vec::new();
    if depth > 12 {
        return out;
    }
    match v {
        Bson::Array(a) => {
            for i in 0..a.len() {
                let mut less = a.clone();
                less.remove(i);
                out.push(Bson::Array(less));
            }
            if depth > 1 {
                out.extend(a.iter().cloned());
            }
            for (i, x) in a.iter().enumerate() {
                for x in smaller(x, depth + 1) {
                    let mut changed = a.clone();
                    changed[i] = x;
                    out.push(Bson::Array(changed));
                }
            }
        }
        Bson::Document(d) => {
            if depth > 2 {
                out.push(Bson::Int32(1));
                out.push(Bson::Null);
                out.extend(d.iter().filter(|(_, v)| v.as_doc().is_some()).map(|(_, v)| v.clone()));
            }
            for (name, _) in d.iter() {
                let mut less = d.clone();
                less.remove(name);
                out.push(Bson::Document(less));
            }
            for (i, (_, x)) in d.iter().enumerate() {
                for x in smaller(x, depth + 1) {
                    let mut fields = d.clone().into_fields();
                    fields[i].1 = x;
                    out.push(Bson::Document(fields.into()));
                }
            }
        }
        Bson::Int32(0 | 1) | Bson::Null | Bson::Boolean(_) => {}
        Bson::String(s) if s.is_empty() || s.starts_with('$') || s == "a" => {}
        Bson::String(_) => out.push("a".into()),
        _ => out.push(Bson::Int32(1)),
    }
    out
}
