//! Sets of many tenants under faults, all of it the servers' own code: a set that becomes two ([`split`]), and two sets between which tenants
//! move ([`migrate`]).
//!
//! ```text
//!   field ── six machines, three on each side; what breaks (faults, copying), what is looked at (side)
//!   board ── what all users have been told of where each tenant is, and what was found to be wrong
//!   users ── of tenants, who go where their tenant goes
//!   agreement ── what each set must be at the end
//! ```
//! What is asked for, by whom, and what that must come to is each of the two modules' own.

mod agreement;
mod board;
mod copying;
mod faults;
mod field;
pub mod migrate;
mod side;
pub mod split;
mod users;

/// Members' ports, and machines, count from here.
const FIRST_PORT: u16 = 27017;
/// Machines of each side.
const EACH: usize = 3;
const MEMBERS: usize = 2 * EACH;
/// Users' machines count from here.
const FIRST_CLIENT: u16 = 100;

/// The name of a tenant's database.
fn database(tenant: usize) -> String {
    format!("t{tenant}_db")
}
/// The name of a tenant.
fn name(tenant: usize) -> String {
    format!("t{tenant}")
}

/// One of the two sets: in a split the first one is the donor, and the second one is what becomes of those who leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Home {
    First,
    Second,
}

impl Home {
    const BOTH: [Home; 2] = [Home::First, Home::Second];
    fn other(self) -> Home {
        match self {
            Home::First => Home::Second,
            Home::Second => Home::First,
        }
    }
    /// By the numbers of its machines.
    fn machines(self) -> std::ops::Range<usize> {
        match self {
            Home::First => 0..EACH,
            Home::Second => EACH..MEMBERS,
        }
    }
}
