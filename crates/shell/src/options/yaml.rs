//! YAML as a tree of maps and scalars: the part configuration files need.

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A parsed document.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// The text of a scalar.
    pub(super) fn scalar(&self) -> Option<String> {
        match self {
            Tree::Bool(b) => Some(b.to_string()),
            Tree::Int(n) => Some(n.to_string()),
            Tree::Float(d) => Some(d.to_string()),
            Tree::Text(s) => Some(s.clone()),
            Tree::Null | Tree::List(_) | Tree::Map(_) => None,
        }
    }
}

/// Parses one document.
pub(super) fn parse(text: &str) -> Result<Tree, String> {
    if text.lines().all(|l| l.trim().is_empty() || l.trim_start().starts_with('#')) {
        return Ok(Tree::Null);
    }
    serde_saphyr::from_str(text).map_err(|e| e.to_string())
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Tree, D::Error> {
        d.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map, a list or a scalar")
    }
    fn visit_bool<E>(self, v: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(v))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Tree, E> {
        Ok(Tree::Int(v))
    }
    fn visit_u64<E: de::Error>(self, v: u64) -> Result<Tree, E> {
        i64::try_from(v).map(Tree::Int).map_err(|_| E::custom("the number is too large"))
    }
    fn visit_f64<E>(self, v: f64) -> Result<Tree, E> {
        Ok(Tree::Float(v))
    }
    fn visit_str<E>(self, v: &str) -> Result<Tree, E> {
        Ok(Tree::Text(v.to_owned()))
    }
    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }
    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Tree, D::Error> {
        Tree::deserialize(d)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut fields: Vec<(String, Tree)> = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, Tree>()? {
            if fields.iter().any(|(n, _)| *n == name) {
                return Err(de::Error::custom(format!("duplicate key: {name}")));
            }
            fields.push((name, value));
        }
        Ok(Tree::Map(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_keep_their_types() {
        let t = parse("a: 1\nb: true\nc: x y\nd: 1.5\ne:\nf: \"0700\"\n").unwrap();
        let Tree::Map(fields) = t else { panic!("not a map") };
        let values: Vec<_> = fields.into_iter().map(|f| f.1).collect();
        assert_eq!(
            values,
            [
                Tree::Int(1),
                Tree::Bool(true),
                Tree::Text("x y".into()),
                Tree::Float(1.5),
                Tree::Null,
                Tree::Text("0700".into())
            ]
        );
        assert_eq!(parse("# nothing\n\n").unwrap(), Tree::Null);
    }
}
