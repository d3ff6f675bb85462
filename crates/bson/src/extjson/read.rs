//! Text to values.

use super::forms::{parse_date, unbase64};
use crate::decimal128::Rounding;
use crate::owned::{Bson, Document};
use crate::types::{Binary, Decimal128, ObjectId, Regex};
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};

/// Reads one document; nothing but white space may follow.
pub fn parse(text: &str) -> Result<Document> {
    match parse_value(text)? {
        Bson::Document(d) => Ok(d),
        other => Err(fail(format!("expected a document, got {}", other.type_name()))),
    }
}

/// Reads one document as people write it for a shell: names without quotes, texts in single ones, `/pattern/options`.
pub fn parse_shell(text: &str) -> Result<Document> {
    let mut p = Parser { text, at: 0, depth: 0, shell: true };
    let v = p.value()?;
    p.blank();
    match (v, p.at == text.len()) {
        (Bson::Document(d), true) => Ok(d),
        (_, false) => Err(p.unexpected()),
        (other, true) => Err(fail(format!("expected a document, got {}", other.type_name()))),
    }
}

/// Reads one value of any type.
pub fn parse_value(text: &str) -> Result<Bson> {
    let (v, end) = parse_prefix(text)?;
    if text.as_bytes()[end..].iter().all(u8::is_ascii_whitespace) {
        Ok(v)
    } else {
        Err(fail(format!("unexpected text at byte {end}")))
    }
}

/// Reads the value at the front of `text`; returns it and where it ended, for streams of documents.
pub fn parse_prefix(text: &str) -> Result<(Bson, usize)> {
    let mut p = Parser { text, at: 0, depth: 0, shell: false };
    let v = p.value()?;
    Ok((v, p.at))
}

#[cold]
fn fail(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode::FailedToParse, format!("extended JSON: {what}"))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Enclosing documents and arrays.
    depth: usize,
    /// As in [`parse_shell`].
    shell: bool,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
    fn blank(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }
    #[cold]
    fn unexpected(&self) -> Error {
        match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(c) => fail(format!("unexpected {c:?} at byte {}", self.at)),
            None => fail("unexpected end"),
        }
    }
    fn expect(&mut self, b: u8) -> Result<()> {
        self.blank();
        if self.peek() != Some(b) {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }
    /// After an item: true if another one follows, false if `end` closed the list.
    fn more(&mut self, end: u8) -> Result<bool> {
        self.blank();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(b) if b == end => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.unexpected()),
        }
    }
    fn is_empty(&mut self, end: u8) -> bool {
        self.blank();
        let empty = self.peek() == Some(end);
        self.at += usize::from(empty);
        empty
    }

    fn value(&mut self) -> Result<Bson> {
        self.blank();
        match self.peek() {
            Some(b'{' | b'[') => {
                if self.depth > limits::BSON_DEPTH_MAX {
                    return Err(Error::new(
                        ErrorCode::Overflow,
                        "extended JSON: exceeded maximum nested depth",
                    ));
                }
                self.depth += 1;
                let v = if self.peek() == Some(b'{') { self.object() } else { self.array() }?;
                self.depth -= 1;
                Ok(v)
            }
            Some(b'"') => self.string().map(Bson::String),
            Some(b'\'') if self.shell => self.string().map(Bson::String),
            Some(b'/') if self.shell => self.pattern(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                for (word, v) in
                    [("true", Bson::Boolean(true)), ("false", Bson::Boolean(false)), ("null", Bson::Null)]
                {
                    if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
                        self.at += word.len();
                        return Ok(v);
                    }
                }
                Err(self.unexpected())
            }
        }
    }
    fn array(&mut self) -> Result<Bson> {
        self.at += 1;
        let mut items = Vec::new();
        if !self.is_empty(b']') {
            loop {
                items.push(self.value()?);
                if !self.more(b']')? {
                    break;
                }
            }
        }
        Ok(Bson::Array(items))
    }
    fn object(&mut self) -> Result<Bson> {
        self.at += 1;
        let mut fields = Vec::new();
        if !self.is_empty(b'}') {
            loop {
                self.blank();
                let name = match self.peek() {
                    Some(b'"') => self.string()?,
                    Some(b'\'') if self.shell => self.string()?,
                    Some(b) if self.shell && is_bare(b) && !b.is_ascii_digit() => self.bare_name(),
                    _ => return Err(self.unexpected()),
                };
                if name.contains('\0') {
                    return Err(fail("field names cannot contain null bytes"));
                }
                self.expect(b':')?;
                fields.push((name, self.value()?));
                if !self.more(b'}')? {
                    break;
                }
            }
        }
        unwrap_typed(fields)
    }
    fn number(&mut self) -> Result<Bson> {
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        let len =
            rest.iter().take_while(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')).count();
        let token = &self.text[start..start + len];
        self.at += len;
        if !is_json_number(token.as_bytes()) {
            return Err(fail(format!("malformed number at byte {start}")));
        }
        if !token.contains(['.', 'e', 'E'])
            && let Ok(n) = token.parse::<i64>()
        {
            return Ok(i32::try_from(n).map_or(Bson::Int64(n), Bson::Int32));
        }
        token.parse().map(Bson::Double).map_err(|_| fail(format!("malformed number at byte {start}")))
    }
    fn bare_name(&mut self) -> String {
        let rest = &self.text[self.at..];
        let len = rest.bytes().position(|b| !is_bare(b)).unwrap_or(rest.len());
        self.at += len;
        rest[..len].to_owned()
    }
    /// `/pattern/options`; a slash within the pattern stands behind a backslash.
    fn pattern(&mut self) -> Result<Bson> {
        self.at += 1;
        let mut pattern = String::new();
        let mut escaped = false;
        loop {
            let c = self.text[self.at..].chars().next().ok_or_else(|| self.unexpected())?;
            self.at += c.len_utf8();
            match (escaped, c) {
                (false, '/') => break,
                (true, '/') => {
                    pattern.pop();
                    pattern.push('/');
                }
                _ => pattern.push(c),
            }
            escaped = !escaped && c == '\\';
        }
        let rest = &self.text[self.at..];
        let len = rest.bytes().position(|b| !b.is_ascii_lowercase()).unwrap_or(rest.len());
        self.at += len;
        Ok(Bson::Regex(Regex { pattern, options: rest[..len].to_owned() }))
    }
    /// The quote that it begins with ends it.
    fn string(&mut self) -> Result<String> {
        let quote = self.peek().unwrap_or(b'"');
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.bytes().position(|b| b == quote || b == b'\\' || b < 0x20).unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b) if b == quote => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.at += 1;
                    out.push(self.escape()?);
                }
                _ => return Err(self.unexpected()),
            }
        }
    }
    fn escape(&mut self) -> Result<char> {
        let b = self.peek().ok_or_else(|| self.unexpected())?;
        let c = match b {
            b'"' | b'\\' | b'/' => char::from(b),
            b'\'' if self.shell => '\'',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(c)
    }
    fn hex4(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let n = digits.and_then(|d| u32::from_str_radix(d, 16).ok()).ok_or_else(|| self.unexpected())?;
        self.at += 4;
        Ok(n)
    }
    /// `\uXXXX`, or two of them that make a surrogate pair.
    fn unicode(&mut self) -> Result<char> {
        let start = self.at;
        let high = self.hex4()?;
        let code = if (0xD800..0xDC00).contains(&high) && self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            let low = self.hex4()?;
            if !(0xDC00..0xE000).contains(&low) {
                return Err(fail(format!("lone surrogate at byte {start}")));
            }
            0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
        } else {
            high
        };
        char::from_u32(code).ok_or_else(|| fail(format!("lone surrogate at byte {start}")))
    }
}

