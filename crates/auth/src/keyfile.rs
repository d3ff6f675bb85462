//! What members of a set share: one key, or several while it is changed.
//!
//! A keyfile holds a key as 6 to 1024 characters of base64, white space between them aside; or a YAML list of such keys. A member
//! accepts each of them and speaks with the first, so a key is changed without a stop: add the new one at the end everywhere,
//! then put it first everywhere, then take the old one away.

use crate::Password;
use pando_base::limits::KEYFILE_KEY_CHARS;
use pando_base::{Error, ErrorCode, Result};

/// The keys of a keyfile, never empty.
#[derive(Clone, Debug)]
pub struct Keyfile {
    keys: Vec<Password>,
}

impl Keyfile {
    /// Reads a file's text. `name` is the file's, for the error.
    pub fn parse(name: &str, text: &str) -> Result<Keyfile> {
        let keys = match listed(text) {
            Some(items) => items.into_iter().map(|item| key(name, item)).collect::<Result<Vec<_>>>()?,
            None => vec![key(name, text)?],
        };
        if keys.is_empty() {
            return Err(Error::bad_value(format!("no keys in security key file: {name}")));
        }
        Ok(Keyfile { keys })
    }

    /// What this member proves itself with.
    pub fn first(&self) -> &Password {
        &self.keys[0]
    }
    /// All that it accepts of others.
    pub fn keys(&self) -> &[Password] {
        &self.keys
    }
}

/// The items of a YAML list of plain or quoted texts, or `None` when the text is no list. A key that is written over several lines stays
/// one key: what does not begin with a dash goes on with the item before it.
fn listed(text: &str) -> Option<Vec<String>> {
    let lines =
        || text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#') && *l != "---");
    if !lines().next()?.starts_with("- ") {
        return None;
    }
    let mut items: Vec<String> = Vec::new();
    for line in lines() {
        match (line.strip_prefix("- "), items.last_mut()) {
            (Some(item), _) => items.push(unquoted(item.trim()).to_owned()),
            (None, Some(last)) => last.push_str(line),
            (None, None) => return None,
        }
    }
    Some(items)
}

fn unquoted(item: &str) -> &str {
    let within = |q: char| item.strip_prefix(q).and_then(|i| i.strip_suffix(q));
    within('"').or_else(|| within('\'')).unwrap_or(item)
}

fn key(name: &str, text: impl AsRef<str>) -> Result<Password> {
    let mut key = String::with_capacity(text.as_ref().len());
    for c in text.as_ref().chars().filter(|c| !c.is_whitespace()) {
        if !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')) {
            let what = format!("invalid char in key file {name}: {c}");
            return Err(Error::new(ErrorCode::UnsupportedFormat, what));
        }
        key.push(c);
    }
    if !KEYFILE_KEY_CHARS.contains(&key.len()) {
        let (least, most) = KEYFILE_KEY_CHARS.into_inner();
        let what = format!(
            "security key in {name} has length {}, must be between {least} and {most} chars",
            key.len()
        );
        return Err(Error::bad_value(what));
    }
    Ok(Password::new(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        Keyfile::parse("k", text).unwrap().keys().iter().map(|k| k.text().to_owned()).collect()
    }

    #[test]
    fn one_key_may_have_white_space_in_it() {
        assert_eq!(keys("abc\n def \r\n+/=\n"), ["abcdef+/="]);
    }

    #[test]
    fn several_keys_are_a_list() {
        assert_eq!(keys("- abcdef\n- 'ghijkl'\n# old\n- \"mnopqr\"\n"), ["abcdef", "ghijkl", "mnopqr"]);
        assert_eq!(keys("---\n- abc\n  def\n"), ["abcdef"]);
    }

    #[test]
    fn rubbish_is_refused() {
        for text in ["", "abcde", "abc!def", "- abcdef\n- x", "é".repeat(10).as_str(), &"a".repeat(1025)] {
            assert!(Keyfile::parse("k", text).is_err(), "{text}");
        }
        assert!(Keyfile::parse("k", &"a".repeat(1024)).is_ok());
    }
}
