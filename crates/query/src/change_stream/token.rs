//! Resume tokens: where in the stream of events one stands (`{_data: <hex>, _typeBits: ..}`).
//!
//! The hexadecimal digits are a KeyString of clusterTime, version, kind, index in the transaction, whether the event
//! invalidates, the collection's UUID and what the event is about, in this order: tokens compare as the events follow
//! each other. A high-water mark stands before everything of its time. The first fields are written as MongoDB writes
//! them, so that tools find the time in them; numbers among the keys of documents are in this server's encoding.

use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};

/// The first field of every token: tokens of all times are read.
const VERSION: i32 = 1;
const HIGH_WATER: i32 = 0;
const EVENT: i32 = 128;
/// Sizes of type bits from here on stand in a byte of their own.
const LONG_BITS: u8 = 0x80;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub time: Timestamp,
    pub is_event: bool,
    pub from_invalidate: bool,
    key: Vec<u8>,
    doc: DocBuf,
}

/// What an event's token is made of.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub time: Timestamp,
    /// Of the operation in its transaction.
    pub index: i32,
    pub invalidates: bool,
    pub uuid: Option<Uuid>,
    /// The document's key, or what a definition's change did.
    pub about: Option<&'a RawDoc>,
}

impl Token {
    /// Before all events of `time`.
    pub fn high_water(time: Timestamp) -> Token {
        let place = Place { time, index: 0, invalidates: false, uuid: None, about: None };
        Token::new(&place, HIGH_WATER)
    }
    pub fn of_event(place: &Place<'_>) -> Token {
        Token::new(place, EVENT)
    }
    fn new(p: &Place<'_>, kind: i32) -> Token {
        let mut key = vec![TIMESTAMP];
        key.extend_from_slice(&p.time.0.to_be_bytes());
        let numbers = [VERSION, kind, p.index];
        numbers.iter().for_each(|n| put_number(&mut key, *n));
        key.push(if p.invalidates { TRUE } else { FALSE });
        let mut rest = KeyBuilder::default();
        // They leave their marks among the type bits.
        for n in numbers {
            rest.append(Value::Int32(n));
        }
        let head = rest.bytes().len();
        if let Some(uuid) = &p.uuid {
            rest.append(Value::Binary { subtype: 4, bytes: &uuid.0 });
        }
        if let Some(about) = p.about {
            rest.append(Value::Document(about));
        }
        key.extend_from_slice(&rest.bytes()[head..]);
        key.push(END);
        let mut b = DocBuilder::new();
        b.str("_data", &hex(&key));
        if !rest.type_bits().is_empty() {
            b.binary("_typeBits", 0, &stored_bits(rest.type_bits()));
        }
        let (is_event, from_invalidate) = (kind == EVENT, p.invalidates);
        Token { time: p.time, is_event, from_invalidate, key, doc: b.finish() }
    }
    /// What a client gives back.
    pub fn parse(doc: &RawDoc) -> Result<Token> {
        let Some(Value::String(data)) = doc.get("_data") else {
            return Err(Error::location(
                40647,
                format!("Bad resume token: _data of missing or of wrong type. Expected string, got {doc}"),
            ));
        };
        if data.is_empty() {
            return Err(Error::location(40649, "invalid empty resume token"));
        }
        let key = unhex(data)
            .ok_or_else(|| Error::failed_to_parse("resume token string was not a valid hex string"))?;
        let mut head = Head(&key);
        let time = head.timestamp()?;
        let version = head.number()?;
        if !(0..=2).contains(&version) {
            return Err(Error::new(
                ErrorCode::InvalidResumeToken,
                "Invalid resume token: only supports version 0, 1, or 2",
            ));
        }
        let kind = if version > 0 { head.number()? } else { EVENT };
        head.number()?;
        let from_invalidate = head.byte()? == TRUE;
        Ok(Token { time, is_event: kind == EVENT, from_invalidate, key, doc: doc.to_buf() })
    }
    pub fn doc(&self) -> &DocBuf {
        &self.doc
    }
    /// Of a fragment of this event, counted from 0.
    pub fn fragment(&self, n: usize) -> Token {
        let mut key = self.key.clone();
        key.pop();
        put_number(&mut key, n as i32);
        key.push(END);
        let mut b = DocBuilder::new();
        b.str("_data", &hex(&key));
        if let Some(bits) = self.doc.elem("_typeBits") {
            b.elem(bits);
        }
        Token { key, doc: b.finish(), ..self.clone() }
    }
    /// Which fragment of `event` this is the token of.
    pub fn fragment_of(&self, event: &Token) -> Option<usize> {
        let (_end, base) = event.key.split_last()?;
        let mut rest = Head(self.key.strip_prefix(base)?);
        let n = rest.number().ok()?;
        (rest.0 == [END]).then_some(n as usize)
    }
    pub fn is_same(&self, other: &Token) -> bool {
        self.key == other.key
    }
    /// In the order of events.
    pub fn is_after(&self, other: &Token) -> bool {
        self.key > other.key
    }
}

