//! Names of fields: bytes without a zero, nearly always UTF-8.

use crate::raw::NOT_A_WORD;
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// What may stand as a field's name in a document that is built.
pub trait AsName {
    fn name_bytes(&self) -> &[u8];
}

macro_rules! as_name {
    ($($ty:ty => |$v:ident| $bytes:expr;)*) => {
        $(impl AsName for &$ty {
            #[inline]
            fn name_bytes(&self) -> &[u8] {
                let $v: &$ty = self;
                $bytes
            }
        }
        impl AsName for &&$ty {
            #[inline]
            fn name_bytes(&self) -> &[u8] {
                let $v: &$ty = self;
                $bytes
            }
        }
        impl AsName for &&&$ty {
            #[inline]
            fn name_bytes(&self) -> &[u8] {
                let $v: &$ty = self;
                $bytes
            }
        })*
    };
}
as_name! {
    str => |v| v.as_bytes();
    String => |v| v.as_bytes();
    Box<str> => |v| v.as_bytes();
    Arc<str> => |v| v.as_bytes();
    Cow<'_, str> => |v| v.as_bytes();
    Name => |v| v.as_bytes();
    [u8] => |v| v;
    Vec<u8> => |v| v;
    Box<[u8]> => |v| v;
}

/// A field's name that is owned. As a `str` it is [`NOT_A_WORD`] when its bytes are not UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Held);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Held {
    Text(String),
    NotUtf8(Box<[u8]>),
}

impl Name {
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Held::Text(s) => s.as_bytes(),
            Held::NotUtf8(bytes) => bytes,
        }
    }
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Held::Text(s) => s,
            Held::NotUtf8(_) => NOT_A_WORD,
        }
    }
}

impl Default for Name {
    fn default() -> Name {
        Name(Held::Text(String::new()))
    }
}
impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}
impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(self.as_bytes()), f)
    }
}
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}
impl From<&str> for Name {
    fn from(s: &str) -> Name {
        Name(Held::Text(s.to_owned()))
    }
}
impl From<String> for Name {
    fn from(s: String) -> Name {
        Name(Held::Text(s))
    }
}
impl From<&String> for Name {
    fn from(s: &String) -> Name {
        Name(Held::Text(s.clone()))
    }
}
impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Name {
        Name(match std::str::from_utf8(bytes) {
            Ok(s) => Held::Text(s.to_owned()),
            Err(_) => Held::NotUtf8(bytes.into()),
        })
    }
}
impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}
impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}
impl PartialEq<String> for Name {
    fn eq(&self, other: &String) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}
