//! What a case settles of the order of rows, and of the order within arrays: rows with equal sort keys may change places, those
//! with different ones may not; what a join has found, or a set has gathered, comes in no order unless something sorts it.

use pando_bson::keystring::KeyBuilder;
use pando_bson::{Bson, Document, RawDoc, Value, extjson};

/// A path that rows are sorted by, and whether it goes down.
type Part = (String, bool);

/// What a command sorts its rows by, where that can be read off the rows: no score, no collation, and nothing that later stages make.
pub(super) fn sorted_by(cmd: &Document) -> Option<Vec<Part>> {
    if cmd.get("collation").is_some() {
        return None;
    }
    if cmd.get("find").is_some() {
        let parts = parts_of(cmd.get("sort")?.as_doc()?)?;
        let projection = cmd.get("projection").and_then(Bson::as_doc);
        return parts.iter().all(|(path, _)| projection.is_none_or(|p| shows(p, path))).then_some(parts);
    }
    cmd.get("aggregate")?;
    let stages: Vec<&Document> = cmd.get("pipeline")?.as_array()?.iter().filter_map(Bson::as_doc).collect();
    let at = stages.iter().rposition(|s| s.get("$sort").is_some())?;
    let parts = parts_of(stages[at].get("$sort")?.as_doc()?)?;
    let keeps = |stage: &&Document| parts.iter().all(|(path, _)| keeps(stage, path));
    stages[at + 1..].iter().all(keeps).then_some(parts)
}

fn parts_of(sort: &Document) -> Option<Vec<Part>> {
    let part = |(path, v): (&str, &Bson)| {
        let direction = v.as_f64().filter(|_| path != "$natural")?;
        Some((path.to_owned(), direction < 0.0))
    };
    sort.iter().map(part).collect()
}

fn root(path: &str) -> &str {
    path.split_once('.').map_or(path, |(root, _)| root)
}

/// Whether rows still have what stands under a path after this projection.
fn shows(projection: &Document, path: &str) -> bool {
    let is_plain = |v: &Bson| matches!(v, Bson::Boolean(_)) || v.as_f64().is_some();
    let is_true = |v: &Bson| matches!(v, Bson::Boolean(true)) || v.as_f64().is_some_and(|n| n != 0.0);
    if !projection.iter().all(|(_, v)| is_plain(v)) {
        return false;
    }
    let includes = projection.iter().any(|(name, v)| name != "_id" && is_true(v));
    let named = projection.iter().find(|(name, _)| root(name) == root(path));
    match named {
        None if path == "_id" => true,
        None => !includes,
        Some((name, v)) => name == root(path) && is_true(v),
    }
}

/// Whether a stage leaves rows in their order and what stands under a path as it is.
fn keeps(stage: &Document, path: &str) -> bool {
    let Some((name, spec)) = stage.iter().next() else { return false };
    match (name, spec) {
        ("$limit" | "$skip" | "$match", _) => true,
        ("$project", Bson::Document(spec)) => shows(spec, path),
        ("$set" | "$addFields", Bson::Document(spec)) => {
            spec.iter().all(|(name, _)| root(name) != root(path))
        }
        ("$unset", Bson::String(name)) => root(name) != root(path),
        _ => false,
    }
}

/// A row's text, read back.
fn row(line: &str) -> Option<Document> {
    extjson::parse(line).ok()?.get("v")?.as_doc().cloned()
}

/// Everything under a path, arrays taken apart.
fn leaves<'d>(v: Value<'d>, rest: &[&str], out: &mut Vec<Vec<u8>>) {
    let mut put = |v: Value<'_>| {
        let mut key = KeyBuilder::default();
        key.append(v);
        out.push(key.finish());
    };
    match (v, rest) {
        (Value::Array(list), []) if list.is_empty() => put(Value::Undefined),
        (Value::Array(list), []) => list.iter().for_each(|e| put(e.value())),
        (v, []) => put(v),
        (Value::Document(d), [name, rest @ ..]) => leaves(d.get(*name).unwrap_or(Value::Null), rest, out),
        (Value::Array(list), _) => list.iter().for_each(|e| leaves(e.value(), rest, out)),
        (_, _) => put(Value::Null),
    }
}

fn key_of(doc: &RawDoc, parts: &[Part]) -> Vec<Vec<u8>> {
    let one = |(path, down): &Part| {
        let names: Vec<&str> = path.split('.').collect();
        let mut all = Vec::new();
        leaves(Value::Document(doc), &names, &mut all);
        if *down { all.into_iter().max() } else { all.into_iter().min() }.unwrap_or_default()
    };
    parts.iter().map(one).collect()
}

