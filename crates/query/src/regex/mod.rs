//! Regular expressions with MongoDB's meaning: PCRE syntax, ASCII `\d \w \s \b`, options `i m s x u`.
//!
//! Two tiers behind one type. Most patterns translate to the linear-time `regex` engine. Look-around,
//! back-references, atomic groups and possessive quantifiers go to `fancy-regex`, whose backtracking is
//! bounded; a subject on which it gives up counts as not matching. Plain literals need neither.

mod backtracking;
mod subject;
mod translate;

use backtracking::Backtracking;
use pando_base::{Error, Result, limits, patience};
use std::fmt;
use translate::{Translated, translate};

/// A compiled pattern.
#[derive(Clone)]
pub struct Regex {
    tier: Tier,
}

#[derive(Clone)]
enum Tier {
    /// The subject contains this.
    Contains(String),
    /// The subject starts with this.
    StartsWith(String),
    Linear(regex::Regex),
    /// Byte-wise, for patterns with an ASCII `\b` or `\B`.
    LinearBytes(regex::bytes::Regex),
    Backtracking(Box<Backtracking>),
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.tier {
            Tier::Contains(_) => "Regex(contains)",
            Tier::StartsWith(_) => "Regex(starts with)",
            Tier::Linear(_) | Tier::LinearBytes(_) => "Regex(linear)",
            Tier::Backtracking(_) => "Regex(backtracking)",
        })
    }
}

/// Byte ranges of a match and its groups.
type Groups = Vec<Option<(usize, usize)>>;

/// Bytes searched in one step.
const BYTES_PER_STEP: usize = 256;
/// What compiling the shortest pattern takes.
const COMPILE_STEPS: usize = 200;

#[cold]
fn invalid(why: &str) -> Error {
    Error::location(51091, format!("Regular expression is invalid: {why}"))
}

/// A pattern whose bytes are not UTF-8.
#[cold]
pub(crate) fn not_utf8() -> Error {
    invalid("invalid UTF-8 string")
}

/// Refuses option letters other than `i m s x u`.
pub fn check_options(options: &str) -> Result<()> {
    match options.chars().find(|c| !"imsxu".contains(*c)) {
        None => Ok(()),
        Some(bad) => Err(Error::location(51108, format!(" invalid flag in regex options: {bad}"))),
    }
}

impl Regex {
    /// For testing subjects.
    pub fn new(pattern: &str, options: &str) -> Result<Regex> {
        Regex::compile(pattern, options, false)
    }
    /// For finding positions and groups: an end anchor never takes the newline before the end with it.
    pub fn for_captures(pattern: &str, options: &str) -> Result<Regex> {
        Regex::compile(pattern, options, true)
    }

    fn compile(pattern: &str, options: &str, captures: bool) -> Result<Regex> {
        patience::spend(COMPILE_STEPS + pattern.len())?;
        check_options(options)?;
        let once: String = "imsxu".chars().filter(|c| options.contains(*c)).collect();
        let options = once.as_str();
        if pattern.contains('\0') {
            return Err(Error::bad_value("Regular expression cannot contain an embedded null byte"));
        }
        if pattern.len() > limits::REGEX_PATTERN_BYTES_MAX {
            return Err(invalid("regular expression is too large"));
        }
        if !captures
            && !options.contains(['i', 'x'])
            && let Some(tier) = literal_tier(pattern, options)
        {
            return Ok(Regex { tier });
        }
        let translated = translate(pattern, options, captures).map_err(|e| invalid(&e))?;
        let tier = match translated {
            Translated::Linear(p) => Tier::Linear(
                regex::RegexBuilder::new(&p)
                    .size_limit(limits::REGEX_PROGRAM_BYTES_MAX)
                    .nest_limit(limits::REGEX_NESTING_MAX)
                    .build()
                    .map_err(|e| invalid(&explain(&e)))?,
            ),
            Translated::LinearBytes(p) => Tier::LinearBytes(
                regex::bytes::RegexBuilder::new(&p)
                    .size_limit(limits::REGEX_PROGRAM_BYTES_MAX)
                    .nest_limit(limits::REGEX_NESTING_MAX)
                    .build()
                    .map_err(|e| invalid(&explain(&e)))?,
            ),
            Translated::Backtracking { exact, rough } => {
                let built = Backtracking::new(&exact, rough.as_deref());
                Tier::Backtracking(Box::new(built.map_err(|e| invalid(&refusal(&e)))?))
            }
        };
        Ok(Regex { tier })
    }

