//! How a command's arguments are declared: one table, from which it is read, spelled and drawn at random.
//!
//! ```text
//!   arguments! {
//!       /// What `drop` asks for.
//!       pub struct DropArgs of "drop" as "drop", refusing {      the command, its name in messages, what is not known
//!           "collectionUUID" collection_uuid: optional Uuid,     the field, its place in the type, whether it is needed, its kind
//!       }
//!   }
//! ```
//! A [`Kind`] says what may stand there ([`Shape`](pando_bson::shape::Shape)), what a null says, and what it becomes. Reading
//! goes through the arguments in the order in which they stand, each by itself, and tells the first mistake; what is missing
//! comes behind it. The command's own element and what the arguments mean together are not looked at here.
//!
//! * [`kinds`] — the kinds that several commands share;
//! * [`table`] — the tables of all commands that are declared in this way.

pub mod kinds;
pub mod table;

pub use kinds::Kind;
pub(crate) use kinds::kind;
use pando_base::{Error, Result};
use pando_bson::fields::wrong_type;
use pando_bson::shape::Field;
use pando_bson::{DocBuf, Elem};
use pando_command::request::unstable_field;
use pando_command::{Arg, Request};

/// The arguments of a command as a table.
#[derive(Clone, Copy)]
pub struct Arguments {
    pub command: &'static str,
    /// What stands before field names in messages.
    pub owner: &'static str,
    pub fields: &'static [Field],
    /// Other arguments are passed over, and kept.
    pub keeps_others: bool,
    /// Reads the arguments of a request and spells them, behind the command's own element.
    pub respell: fn(&Request<'_>) -> Result<DocBuf>,
}

/// What one argument is to its command.
pub(crate) enum Found {
    Given,
    /// A null that says nothing.
    Absent,
    /// None of the command's own.
    Other,
}

impl Arguments {
    /// Looks at one argument by itself. `strict`: only what the Stable API has.
    pub(crate) fn judge(&self, arg: &Arg<'_>, strict: bool) -> Result<Found> {
        let Some(field) = self.fields.iter().find(|f| f.name == arg.name()) else {
            return if self.keeps_others { Ok(Found::Other) } else { Err(arg.unknown()) };
        };
        if strict && field.unstable && !arg.is_absent() {
            return Err(unstable_field(self.owner, field.name));
        }
        let path = format!("{}.{}", self.owner, field.name);
        Ok(if field.admits(&path, &arg.value())? { Found::Given } else { Found::Absent })
    }
}

/// The value of an argument that has the right form.
pub(crate) fn read<'a, K: Kind>(owner: &str, e: Elem<'a>) -> Result<K::Of<'a>> {
    K::read(e.value()).ok_or_else(|| mistaken(owner, e))
}

fn mistaken(owner: &str, e: Elem<'_>) -> Error {
    wrong_type(owner, e.name(), &e.value(), &["another"])
}

/// Declares the arguments of a command, see [the module](self).
macro_rules! arguments {
    (
        $(#[$meta:meta])*
        pub struct $Name:ident of $command:literal as $owner:literal, $unknown:ident {
            $( $(#[$doc:meta])* $wire:literal $field:ident: $need:ident $kind:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $Name<'a> {
            $( $(#[$doc])* pub $field: $crate::declare::arguments!(@type $need $kind), )*
            /// Arguments that are not known and passed over.
            pub passthrough: Vec<pando_bson::Elem<'a>>,
        }

        impl<'a> $Name<'a> {
            pub const ARGUMENTS: $crate::declare::Arguments = $crate::declare::Arguments {
                command: $command,
                owner: $owner,
                fields: &[$( $crate::declare::arguments!(@field $need $wire $kind) ),*],
                keeps_others: $crate::declare::arguments!(@keeps $unknown),
                respell: |req| {
                    let args = $Name::parse(req)?;
                    let mut b = pando_bson::DocBuilder::new();
                    b.elem(req.first());
                    args.spell(&mut b);
                    Ok(b.finish())
                },
            };

            /// Reads everything behind the command's own element.
            pub fn parse(req: &pando_command::Request<'a>) -> pando_base::Result<$Name<'a>> {
                Self::parse_for(req, false)
            }
            /// The same; `strict`: only what the Stable API has.
            #[allow(unused_mut, clippy::match_single_binding)]
            pub fn parse_for(req: &pando_command::Request<'a>, strict: bool) -> pando_base::Result<$Name<'a>> {
                use $crate::declare::Found;
                $( let mut $field = None; )*
                let mut passthrough = Vec::new();
                for arg in req.args($owner) {
                    let e = arg.elem();
                    match Self::ARGUMENTS.judge(&arg, strict)? {
                        Found::Absent => {}
                        Found::Other => passthrough.push(e),
                        Found::Given => match e.name() {
                            $( $wire => $field = Some($crate::declare::read::<$kind>($owner, e)?), )*
                            _ => {}
                        },
                    }
                }
                $( let $field = $crate::declare::arguments!(@finish $need $owner $wire $field); )*
                Ok($Name { $( $field, )* passthrough })
            }
            /// Writes the arguments that [`Self::parse`] reads.
            pub fn spell(&self, b: &mut pando_bson::DocBuilder) {
                $( $crate::declare::arguments!(@spell $need $wire $kind, &self.$field, b); )*
                $crate::spell::passthrough(b, &self.passthrough);
            }
        }
    };
    (@type optional $kind:ty) => { Option<<$kind as $crate::declare::Kind>::Of<'a>> };
    (@type required $kind:ty) => { <$kind as $crate::declare::Kind>::Of<'a> };
    (@field $need:ident $wire:literal $kind:ty) => {
        pando_bson::shape::Field::$need($wire, <$kind as $crate::declare::Kind>::SHAPE)
            .null(<$kind as $crate::declare::Kind>::NULL)
            .means(<$kind as $crate::declare::Kind>::MEANS)
            .unstable(<$kind as $crate::declare::Kind>::UNSTABLE)
    };
    (@keeps keeping) => { true };
    (@keeps refusing) => { false };
    (@finish optional $owner:literal $wire:literal $field:ident) => { $field };
    (@finish required $owner:literal $wire:literal $field:ident) => {
        $field.ok_or_else(|| pando_command::request::missing($owner, $wire))?
    };
    (@spell optional $wire:literal $kind:ty, $value:expr, $b:ident) => {
        if let Some(v) = $value {
            <$kind as $crate::declare::Kind>::spell(v, $wire, $b);
        }
    };
    (@spell required $wire:literal $kind:ty, $value:expr, $b:ident) => {
        <$kind as $crate::declare::Kind>::spell($value, $wire, $b)
    };
}
pub(crate) use arguments;
