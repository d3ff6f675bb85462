//! Asking a server what the real one was asked, and comparing.

use super::Way;
use super::case::{Case, Setups};
use super::normal::{VOLATILE, line, normal, normal_doc};
use super::way::Asked;
use crate::client::Client;
use pando_bson::{Bson, Document, doc};
use std::collections::{BTreeMap, BTreeSet};

const DB: &str = "df";
const WRITES: &str = "w";
/// Where data sets are copied to that lie on several shards.
const COPIES: &str = "df_copies";

/// In what an answer differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Rows, reply, or error instead of rows.
    Result,
    /// Another error code.
    Code,
    /// The same code with another text.
    Message,
    /// Fields beside the error.
    Extra,
    /// The collection afterwards.
    After,
    /// A following command's answer.
    Then,
    /// A preparing command's error.
    Pre,
    /// The entries in the oplog.
    Oplog,
    /// No answer.
    Crash,
    /// A router has no such command.
    Absent,
}

impl Kind {
    /// As in `explained.json`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Result => "result",
            Kind::Code => "code",
            Kind::Message => "message",
            Kind::Extra => "extra",
            Kind::After => "after",
            Kind::Then => "then",
            Kind::Pre => "pre",
            Kind::Oplog => "oplog",
            Kind::Crash => "crash",
            Kind::Absent => "absent",
        }
    }
}

/// A case whose answer is not the recorded one.
#[derive(Debug)]
pub struct Difference {
    pub id: String,
    pub kind: Kind,
    pub want: String,
    pub got: String,
}

/// An answer in comparable form; texts are [`line`]s.
#[derive(Default, Clone, Debug)]
struct Answer {
    error: Option<(String, String, String)>,
    rows: Option<Vec<String>>,
    open: Option<bool>,
    reply: Option<String>,
    /// `reply` with every errmsg blanked.
    soft: Option<String>,
}

/// A server under test and what it holds already.
pub struct Replay<'a> {
    host_port: String,
    client: Client,
    setups: &'a Setups,
    way: Way,
    loaded: BTreeSet<String>,
    /// The case before left a plain collection, which is emptied more cheaply than made anew.
    plain: bool,
}

fn connect(host_port: &str) -> Client {
    Client::connect(host_port).expect("the server under test accepts connections")
}

fn is_ok(r: &Document) -> bool {
    r.get("ok").and_then(Bson::as_f64) == Some(1.0)
}

/// `as_array` of a possibly missing field.
fn list<'d>(d: &'d Document, name: &str) -> &'d [Bson] {
    d.get(name).and_then(Bson::as_array).unwrap_or_default()
}

fn lines(v: &[Bson]) -> Vec<String> {
    v.iter().map(|x| line(&normal(x))).collect()
}

fn soften(v: &Bson) -> Bson {
    match v {
        Bson::Document(d) => {
            let f =
                |(k, v): (&str, &Bson)| (k.to_owned(), if k == "errmsg" { Bson::Null } else { soften(v) });
            Bson::Document(Document::from(d.iter().map(f).collect::<Vec<_>>()))
        }
        Bson::Array(a) => Bson::Array(a.iter().map(soften).collect()),
        other => other.clone(),
    }
}