    #[inline]
    pub fn is_match(&self, subject: &str) -> bool {
        if patience::is_over(subject.len() / BYTES_PER_STEP) {
            return false;
        }
        match &self.tier {
            Tier::Contains(s) => subject.contains(s.as_str()),
            Tier::StartsWith(s) => subject.starts_with(s.as_str()),
            Tier::Linear(r) => r.is_match(subject),
            Tier::LinearBytes(r) => r.is_match(subject.as_bytes()),
            Tier::Backtracking(r) => {
                patience::until_over(|| r.is_match(subject)).is_ok_and(|m| m.unwrap_or(false))
            }
        }
    }

    /// Number of capture groups, the whole match not counted.
    pub fn group_count(&self) -> usize {
        match &self.tier {
            Tier::Contains(_) | Tier::StartsWith(_) => 0,
            Tier::Linear(r) => r.captures_len() - 1,
            Tier::LinearBytes(r) => r.captures_len() - 1,
            Tier::Backtracking(r) => r.group_count(),
        }
    }

    /// The first match at or after byte `from` (a character boundary): byte ranges of the match and its groups.
    pub fn captures_at(&self, subject: &str, from: usize) -> Result<Option<Groups>> {
        let bytes = subject.len().saturating_sub(from);
        patience::spend(1 + bytes / BYTES_PER_STEP)?;
        let whole = |at: Option<usize>, len: usize| at.map(|i| vec![Some((from + i, from + i + len))]);
        let tail = subject.get(from..).unwrap_or_default();
        Ok(match &self.tier {
            Tier::Contains(s) => whole(tail.find(s.as_str()), s.len()),
            Tier::StartsWith(s) => whole((from == 0 && tail.starts_with(s.as_str())).then_some(0), s.len()),
            Tier::Linear(r) => r
                .captures_at(subject, from)
                .map(|c| c.iter().map(|g| g.map(|g| (g.start(), g.end()))).collect()),
            Tier::LinearBytes(r) => r
                .captures_at(subject.as_bytes(), from)
                .map(|c| c.iter().map(|g| g.map(|g| (g.start(), g.end()))).collect()),
            Tier::Backtracking(r) => patience::until_over(|| r.captures_at(subject, from))?.map_err(|e| {
                Error::location(
                    51156,
                    format!("Error occurred while executing the regular expression. Result code: {e}"),
                )
            })?,
        })
    }
}

fn refusal(e: &fancy_regex::Error) -> String {
    use fancy_regex::{CompileError, Error};
    let Error::CompileError(why) = e else { return last_line(&e.to_string()) };
    match **why {
        CompileError::LookBehindNotConst | CompileError::VariableLookBehindRequiresFeature => {
            "lookbehind assertion is not fixed length".to_owned()
        }
        _ => last_line(&e.to_string()),
    }
}

/// Patterns without any special character, perhaps after `^`.
fn literal_tier(pattern: &str, options: &str) -> Option<Tier> {
    let (anchored, body) = match pattern.strip_prefix('^') {
        Some(body) if !options.contains('m') => (true, body),
        Some(_) => return None,
        None => (false, pattern),
    };
    if body.is_empty() || body.contains(|c: char| "\\^$.|?*+()[]{}".contains(c)) {
        return None;
    }
    Some(if anchored { Tier::StartsWith(body.to_owned()) } else { Tier::Contains(body.to_owned()) })
}

fn explain(e: &regex::Error) -> String {
    match e {
        regex::Error::CompiledTooBig(_) => "regular expression is too large".into(),
        other => last_line(&other.to_string()),
    }
}

/// The engines draw pictures; the reason is on the last line.
fn last_line(text: &str) -> String {
    let line = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or_default();
    line.trim().trim_start_matches("error: ").to_owned()
}

/// The literal prefix of every match, for index bounds, and whether having the prefix is all it takes.
/// Only for patterns anchored at the start and without options that change letters or anchors.
pub fn literal_prefix(pattern: &str, options: &str) -> Option<(String, bool)> {
    let extended = options.contains('x');
    if options.contains(['i', 'u']) || pattern.contains('|') {
        return None;
    }
    let body = match (pattern.strip_prefix("\\A"), pattern.strip_prefix('^')) {
        (Some(body), _) => body,
        (None, Some(body)) if !options.contains('m') => body,
        _ => return None,
    };
    let mut prefix = String::new();
    let mut chars = body.chars();
    while let Some(c) = chars.next() {
        match c {
            // The last character may be absent.
            '*' | '?' => {
                prefix.pop();
                return some_prefix(prefix, false);
            }
            '.' if chars.as_str() == "*" => return Some((prefix, true)),
            '+' | '{' | '.' | '[' | '(' | ')' | '^' | '$' => return some_prefix(prefix, false),
            '\\' => match chars.next() {
                Some('Q') => {
                    let rest = chars.as_str();
                    let (quoted, after) = rest.split_once("\\E").unwrap_or((rest, ""));
                    prefix.push_str(quoted);
                    chars = after.chars();
                }
                Some(e) if !e.is_ascii_alphanumeric() => prefix.push(e),
                _ => return some_prefix(prefix, false),
            },
            '#' if extended => return some_prefix(prefix, false),
            c if extended && c.is_whitespace() => {}
            c => prefix.push(c),
        }
    }
    some_prefix(prefix, true)
}

