//! The dotted paths of an update, and where an applied path runs.

use pando_base::limits::BSON_DEPTH_MAX;
use pando_base::{Error, ErrorCode, Result};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// One component of an update path as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Field(Arc<str>),
    /// `$`: the array position that the query matched.
    Positional,
    /// `$[id]`; `$[]` has the empty id.
    Filtered(Arc<str>),
}

/// Splits and checks a path: empty parts give code 56, too many parts code 15.
pub(super) fn parse(path: &str) -> Result<Vec<Part>> {
    if path.is_empty() {
        return Err(Error::new(ErrorCode::EmptyFieldName, "An empty update path is not valid."));
    }
    let mut parts = Vec::new();
    for name in path.split('.') {
        if name.is_empty() {
            return Err(Error::new(
                ErrorCode::EmptyFieldName,
                format!("The update path '{path}' contains an empty field name, which is not allowed."),
            ));
        }
        if parts.len() == BSON_DEPTH_MAX {
            return Err(Error::new(ErrorCode::Overflow, "FieldPath is too long"));
        }
        parts.push(parse_part(name));
    }
    match &parts[0] {
        Part::Positional => {
            return Err(Error::bad_value(format!(
                "Cannot have positional (i.e. '$') element in the first position in path '{path}'"
            )));
        }
        Part::Filtered(_) => {
            return Err(Error::bad_value(format!(
                "Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path \
                 '{path}'"
            )));
        }
        Part::Field(_) => {}
    }
    if parts.iter().filter(|p| **p == Part::Positional).count() > 1 {
        return Err(Error::bad_value(format!(
            "Too many positional (i.e. '$') elements found in path '{path}'"
        )));
    }
    Ok(parts)
}

fn parse_part(name: &str) -> Part {
    if name == "$" {
        return Part::Positional;
    }
    match name.strip_prefix("$[").and_then(|rest| rest.strip_suffix(']')) {
        Some(id) => Part::Filtered(id.into()),
        None => Part::Field(name.into()),
    }
}

impl Part {
    pub(super) fn is_dynamic(&self) -> bool {
        !matches!(self, Part::Field(_))
    }
}

/// An array position written as a field name: digits only.
pub(super) fn array_index(name: &str) -> Option<usize> {
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    name.parse().ok()
}

/// Order in which one update adds new fields: array positions by number, all else by bytes.
///
/// MongoDB compares a position with another name by bytes, which is no order at all for names like `1a`;
/// here positions stand together, before every name that starts with a digit.
pub(super) fn cmp_names(a: &str, b: &str) -> Ordering {
    let position = |s: &str| if s.len() > 1 && s.starts_with('0') { None } else { array_index(s) };
    let class = |s: &str, position: Option<usize>| match position {
        Some(_) => 1,
        None if s.as_bytes().first().is_some_and(|b| *b < b'0') => 0,
        None => 2,
    };
    let (x, y) = (position(a), position(b));
    class(a, x).cmp(&class(b, y)).then(x.cmp(&y)).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

/// Where the walk is now; a chain of stack frames, printed only in messages.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    pub(super) parent: Option<&'a Path<'a>>,
    pub(super) name: &'a str,
}

impl<'a> Path<'a> {
    pub(super) const ROOT: Path<'static> = Path { parent: None, name: "" };

    pub(super) fn child<'b>(&'b self, name: &'b str) -> Path<'b>
    where
        'a: 'b,
    {
        Path { parent: Some(self), name }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parent {
            None => Ok(()),
            Some(parent) => {
                if parent.parent.is_some() {
                    write!(f, "{parent}.")?;
                }
                f.write_str(self.name)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_fields_order_positions_by_number_and_names_by_bytes() {
        let mut names = vec!["zz", "b", "aa", "10", "2", "01"];
        names.sort_by(|a, b| cmp_names(a, b));
        assert_eq!(names, ["2", "10", "01", "aa", "b", "zz"]);
    }

    #[test]
    fn a_path_prints_dotted() {
        let root = Path::ROOT;
        let a = root.child("a");
        let b = a.child("1");
        assert_eq!(format!("{b}"), "a.1");
        assert_eq!(format!("{a}"), "a");
    }

    #[test]
    fn bad_paths_are_refused_with_their_codes() {
        for (path, code) in
            [("", 56), ("a.", 56), (".a", 56), ("a..b", 56), ("$.a", 2), ("$[].a", 2), ("a.$.$", 2)]
        {
            assert_eq!(parse(path).expect_err(path).code.0, code, "{path}");
        }
        assert_eq!(parse("a.$[").expect("a field")[1], Part::Field("$[".into()));
    }
}