/// May stand in a name without quotes.
fn is_bare(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$')
}

fn is_json_number(token: &[u8]) -> bool {
    fn digits(t: &[u8]) -> Option<&[u8]> {
        let n = t.iter().take_while(|b| b.is_ascii_digit()).count();
        (n > 0).then(|| &t[n..])
    }
    let t = token.strip_prefix(b"-").unwrap_or(token);
    let leading_zero = t.len() > 1 && t[0] == b'0' && t[1].is_ascii_digit();
    let Some(mut t) = digits(t).filter(|_| !leading_zero) else { return false };
    if let Some(fraction) = t.strip_prefix(b".") {
        let Some(rest) = digits(fraction) else { return false };
        t = rest;
    }
    if let [b'e' | b'E', rest @ ..] = t {
        let exponent = rest.strip_prefix(b"+").or(rest.strip_prefix(b"-")).unwrap_or(rest);
        let Some(rest) = digits(exponent) else { return false };
        t = rest;
    }
    t.is_empty()
}

/// The names that make a document a typed value; any of them forbids everything else around it.
const WRAPPERS: &[&str] = &[
    "$oid",
    "$symbol",
    "$numberInt",
    "$numberLong",
    "$numberDouble",
    "$numberDecimal",
    "$binary",
    "$uuid",
    "$code",
    "$scope",
    "$timestamp",
    "$regularExpression",
    "$dbPointer",
    "$date",
    "$minKey",
    "$maxKey",
    "$undefined",
];

fn unwrap_typed(fields: Vec<(String, Bson)>) -> Result<Bson> {
    let Some((name, _)) = fields.iter().find(|(name, _)| WRAPPERS.contains(&name.as_str())) else {
        return Ok(Bson::Document(Document::from(fields)));
    };
    let name = name.clone();
    typed(fields).ok_or_else(|| fail(format!("malformed {name}")))
}