fn some_prefix(prefix: String, exact: bool) -> Option<(String, bool)> {
    if prefix.is_empty() { None } else { Some((prefix, exact)) }
}
#[cfg(test)]
mod tests {
    use super::*;

    fn m(pattern: &str, options: &str, subject: &str) -> bool {
        Regex::new(pattern, options).unwrap().is_match(subject)
    }

    /// Each look at the clock takes a millisecond; over after fifty.
    #[derive(Default)]
    struct Fifty(std::sync::atomic::AtomicU64);

    impl patience::Operation for Fifty {
        fn check(&self) -> Result<()> {
            if self.0.load(std::sync::atomic::Ordering::Relaxed) < 50 {
                return Ok(());
            }
            Err(Error::new(pando_base::ErrorCode::MaxTimeMSExpired, "over"))
        }
        fn now(&self) -> std::time::Duration {
            std::time::Duration::from_millis(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
        }
        fn step_aside(&self, _: std::time::Duration) {}
        fn pause(&self, _: std::time::Duration) {}
    }

    #[test]
    fn a_match_that_takes_a_square_of_the_text_ends_with_its_operation() {
        let text = "a".repeat(1_000_000);
        for pattern in ["(?=.*b)a", "(?=(?:a|aa)*b)a", "(?:a(?=.*b))+"] {
            let r = Regex::new(pattern, "").unwrap();
            let ended = patience::run_within(std::sync::Arc::new(Fifty::default()), || {
                (r.is_match(&text), patience::check().is_err(), r.captures_at(&text, 0).is_err())
            });
            assert_eq!(ended, (false, true, true), "{pattern}");
            assert!(r.is_match("aab"), "{pattern} works again afterwards");
        }
    }

    #[test]
    fn classes_are_ascii_as_in_pcre_without_ucp() {
        assert!(m(r"^\d+$", "", "123"));
        assert!(!m(r"^\d+$", "", "١٢٣"));
        assert!(!m(r"^\w+$", "", "é"));
        assert!(m(r"^\W$", "", "é"));
        assert!(m(r"^[\w-]+$", "", "a-b_9"));
        assert!(m(r"^[^\W]+$", "", "abc"));
        assert!(m(r"\bcaf\b", "", "café"));
    }

    #[test]
    fn what_even_the_rough_pattern_does_not_match_takes_linear_time() {
        let text = "a".repeat(1_000_000);
        for pattern in
            ["a++b", "(?=.*a)(?!z)b", "(?>a+)b", r"(a*)\1b", r"(?<!b)a*+$(?=)\nb", r"(?P<n>a)(?P=n)*+b\b"]
        {
            assert!(!m(pattern, "", &text), "{pattern}");
        }
    }

    #[test]
    fn a_rough_pattern_stands_in_nobodys_way() {
        for (pattern, subject) in [
            (r"(?=é)", "aé"),
            (r"\B(?!x)", "éx"),
            (r"(?<=\bab)c$", "x abc\n"),
            (r"a$(?=\n)\n", "a\n"),
            (r"(a)|(?!b)\1?c", "c"),
            (r"(?i)(?=A)a(?-i)B++", "aB"),
            (r"((?>a|ab))c", "ac"),
            (r"(b)?(?(1)a|c)", "c"),
            (r"a\Kb", "ab"),
        ] {
            let r = Regex::new(pattern, "").unwrap();
            assert!(r.is_match(subject), "{pattern}");
            assert!(r.captures_at(subject, 0).unwrap().is_some(), "{pattern}");
        }
    }

    #[test]
    fn end_anchor_allows_one_final_newline() {
        assert!(m("abc$", "", "abc\n"));
        assert!(!m("abc$", "", "abc\n\n"));
        assert!(!m(r"abc\z", "", "abc\n"));
        assert!(m("(a$|b$)", "", "b\n"));
        assert!(m("a$(?:)", "", "a\n"));
        assert!(m("^b$", "m", "a\nb\nc"));
    }