/// The keys of rows; `None` where one of them is no document.
fn keys(rows: &[String], parts: &[Part]) -> Option<Vec<Vec<Vec<u8>>>> {
    rows.iter().map(|line| Some(key_of(&row(line)?.to_raw(), parts))).collect()
}

/// Whether `got` is `want` but for the places of rows with equal keys. `cut`: of the first and the last key there may be other rows,
/// since the command takes some of them.
pub(super) fn same_but_for_equals(want: &[String], got: &[String], parts: &[Part], cut: bool) -> bool {
    let (Some(w), Some(g)) = (keys(want, parts), keys(got, parts)) else { return false };
    if w != g {
        return false;
    }
    let sorted = |rows: &[String]| {
        let mut rows = rows.to_vec();
        rows.sort();
        rows
    };
    let mut from = 0;
    while from < w.len() {
        let to = from + w[from..].iter().take_while(|key| **key == w[from]).count();
        let at_an_end = from == 0 || to == w.len();
        if !(cut && at_an_end) && sorted(&want[from..to]) != sorted(&got[from..to]) {
            return false;
        }
        from = to;
    }
    true
}

/// `values` of a reply.
pub(super) fn values(line: &str) -> Option<Vec<Bson>> {
    row(line)?.get("values")?.as_array().map(<[Bson]>::to_vec)
}

/// Values of which equal ones of different types are the same.
pub(super) fn by_value(values: &[Bson]) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = values
        .iter()
        .map(|v| {
            let mut d = Document::new();
            d.push("v", v.clone());
            let raw = d.to_raw();
            let mut key = KeyBuilder::default();
            raw.get("v").into_iter().for_each(|v| _ = key.append(v));
            key.finish()
        })
        .collect();
    keys.sort();
    keys
}

/// Fields of rows whose arrays come in no order: of joins and sets, and what is gathered of rows that nothing has sorted.
pub(super) fn without_order(cmd: &Document) -> Vec<String> {
    let mut out = Vec::new();
    let stages = cmd.get("pipeline").and_then(Bson::as_array).unwrap_or_default();
    gather(stages, &mut out);
    out
}

/// A plan over a part of a collection has to look at the shard key, so that documents are read where an index alone answers on one
/// set: what such an index shows as null may not be there, and fields come in the document's order.
pub(super) fn is_covered(cmd: &Document) -> bool {
    let projection = cmd.get("projection").and_then(Bson::as_doc);
    let without_id = projection.and_then(|p| p.get("_id")).and_then(Bson::as_f64) == Some(0.0);
    cmd.get("find").is_some() && cmd.get("hint").is_some() && without_id
}

/// A row without nulls, its fields in the order of their names.
pub(super) fn as_documents(line: &str) -> String {
    let Some(d) = row(line) else { return line.to_owned() };
    let kept = d.iter().filter(|(_, v)| !matches!(v, Bson::Null)).map(|(k, v)| (k.to_owned(), v.clone()));
    let mut kept: Vec<(String, Bson)> = kept.collect();
    kept.sort_by(|a, b| a.0.cmp(&b.0));
    super::normal::line(&Bson::Document(Document::from(kept)))
}

/// Whether a pipeline takes some of its rows though it sorts none.
fn takes_some(stages: &[Bson]) -> bool {
    let text = format!("{stages:?}");
    !text.contains("$sort") && ["$skip", "$limit"].iter().any(|stage| text.contains(stage))
}

fn gather(stages: &[Bson], out: &mut Vec<String>) {
    let mut sorted = false;
    for (name, spec) in stages.iter().filter_map(Bson::as_doc).filter_map(|s| s.iter().next()) {
        let Some(spec) = spec.as_doc() else { continue };
        let inner = spec.get("pipeline").and_then(Bson::as_array).unwrap_or_default();
        match name {
            "$lookup" | "$graphLookup" if !format!("{inner:?}").contains("$sort") => {
                let by_number = if takes_some(inner) { "#" } else { "" };
                out.extend(spec.get("as").and_then(Bson::as_str).map(|name| format!("{by_number}{name}")));
            }
            "$group" | "$bucket" | "$bucketAuto" => {
                let fields = spec.get("output").and_then(Bson::as_doc).unwrap_or(spec);
                for (field, how) in fields.iter() {
                    let by = |name: &str| how.as_doc().is_some_and(|d| d.get(name).is_some());
                    if by("$addToSet") || by("$push") && !sorted {
                        out.push(field.to_owned());
                    }
                }
                sorted = false;
            }
            "$sort" | "$geoNear" => sorted = true,
            "$facet" => spec.iter().for_each(|(field, stages)| {
                let stages = stages.as_array().unwrap_or_default();
                if !format!("{stages:?}").contains("$sort") {
                    out.push(field.to_owned());
                }
                gather(stages, out);
            }),
            _ => {}
        }
        gather(inner, out);
    }
}