fn typed(fields: Vec<(String, Bson)>) -> Option<Bson> {
    let mut fields = fields.into_iter();
    let ((name, v), second) = (fields.next()?, fields.next());
    if fields.next().is_some() {
        return None;
    }
    if let Some((other, w)) = second {
        // Only code has a companion, and the two come in either order.
        let (code, scope) = match (name.as_str(), other.as_str()) {
            ("$code", "$scope") => (v, w),
            ("$scope", "$code") => (w, v),
            _ => return None,
        };
        return match (code, scope) {
            (Bson::String(code), Bson::Document(scope)) => Some(Bson::JavaScriptWithScope(code, scope)),
            _ => None,
        };
    }
    Some(match (name.as_str(), v) {
        ("$oid", Bson::String(s)) => Bson::ObjectId(ObjectId::from_hex(&s)?),
        ("$symbol", Bson::String(s)) => Bson::Symbol(s),
        ("$numberInt", Bson::String(s)) => Bson::Int32(s.parse().ok()?),
        ("$numberLong", Bson::String(s)) => Bson::Int64(s.parse().ok()?),
        ("$numberDouble", Bson::String(s)) => Bson::Double(double(&s)?),
        ("$numberDecimal", Bson::String(s)) => {
            let (d, flags) = Decimal128::parse(&s, Rounding::HalfEven)?;
            (!flags.inexact).then_some(Bson::Decimal128(d))?
        }
        ("$binary", Bson::Document(d)) => binary(&d)?,
        ("$uuid", Bson::String(s)) => uuid(&s)?,
        ("$code", Bson::String(s)) => Bson::JavaScript(s),
        ("$timestamp", Bson::Document(d)) => {
            let part = |name| d.get(name).and_then(Bson::as_i64).and_then(|n| u32::try_from(n).ok());
            (d.len() == 2).then(|| Some(Bson::Timestamp(Timestamp::new(part("t")?, part("i")?))))??
        }
        ("$regularExpression", Bson::Document(d)) => regex(&d)?,
        ("$dbPointer", Bson::Document(d)) => match (d.len(), d.get("$ref"), d.get("$id")) {
            (2, Some(Bson::String(ns)), Some(Bson::ObjectId(id))) => Bson::DbPointer(ns.clone(), *id),
            _ => return None,
        },
        ("$date", Bson::String(s)) => Bson::DateTime(parse_date(&s)?),
        // The inner {"$numberLong": …} has already become a number.
        ("$date", Bson::Int64(ms)) => Bson::DateTime(ms),
        ("$minKey", Bson::Int32(1)) => Bson::MinKey,
        ("$maxKey", Bson::Int32(1)) => Bson::MaxKey,
        ("$undefined", Bson::Boolean(true)) => Bson::Undefined,
        _ => return None,
    })
}

fn double(s: &str) -> Option<f64> {
    match s {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ if s.bytes().all(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) => s.parse().ok(),
        _ => None,
    }
}

fn binary(d: &Document) -> Option<Bson> {
    match (d.len(), d.get("base64"), d.get("subType")) {
        (2, Some(Bson::String(text)), Some(Bson::String(subtype))) if (1..=2).contains(&subtype.len()) => {
            let subtype = subtype.bytes().all(|b| b.is_ascii_hexdigit()).then_some(subtype)?;
            let subtype = u8::from_str_radix(subtype, 16).ok()?;
            let mut bytes = unbase64(text)?;
            if subtype == 2 {
                let len = (bytes.len() as u32).to_le_bytes();
                bytes.splice(0..0, len);
            }
            Some(Bson::Binary(Binary { subtype, bytes }))
        }
        _ => None,
    }
}

fn uuid(s: &str) -> Option<Bson> {
    let hyphens: Vec<_> = s.bytes().enumerate().filter(|(_, b)| *b == b'-').map(|(i, _)| i).collect();
    if s.len() != 36 || hyphens != [8, 13, 18, 23] {
        return None;
    }
    let hex: Vec<u8> = s.bytes().filter(|b| *b != b'-').collect();
    let nibble = |b: u8| char::from(b).to_digit(16).map(|n| n as u8);
    let bytes: Option<Vec<u8>> = hex.chunks(2).map(|c| Some(nibble(c[0])? << 4 | nibble(c[1])?)).collect();
    Some(Bson::Binary(Binary { subtype: 4, bytes: bytes? }))
}

fn regex(d: &Document) -> Option<Bson> {
    match (d.len(), d.get("pattern"), d.get("options")) {
        (2, Some(Bson::String(pattern)), Some(Bson::String(options))) => {
            if pattern.contains('\0') || options.contains('\0') {
                return None;
            }
            let mut letters: Vec<char> = options.chars().collect();
            letters.sort_unstable();
            Some(Bson::Regex(Regex { pattern: pattern.clone(), options: letters.into_iter().collect() }))
        }
        _ => None,
    }
}