    #[test]
    fn options_change_matching() {
        assert!(m("ABC", "i", "xabcx"));
        assert!(m("É", "i", "é"));
        assert!(m("a.b", "s", "a\nb"));
        assert!(!m("a.b", "", "a\nb"));
        assert!(m("a b # comment", "x", "ab"));
        assert!(m("[a b]", "x", " "));
        assert!(m("a", "u", "a"));
        assert_eq!(Regex::new("a", "g").unwrap_err().code.0, 51108);
    }

    #[test]
    fn pcre_only_syntax_works() {
        assert!(m(r"(a)\1", "", "aa"));
        assert!(!m(r"(a)\1", "", "ab"));
        assert!(m(r"foo(?=bar)", "", "foobar"));
        assert!(!m(r"foo(?!bar)", "", "foobar"));
        assert!(m(r"(?<=x)y", "", "xy"));
        assert!(m(r"a++b", "", "aaab"));
        assert!(m(r"(?>a+)b", "", "aab"));
        assert!(m(r"\Qa.b\E+", "", "a.bb"));
        assert!(m(r"\h", "", "\t"));
        assert!(m(r"a{,5}", "", "a{,5}"));
        assert!(m(r"x{", "", "x{"));
        assert!(m(r"[[]", "", "["));
        assert!(m(r"[]a]", "", "]"));
        assert!(m(r"[a&&b]", "", "&"));
        assert!(m(r"\x41\x{42}\103", "", "ABC"));
        assert!(m(r"(?#note)a", "", "a"));
        assert!(m(r"(?i)ab(?-i)c", "", "ABc"));
        assert!(m(r"[[:digit:]]", "", "5"));
        assert!(m(r"\/", "", "/"));
        assert!(m(r"\<", "", "<"));
        assert!(m(r"^(?:a|b)*?c", "", "abc"));
    }

    #[test]
    fn bad_patterns_are_refused_with_pcre_words() {
        for (pattern, why) in [
            ("(", "missing )"),
            ("a)", "unmatched parentheses"),
            ("*", "nothing to repeat"),
            ("a**", "nothing to repeat"),
            ("[a", "missing terminating ] for character class"),
            ("a\\", "\\ at end of pattern"),
            ("[z-a]", "range out of order in character class"),
            ("a{5,2}", "numbers out of order in {} quantifier"),
            ("(?z)", "unrecognized character after (? or (?-"),
        ] {
            let e = Regex::new(pattern, "").unwrap_err();
            assert_eq!(e.code.0, 51091, "{pattern}");
            assert_eq!(e.message, format!("Regular expression is invalid: {why}"), "{pattern}");
        }
    }

    #[test]
    fn lookbehinds_have_a_fixed_length_as_in_pcre() {
        for bad in ["(?<=a.*b)c", "(?<=a(b|cd))c", "(?<=a{2,3})c"] {
            let e = Regex::new(bad, "").err().map(|e| e.message.clone());
            assert!(
                e.as_ref().is_some_and(|m| m.ends_with("lookbehind assertion is not fixed length")),
                "{bad}: {e:?}"
            );
        }
        assert!(m("(?<=ab|c)d", "", "xcd") && m("(?<!ab|c)d", "", "xxd"));
    }
    #[test]
    fn hopeless_backtracking_gives_up() {
        assert!(!m(r"(?=a)(a+)+\1$", "", &"a".repeat(40).replace("aaaa", "aaab")));
    }

    #[test]
    fn prefixes_for_index_bounds() {
        let p = |s: &str| literal_prefix(s, "");
        assert_eq!(p("^abc"), Some(("abc".into(), true)));
        assert_eq!(p("^abc.*"), Some(("abc".into(), true)));
        assert_eq!(p("^abc*"), Some(("ab".into(), false)));
        assert_eq!(p("abc"), None);
        assert_eq!(p("^a|b"), None);
        assert_eq!(p(r"^\Qa.b\E"), Some(("a.b".into(), true)));
        assert_eq!(p(r"^a\.b"), Some(("a.b".into(), true)));
        assert_eq!(p("^a$"), Some(("a".into(), false)));
        assert_eq!(literal_prefix("^abc", "i"), None);
        assert_eq!(literal_prefix("^abc", "m"), None);
        assert_eq!(literal_prefix("^a b", "x"), Some(("ab".into(), true)));
    }
}
