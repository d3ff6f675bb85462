//! The ways to prove who one is, by the names that they have on the wire.

/// A mechanism in which a password is proven.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mechanism {
    ScramSha1,
    ScramSha256,
}

impl Mechanism {
    /// All of them, in the order in which `saslSupportedMechs` of `hello` lists what a user has.
    pub const ALL: [Mechanism; 2] = [Mechanism::ScramSha256, Mechanism::ScramSha1];

    pub fn name(self) -> &'static str {
        match self {
            Mechanism::ScramSha1 => "SCRAM-SHA-1",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
        }
    }

    /// The one of this name; letters of another case make another name.
    pub fn of_name(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|m| m.name() == name)
    }

    /// Bytes of the mechanism's digests, keys and proofs.
    pub const fn size(self) -> usize {
        match self {
            Mechanism::ScramSha1 => 20,
            Mechanism::ScramSha256 => 32,
        }
    }

    /// Bytes of a user's salt: four less than a block of the digest that goes with the salt's number (RFC 5802, `INT(1)`).
    pub const fn salt_size(self) -> usize {
        self.size() - 4
    }

    /// How often a new password is hashed, where no parameter says otherwise.
    pub const fn default_iterations(self) -> u32 {
        match self {
            Mechanism::ScramSha1 => 10_000,
            Mechanism::ScramSha256 => 15_000,
        }
    }
}
