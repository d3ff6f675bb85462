//! A password, kept out of logs.

use std::fmt;
use zeroize::Zeroizing;

/// What a user types. It is overwritten in memory when it is dropped, and `{:?}` does not show it.
#[derive(Clone)]
pub struct Password(Zeroizing<String>);

impl Password {
    pub fn new(text: impl Into<String>) -> Password {
        Password(Zeroizing::new(text.into()))
    }
    /// For what hashes it.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}