impl<'a> Replay<'a> {
    pub fn new(host_port: &str, setups: &'a Setups, way: Way) -> Replay<'a> {
        Replay {
            host_port: host_port.to_owned(),
            client: connect(host_port),
            setups,
            way,
            loaded: BTreeSet::new(),
            plain: false,
        }
    }

    /// Drops what earlier topics left.
    pub fn fresh(&mut self) {
        for db in [DB, "df2", "df_other", "DF"] {
            self.ask(db, &doc! { "dropDatabase": 1 });
        }
        self.loaded.clear();
        self.plain = false;
    }

    /// Replays a case; `None` when the answer is the recorded one.
    pub fn check(&mut self, case: &Case) -> Option<Difference> {
        let docs = match &case.setup {
            Some(s) if self.setups.has(s) => self.setups.docs(s).to_vec(),
            Some(_) => Vec::new(),
            None => case.docs.clone(),
        };
        match self.answer(case) {
            Err(e) => {
                self.client = connect(&self.host_port);
                let want = line(&Bson::Document(case.expect.clone()));
                Some(Difference { id: case.id.clone(), kind: Kind::Crash, want, got: e.to_string() })
            }
            Ok(got) => compare(case, &docs, &got, self.way),
        }
    }

    /// Whether rows of several shards are those of one set that holds the same documents in the order in which the shards give them:
    /// then nothing differs but an order that is nobody's.
    pub fn is_as_on_one_set(&mut self, case: &Case) -> bool {
        let (Way::Sharded, Some(setup)) = (self.way, &case.setup) else { return false };
        let got = self.answer(case).ok().and_then(|got| got.main.rows);
        let Some(rows) = got else { return false };
        let docs = if self.setups.has(setup) { self.setups.docs(setup) } else { &[] };
        self.ask(COPIES, &doc! { "dropDatabase": 1 });
        let mut copied = BTreeSet::new();
        for name in case.also.iter().chain([setup]) {
            self.copy(name, &mut copied);
        }
        let one = self.reply(COPIES, &case.cmd, case.raw, case.unordered);
        self.ask(COPIES, &doc! { "dropDatabase": 1 });
        let all = lines(docs);
        let asked =
            Asked { cmd: &case.cmd, raw: case.raw, unordered: case.unordered, all: &all, behind: None };
        one.is_ok_and(|one| self.way.same_rows(asked, one.rows.as_deref(), Some(&rows)))
    }
    /// A data set as it is, unsharded, in another database.
    fn copy(&mut self, name: &str, copied: &mut BTreeSet<String>) {
        if !self.setups.has(name) || !copied.insert(name.to_owned()) {
            return;
        }
        if let Some((options, on)) = self.setups.view(name) {
            let mut cmd = doc! { "create": name };
            options.iter().for_each(|(k, v)| cmd.push(k, v.clone()));
            self.ask(COPIES, &cmd);
            return self.copy(on, copied);
        }
        for ix in self.setups.indexes(name) {
            self.ask(COPIES, &doc! { "createIndexes": name, "indexes": [ix.clone()] });
        }
        let found = self.ask(DB, &doc! { "find": name, "batchSize": 100_000 });
        let docs = found.get("cursor").and_then(Bson::as_doc).map(|c| list(c, "firstBatch").to_vec());
        self.ask(COPIES, &doc! { "insert": name, "documents": docs.unwrap_or_default() });
    }

    fn ask(&mut self, db: &str, cmd: &Document) -> Document {
        self.client.command(db, cmd).expect("the server under test answers")
    }

    fn load(&mut self, name: &str) {
        if !self.setups.has(name) || !self.loaded.insert(name.to_owned()) {
            return;
        }
        self.ask(DB, &doc! { "drop": name });
        if let Some((options, on)) = self.setups.view(name) {
            let mut cmd = doc! { "create": name };
            options.iter().for_each(|(k, v)| cmd.push(k, v.clone()));
            assert!(is_ok(&self.ask(DB, &cmd)), "view {name}");
            return self.load(on);
        }
        for ix in self.setups.indexes(name) {
            let cmd = doc! { "createIndexes": name, "indexes": [ix.clone()] };
            assert!(is_ok(&self.ask(DB, &cmd)), "index of data set {name}");
        }
        self.spread(name);
        let cmd = doc! { "insert": name, "documents": self.setups.docs(name).to_vec() };
        let r = self.ask(DB, &cmd);
        assert!(is_ok(&r) && r.get("writeErrors").is_none(), "loading data set {name}: {r:?}");
    }

    /// A collection that is about to be filled is put on all shards, where its definition allows that.
    fn spread(&mut self, name: &str) {
        if self.way == Way::Sharded {
            let ns = format!("{DB}.{name}");
            self.ask("admin", &doc! { "shardCollection": ns, "key": doc! { "_id": "hashed" } });
        }
    }

    fn answer(&mut self, case: &Case) -> std::io::Result<Got> {
        if let Some(s) = &case.setup {
            self.load(s);
            case.also.iter().for_each(|name| self.load(name));
            let main = self.reply_to(case)?;
            return Ok(Got { main, ..Got::default() });
        }
        let emptied = self.clear(case)?;
        for p in &case.before {
            let mut p = p.clone();
            let db = p.remove("$db");
            self.client.command(db.as_ref().and_then(Bson::as_str).unwrap_or(DB), &p)?;
        }
        if !emptied && (!case.docs.is_empty() || case.is_plain_write()) {
            self.spread(WRITES);
        }
        if !case.docs.is_empty() {
            let cmd = doc! { "insert": WRITES, "documents": case.docs.clone() };
            self.client.command(DB, &cmd)?;
        }
        let mut got = Got::default();
        for p in &case.pre {
            let r = self.client.command(DB, p)?;
            if !is_ok(&r) {
                got.pre.push(r.get("code").map(line).unwrap_or_default());
            }
        }
        let since = if case.oplog && self.way == Way::Set { self.last_entry()? } else { None };
        got.main = self.reply_to(case)?;
        if let Some(since) = since {
            got.oplog = Some(self.entries_after(since)?);
        }
        if case.after {
            let find = doc! { "find": WRITES, "filter": {} };
            got.after = self.reply(DB, &find, false, false)?.rows;
        }
        for t in &case.then {
            let a = self.reply(DB, t, false, false)?;
            got.then.push(a);
        }
        Ok(got)
    }

    /// Leaves no documents in `w`. Whether it is still there.
    fn clear(&mut self, case: &Case) -> std::io::Result<bool> {
        let was_plain = std::mem::replace(&mut self.plain, case.is_plain_write());
        if was_plain && self.plain {
            let all = doc! { "q": doc! {}, "limit": 0 };
            if is_ok(&self.client.command(DB, &doc! { "delete": WRITES, "deletes": [all] })?) {
                return Ok(true);
            }
        }
        self.client.command(DB, &doc! { "drop": WRITES })?;
        Ok(false)
    }

    fn last_entry(&mut self) -> std::io::Result<Option<Bson>> {
        let cmd = doc! { "find": "oplog.rs", "sort": doc! { "$natural": -1 }, "limit": 1 };
        let r = self.client.command("local", &cmd)?;
        let first = r.get("cursor").and_then(Bson::as_doc).map(|c| list(c, "firstBatch"));
        Ok(first.and_then(|b| b.first()).and_then(Bson::as_doc).and_then(|e| e.get("ts")).cloned())
    }

    /// `op`, `o` and `o2` of the entries about `w` since then.
    fn entries_after(&mut self, since: Bson) -> std::io::Result<Vec<String>> {
        let filter = doc! { "ts": doc! { "$gt": since }, "ns": format!("{DB}.{WRITES}") };
        let r = self.client.command("local", &doc! { "find": "oplog.rs", "filter": filter })?;
        let entries =
            r.get("cursor").and_then(Bson::as_doc).map(|c| list(c, "firstBatch")).unwrap_or_default();
        Ok(entries.iter().filter_map(Bson::as_doc).map(shown_entry).collect())
    }

    fn reply_to(&mut self, case: &Case) -> std::io::Result<Answer> {
        if !case.brief && !case.shape {
            return self.reply(&case.db, &case.cmd, case.raw, case.unordered);
        }
        let r = self.client.command(&case.db, &case.cmd)?;
        Ok(match is_ok(&r) {
            true if case.shape => plain(&shape_of(&self.way.settled(r)), false),
            true => plain(&Document::new(), false),
            false => error(&self.way.settled(r)),
        })
    }
    /// One command's answer with its cursor read to the end (or, when `raw`, only its first batch).
    fn reply(&mut self, db: &str, cmd: &Document, raw: bool, unordered: bool) -> std::io::Result<Answer> {
        let mut r = self.client.command(db, cmd)?;
        let mut rows: Vec<Bson> = Vec::new();
        let mut batch = "firstBatch";
        loop {
            if !is_ok(&r) {
                return Ok(error(&self.way.settled(r)));
            }
            let Some(cursor) = r.get("cursor").and_then(Bson::as_doc).filter(|c| c.get(batch).is_some())
            else {
                return Ok(plain(&self.way.settled(r), cmd.get("distinct").is_some()));
            };
            rows.extend_from_slice(list(cursor, batch));
            let id = cursor.get("id").cloned().unwrap_or(Bson::Int64(0));
            let open = id.as_i64() != Some(0);
            if raw || !open {
                rows.retain(|row| !self.way.is_of_its_own(row));
                let mut out = lines(&rows);
                if unordered {
                    out.sort();
                }
                return Ok(Answer { rows: Some(out), open: raw.then_some(open), ..Answer::default() });
            }
            let ns = cursor.get("ns").and_then(Bson::as_str).unwrap_or_default().to_owned();
            let (db, coll) = ns.split_once('.').unwrap_or_default();
            r = self.client.command(db, &doc! { "getMore": id, "collection": coll })?;
            batch = "nextBatch";
        }
    }
}

#[derive(Default)]
struct Got {
    main: Answer,
    after: Option<Vec<String>>,
    then: Vec<Answer>,
    pre: Vec<String>,
    oplog: Option<Vec<String>>,
}

fn shown_entry(e: &Document) -> String {
    let kept = ["op", "o", "o2"].iter().filter_map(|k| Some(((*k).to_owned(), normal(e.get(k)?))));
    line(&Bson::Document(Document::from(kept.collect::<Vec<_>>())))
}

fn error(r: &Document) -> Answer {
    let code = r.get("code").map(line).unwrap_or_default();
    let text = r.get("errmsg").map(|m| line(&normal(m))).unwrap_or_default();
    let skip = |k: &str| VOLATILE.contains(&k) || ["code", "errmsg", "errorLabels"].contains(&k);
    let extra: Vec<_> = r.iter().filter(|(k, _)| !skip(k)).map(|(k, v)| (k.to_owned(), normal(v))).collect();
    let extra = if extra.is_empty() { String::new() } else { line(&Bson::Document(Document::from(extra))) };
    Answer { error: Some((code, text, extra)), ..Answer::default() }
}

/// The names of a reply in their order by text, and the types of their values; of a list its first.
fn shape_of(r: &Document) -> Document {
    let kept = r.iter().filter(|(k, _)| !VOLATILE.contains(k));
    let mut fields: Vec<_> = kept.map(|(k, v)| (k.to_owned(), shape(v))).collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    Document::from(fields)
}

fn shape(v: &Bson) -> Bson {
    match v {
        Bson::Document(d) => {
            let mut fields: Vec<_> = d.iter().map(|(k, v)| (k.to_owned(), shape(v))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Bson::Document(Document::from(fields))
        }
        Bson::Array(list) => Bson::Array(list.first().map(shape).into_iter().collect()),
        v => Bson::from(match v {
            Bson::Int32(_) => "int",
            Bson::Int64(_) => "$numberLong",
            Bson::Double(_) => "float",
            Bson::String(_) => "str",
            Bson::Boolean(_) => "bool",
            Bson::Null => "NoneType",
            Bson::DateTime(_) => "$date",
            Bson::Timestamp(_) => "$timestamp",
            Bson::ObjectId(_) => "$oid",
            Bson::Binary(_) => "$binary",
            Bson::Decimal128(_) => "$numberDecimal",
            _ => "other",
        }),
    }
}

fn plain(r: &Document, distinct: bool) -> Answer {
    let kept = r.iter().filter(|(k, _)| !VOLATILE.contains(k)).map(|(k, v)| (k.to_owned(), v.clone()));
    let mut d = normal_doc(&Document::from(kept.collect::<Vec<_>>()));
    if distinct && let Some(Bson::Array(values)) = d.get_mut("values") {
        values.sort_by_key(line);
    }
    let d = Bson::Document(d);
    Answer { reply: Some(line(&d)), soft: Some(line(&soften(&d))), ..Answer::default() }
}

/// The recorded answer in the same form.
fn wanted(e: &Document, docs: &[Bson], distinct: bool, unordered: bool, way: Way) -> Answer {
    if let Some([code, text]) = e.get("err").and_then(Bson::as_array) {
        let code = if matches!(code, Bson::Null) { String::new() } else { line(code) };
        let text = if matches!(text, Bson::Null) { String::new() } else { line(text) };
        return Answer {
            error: Some((code, text, e.get("extra").map(line).unwrap_or_default())),
            ..Answer::default()
        };
    }
    if let Some(Bson::Document(d)) = e.get("reply") {
        return plain(&way.settled(d.clone()), distinct);
    }
    let mut rows = if e.get("ids").is_some() {
        let id_of = |d: &Bson| d.as_doc().and_then(|d| d.get("_id")).map(line).unwrap_or_default();
        let by_id: BTreeMap<String, &Bson> = docs.iter().map(|d| (id_of(d), d)).collect();
        list(e, "ids").iter().map(|i| line(&normal(by_id[&line(i)]))).collect()
    } else if e.get("only_ids").is_some() {
        let only = |i: &Bson| line(&Bson::Document(Document::from(vec![("_id".to_owned(), i.clone())])));
        list(e, "only_ids").iter().map(only).collect()
    } else {
        lines(list(e, "docs"))
    };
    if unordered {
        rows.sort();
    }
    let open = match e.get("open") {
        Some(Bson::Boolean(b)) => Some(*b),
        _ => None,
    };
    Answer { rows: Some(rows), open, ..Answer::default() }
}

/// How two answers differ.
fn between(want: &Answer, got: &Answer, asked: Asked<'_>, way: Way) -> Option<Kind> {
    match (&want.error, &got.error) {
        (Some(w), Some(g)) => {
            if w.0 != g.0 {
                Some(Kind::Code)
            } else if w.2 != g.2 {
                Some(Kind::Extra)
            } else {
                (w.1 != g.1).then_some(Kind::Message)
            }
        }
        (None, None)
            if !way.same_rows(asked, want.rows.as_deref(), got.rows.as_deref())
                || !way.same_end(want.open, got.open) =>
        {
            Some(Kind::Result)
        }
        (None, None) if way.same_reply(asked, want.reply.as_deref(), got.reply.as_deref()) => None,
        (None, None) => Some(if want.soft == got.soft { Kind::Message } else { Kind::Result }),
        _ => Some(Kind::Result),
    }
}

fn compare(case: &Case, docs: &[Bson], got: &Got, way: Way) -> Option<Difference> {
    let say = |kind, want: String, got: String| Some(Difference { id: case.id.clone(), kind, want, got });
    let want = wanted(&case.expect, docs, case.cmd.get("distinct").is_some(), case.unordered, way);
    let mut soft = None;
    let all = if way == Way::Sharded { lines(docs) } else { Vec::new() };
    let asked = Asked { cmd: &case.cmd, raw: case.raw, unordered: case.unordered, all: &all, behind: None };
    match between(&want, &got.main, asked, way) {
        None => {}
        Some(Kind::Message) => soft = say(Kind::Message, format!("{want:?}"), format!("{:?}", got.main)),
        Some(_) if got.main.error.as_ref().is_some_and(|(code, text, _)| way.has_no(case, code, text)) => {
            return say(Kind::Absent, format!("{want:?}"), format!("{:?}", got.main));
        }
        Some(k) => return say(k, format!("{want:?}"), format!("{:?}", got.main)),
    }
    let after = match case.expect.get("after") {
        Some(Bson::String(s)) if s == "same" => Some(lines(docs)),
        Some(Bson::Array(a)) => Some(lines(a)),
        _ => None,
    };
    if let Some(w) = after
        && !way.same_contents(asked, &w, got.after.as_deref())
    {
        return say(Kind::After, format!("{w:?}"), format!("{:?}", got.after));
    }
    let told = list(&case.expect, "then").iter().filter_map(Bson::as_doc);
    for ((w, g), cmd) in told.zip(&got.then).zip(&case.then) {
        let w = wanted(w, docs, false, false, way);
        match between(&w, g, Asked { cmd, behind: Some(&case.cmd), unordered: false, ..asked }, way) {
            None => {}
            Some(Kind::Message) => soft = soft.or(say(Kind::Message, format!("{w:?}"), format!("{g:?}"))),
            Some(_) => return say(Kind::Then, format!("{w:?}"), format!("{g:?}")),
        }
    }
    let pre: Vec<String> = list(&case.expect, "pre_errors")
        .iter()
        .map(|e| e.as_array().and_then(|a| a.first()).map(line).unwrap_or_default())
        .collect();
    if pre != got.pre {
        return say(Kind::Pre, format!("{pre:?}"), format!("{:?}", got.pre));
    }
    let wanted_entries: Vec<String> =
        list(&case.expect, "oplog").iter().filter_map(Bson::as_doc).map(shown_entry).collect();
    if let Some(entries) = &got.oplog
        && *entries != wanted_entries
    {
        return say(Kind::Oplog, format!("{wanted_entries:?}"), format!("{entries:?}"));
    }
    soft
}
