//! Which tenants of a set are being moved elsewhere, and what that means for their operations (SV-MTAB).
//!
//! ```text
//!   state documents ─► Operation ─► AccessBlockers ◄─ check ── writes, once they have a slot of the log
//!   the primary, before its document says so ─┘  ▲  ▲ ◄─ check ── reads, behind their read concern
//!                            the commit point ───┘  └── decided ── who was turned away, without a slot and without locks
//! ```
//!
//! * [`operation`] — what the document of a split (a migration, a merge) says, and what its tenants may do because of it;
//! * [`blockers`] — the same of all of them, as every operation of a client asks for it;
//! * [`serverless_lock`] — operations of one kind at a time (SV-LOCK).
//!
//! **Why no write of a tenant is behind `blockTimestamp`.** A write asks when it has its slot. Whoever blocks changes the table first and
//! takes a slot afterwards. A write that found nothing has asked, and so has taken its slot, before: it stands before `blockTimestamp`,
//! however late it commits, and nobody passes a slot that is open.

pub mod blockers;
pub mod mutants;
pub mod operation;
pub mod serverless_lock;

pub use blockers::{AccessBlockers, Decision, Reading};
pub use operation::{Access, Kind, Operation};
