//! What was found, grouped; golden cases.

use crate::compare::{Difference, rows};
use crate::data;
use crate::judge::blurred;
use crate::program::Program;
use pando_bson::{Bson, Document, extjson};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Extended JSON as short as exact: what golden files hold.
pub fn golden(out: &mut String, v: &Bson) {
    match v {
        Bson::Int32(n) => {
            let _ = write!(out, "{n}");
        }
        Bson::Double(d) if d.is_finite() => {
            let _ = write!(out, "{d:?}");
        }
        Bson::String(s) => extjson::write_json_string(out, s),
        Bson::Boolean(b) => {
            let _ = write!(out, "{b}");
        }
        Bson::Null => out.push_str("null"),
        Bson::Array(a) => {
            out.push('[');
            for (i, v) in a.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                golden(out, v);
            }
            out.push(']');
        }
        Bson::Document(d) => golden_doc(out, d),
        other => {
            let text = extjson::to_canonical(&Document::from(vec![("v".to_owned(), other.clone())]).to_raw());
            let text = text.trim().strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(&text);
            out.push_str(text.split_once(':').map_or(text, |(_, v)| v.trim()));
        }
    }
}

fn golden_doc(out: &mut String, d: &Document) {
    out.push('{');
    for (i, (k, v)) in d.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        extjson::write_json_string(out, k);
        out.push(':');
        golden(out, v);
    }
    out.push('}');
}

pub fn json(d: &Document) -> String {
    let mut out = String::new();
    golden_doc(&mut out, d);
    out
}

/// A short text that stands for a program, for the names of cases.
fn digest(text: &str) -> String {
    let hash =
        text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    format!("{:08x}", hash as u32)
}

/// A program on collection `w` with the other server's answer, and what it left there, as a line of a golden file.
pub fn golden_case(p: &Program, theirs: &Document, after: Option<Vec<Bson>>) -> Option<String> {
    let docs = p.prep.iter().rev().find(|c| c.name() == "insert")?.cmd.get("documents")?.clone();
    let first = p.test.cmd.iter().next()?;
    if first.1.as_str() != Some("w") || p.test.db != data::DB {
        return None;
    }
    let mut case = Document::new();
    case.push("id", format!("fuzz.{}/{}", first.0, digest(&json(&p.test.cmd))));
    case.push("docs", docs);
    case.push("cmd", p.test.cmd.clone());
    let mut expect = Document::new();
    if theirs.get("ok").and_then(Bson::as_f64) == Some(1.0) {
        match rows(theirs) {
            Some(rows) => expect.push("docs", rows),
            None => {
                let kept =
                    theirs.iter().filter(|(k, _)| !["ok", "$clusterTime", "operationTime"].contains(k));
                let fields: Vec<(String, Bson)> = kept.map(|(k, v)| (k.to_owned(), v.clone())).collect();
                expect.push("reply", Document::from(fields));
            }
        }
    } else {
        let error = ["code", "errmsg"].iter().filter_map(|n| theirs.get(n).cloned()).collect::<Vec<_>>();
        expect.push("err", error);
    }
    match after {
        Some(rows) => expect.push("after", rows),
        None => case.push("after", false),
    }
    case.push("expect", expect);
    Some(json(&case))
}

/// The names of operators in a command: what a difference is about.
pub fn skeleton(cmd: &Document) -> String {
    fn walk(v: &Bson, out: &mut Vec<String>) {
        match v {
            Bson::Document(d) => d.iter().for_each(|(k, v)| {
                if k.starts_with('$') && !out.iter().any(|o| o == k) {
                    out.push(k.to_owned());
                }
                walk(v, out);
            }),
            Bson::Array(a) => a.iter().for_each(|v| walk(v, out)),
            _ => {}
        }
    }
    let mut names: Vec<String> = cmd.iter().next().map(|(n, _)| n.to_owned()).into_iter().collect();
    cmd.iter().for_each(|(_, v)| walk(v, &mut names));
    names.truncate(7);
    names.join(" ")
}

/// One kind of difference.
pub struct Found {
    pub count: usize,
    pub examples: Vec<(Program, Difference, Option<String>)>,
}

/// Differences by kind.
#[derive(Default)]
pub struct Groups {
    pub all: BTreeMap<String, Found>,
}

/// What a difference looks like before it was shrunk.
pub fn rough(p: &Program, d: &Difference) -> String {
    let text = |code: &str, told: &str| match code {
        "ok" => String::new(),
        _ => blurred(told).chars().take(50).collect(),
    };
    let ours = text(&d.ours_code, &d.ours);
    let theirs = text(&d.theirs_code, &d.theirs);
    match d.kind {
        "code" => format!("code {} / {} · {ours} / {theirs}", d.ours_code, d.theirs_code),
        kind => {
            let stage = match p.test.name() {
                "aggregate" => skeleton(&p.test.cmd).split(' ').nth(1).unwrap_or("").to_owned(),
                _ => String::new(),
            };
            format!("{kind} {} {stage}", p.test.name())
        }
    }
}

impl Groups {
    pub fn add(&mut self, p: Program, d: Difference, case: Option<String>) {
        let label = match d.kind {
            "code" => format!("code {} / {}", d.ours_code, d.theirs_code),
            kind => kind.to_owned(),
        };
        let key = format!("{label} · {}", skeleton(&p.test.cmd));
        let found = self.all.entry(key).or_insert_with(|| Found { count: 0, examples: Vec::new() });
        found.count += 1;
        if found.examples.len() < 3 {
            found.examples.push((p, d, case));
        }
    }

    pub fn print(&self) -> String {
        let mut out = String::new();
        let mut all: Vec<_> = self.all.iter().collect();
        // Answers first, then errors on one side only, then which error it is.
        let rank = |f: &Found| match f.examples.first() {
            Some((_, d, _)) if d.kind != "code" => 0,
            Some((_, d, _)) if d.ours_code == "ok" || d.theirs_code == "ok" => 1,
            _ => 2,
        };
        all.sort_by_key(|(_, f)| (rank(f), std::cmp::Reverse(f.count)));
        for (key, found) in all {
            let _ = writeln!(out, "\n## {key}  ({})", found.count);
            for (p, d, case) in &found.examples {
                let what: String = json(&p.test.cmd).chars().take(900).collect();
                let _ = writeln!(out, "seed {} · {}: {what}", p.seed, p.test.db);
                if d.at != p.prep.len() {
                    let _ = writeln!(
                        out,
                        "  at: {}",
                        p.calls().nth(d.at).map_or(String::new(), |c| json(&c.cmd))
                    );
                }
                let cut = |s: &str| s.chars().take(400).collect::<String>().replace('\n', "\n          ");
                let _ = writeln!(out, "  ours   [{}] {}", d.ours_code, cut(&d.ours));
                let _ = writeln!(out, "  theirs [{}] {}", d.theirs_code, cut(&d.theirs));
                if let Some(case) = case.as_ref().filter(|c| c.len() < 4000) {
                    let _ = writeln!(out, "  golden {case}");
                }
            }
        }
        out
    }
}