/// Marks of the key's first fields, as MongoDB writes them.
const TIMESTAMP: u8 = 0x82;
const ZERO: u8 = 0x29;
/// One byte of a number above zero; each further byte adds one.
const NUMBER: u8 = 0x2B;
const FALSE: u8 = 0x6E;
const TRUE: u8 = 0x6F;
/// Closes the key.
const END: u8 = 4;

/// Twice the number, in as few bytes as it needs.
fn put_number(key: &mut Vec<u8>, n: i32) {
    let twice = (n.max(0) as u64) << 1;
    let len = (8 - twice.leading_zeros() as usize / 8).max(1);
    if twice == 0 {
        return key.push(ZERO);
    }
    key.push(NUMBER + (len - 1) as u8);
    key.extend_from_slice(&twice.to_be_bytes()[8 - len..]);
}

/// What is left to read of a key's first fields.
struct Head<'a>(&'a [u8]);

impl Head<'_> {
    fn take(&mut self, n: usize) -> Result<u64> {
        let cut = || Error::new(ErrorCode::Overflow, "the resume token is cut off");
        let (bytes, rest) = self.0.split_at_checked(n).ok_or_else(cut)?;
        self.0 = rest;
        Ok(bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
    }
    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)? as u8)
    }
    fn timestamp(&mut self) -> Result<Timestamp> {
        match self.byte()? {
            TIMESTAMP => Ok(Timestamp(self.take(8)?)),
            _ => Err(Error::location(40650, "Invalid resume token: its first field is not a timestamp")),
        }
    }
    fn number(&mut self) -> Result<i32> {
        match self.byte()? {
            ZERO => Ok(0),
            class @ NUMBER..=0x2F => Ok((self.take(usize::from(class - NUMBER) + 1)? >> 1) as i32),
            _ => Err(Error::location(40651, "Invalid resume token: a number is missing")),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |n: u8| char::from(DIGITS[usize::from(n)]);
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect()
}
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |b: &u8| char::from(*b).to_digit(16).map(|d| d as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

fn stored_bits(bits: &[u8]) -> Vec<u8> {
    match bits {
        [one] if *one < LONG_BITS => vec![*one],
        _ => [&[LONG_BITS | bits.len() as u8], bits].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    fn event(about: &RawDoc) -> Token {
        let uuid =
            Uuid([0x13, 0xE2, 0x67, 0xC6, 3, 0xC1, 0x47, 0xDD, 0xAD, 0x87, 0x92, 0xDE, 7, 0x28, 0x27, 0x22]);
        Token::of_event(&Place {
            time: Timestamp::new(0x6B02_7CC2, 4),
            index: 0,
            invalidates: false,
            uuid: Some(uuid),
            about: Some(about),
        })
    }

    #[test]
    fn tokens_read_as_mongodbs() {
        assert_eq!(
            Token::high_water(Timestamp::new(0x6B02_7CC2, 2)).doc.get("_data").and_then(|v| v.as_str()),
            Some("826B027CC2000000022B0229296E04")
        );
        let t = event(&doc! { "_id": "str" }.to_raw());
        let expected = "826B027CC2000000042B022C0100296E5A100413E267C603C147DDAD8792DE07282722463C5F6964003C7374720000\
                        04";
        assert_eq!(t.doc.get("_data").and_then(|v| v.as_str()), Some(expected));
        let t = event(&doc! { "_id": 5.5 }.to_raw());
        let bits = |t: &Token| match t.doc.get("_typeBits") {
            Some(Value::Binary { bytes, .. }) => bytes.to_vec(),
            _ => Vec::new(),
        };
        assert_eq!(bits(&t), [0x40]);
        assert_eq!(bits(&event(&doc! { "_id": 7_i64 }.to_raw())), [0x81, 0x80]);
    }

    #[test]
    fn tokens_come_back_as_they_went() {
        for about in [doc! { "_id": 5.5 }, doc! { "_id": "x" }, doc! { "_id": { "a": 1_i64 } }] {
            let t = event(&about.to_raw());
            assert_eq!(Token::parse(&t.doc).unwrap(), t);
        }
        let mark = Token::high_water(Timestamp::new(5, 5));
        assert_eq!(Token::parse(&mark.doc).unwrap(), mark);
        assert!(event(&doc! { "_id": 1 }.to_raw()).is_after(&mark));
        for (bad, code) in [
            (doc! {}, 40647),
            (doc! { "_data": "" }, 40649),
            (doc! { "_data": "zz" }, 9),
            (doc! { "_data": "8263" }, 15),
        ] {
            assert_eq!(Token::parse(&bad.to_raw()).unwrap_err().code.0, code);
        }
    }
}