/// The row with those arrays sorted by the texts of their values, wherever such a field stands.
pub(super) fn loosened(line: &str, fields: &[String]) -> String {
    match row(line) {
        Some(d) => super::normal::line(&loose(&Bson::Document(d), fields, false)),
        None => line.to_owned(),
    }
}

fn loose(v: &Bson, fields: &[String], is_one: bool) -> Bson {
    match v {
        Bson::Document(d) => {
            let counted = |name: &str| fields.iter().any(|f| f.strip_prefix('#') == Some(name));
            let field = |(name, v): (&str, &Bson)| {
                if let Bson::Array(list) = v
                    && counted(name)
                {
                    return (name.to_owned(), Bson::Int64(list.len() as i64));
                }
                let is_one = fields.iter().any(|f| f.rsplit('.').next() == Some(name));
                (name.to_owned(), loose(v, fields, is_one))
            };
            Bson::Document(Document::from(d.iter().map(field).collect::<Vec<_>>()))
        }
        Bson::Array(list) => {
            let mut list: Vec<Bson> = list.iter().map(|v| loose(v, fields, false)).collect();
            if is_one {
                list.sort_by_key(super::normal::line);
            }
            Bson::Array(list)
        }
        v => v.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    fn rows(docs: &[Document]) -> Vec<String> {
        docs.iter().map(|d| super::super::normal::line(&Bson::Document(d.clone()))).collect()
    }

    #[test]
    fn equal_rows_may_change_places_and_others_may_not() {
        let by = sorted_by(&doc! { "find": "c", "sort": { "a": 1 } }).unwrap();
        let all = [doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 1.0 }, doc! { "_id": 3, "a": [9, 2] }];
        let [x, y, z] = all;
        let want = rows(&[x.clone(), y.clone(), z.clone()]);
        assert!(same_but_for_equals(&want, &rows(&[y.clone(), x.clone(), z.clone()]), &by, false));
        assert!(!same_but_for_equals(&want, &rows(&[x.clone(), z.clone(), y.clone()]), &by, false));
        let other = doc! { "_id": 7, "a": 1 };
        let cut = rows(&[other, x, z]);
        assert!(same_but_for_equals(&want, &cut, &by, true) && !same_but_for_equals(&want, &cut, &by, false));
    }

    #[test]
    fn a_sort_counts_as_far_as_its_fields_can_be_seen() {
        let find = |projection: Document| {
            sorted_by(&doc! { "find": "c", "sort": { "a.b": 1 }, "projection": projection }).is_some()
        };
        assert!(find(doc! { "a": 1 }) && find(doc! { "x": 0 }));
        assert!(!find(doc! { "a": 0 }) && !find(doc! { "x": 1 }) && !find(doc! { "a.b": 1, "y": "$z" }));
        let aggregate = |last: Document| {
            let pipeline = vec![Bson::from(doc! { "$sort": { "a": -1 } }), last.into()];
            let mut command = doc! { "aggregate": "c" };
            command.push("pipeline", pipeline);
            sorted_by(&command).is_some()
        };
        assert!(aggregate(doc! { "$limit": 3 }) && aggregate(doc! { "$set": { "b": 1 } }));
        assert!(!aggregate(doc! { "$set": { "a": 1 } }) && !aggregate(doc! { "$unwind": "$a" }));
    }

    #[test]
    fn what_is_joined_comes_in_any_order_unless_it_is_sorted() {
        let lookup = |inner: Vec<Bson>| {
            let mut spec = doc! { "from": "o", "as": "j" };
            spec.push("pipeline", inner);
            let mut command = doc! { "aggregate": "c" };
            command.push("pipeline", vec![Bson::from(doc! { "$lookup": spec })]);
            without_order(&command)
        };
        assert_eq!(lookup(Vec::new()), ["j"]);
        assert!(lookup(vec![doc! { "$sort": { "x": 1 } }.into()]).is_empty());
        let [a, b] = [[1, 2], [2, 1]].map(|j| rows(&[doc! { "j": j.map(Bson::from).to_vec() }]).remove(0));
        let fields = ["j".to_owned()];
        assert_eq!(loosened(&a, &fields), loosened(&b, &fields));
        assert_ne!(loosened(&a, &[]), loosened(&b, &[]));
    }
}
