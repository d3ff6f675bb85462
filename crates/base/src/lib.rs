//! The words every other crate speaks: times, names, errors and limits.
//!
//! Nothing here does I/O, allocates in surprising ways or knows about documents.
//! A reader who knows these five modules can read any signature in the project:
//! [`time`] (Timestamp, Term, OpTime), [`ns`] (namespaces), [`error`] (the one error type),
//! [`codes`] (MongoDB's numbers, names and classes, from one table) and [`limits`] (every bound).

pub mod calendar;
pub mod codes;
pub mod error;
pub mod hash;
pub mod limits;
pub mod mutants;
pub mod ns;
pub mod panics;
pub mod patience;
pub mod redaction;
pub mod session_id;
pub mod sync;
pub mod tenant;
pub mod time;
pub mod uuid;

pub use codes::ErrorCode;
pub use error::{Error, Result};
pub use hash::{HashMap, HashSet};
pub use ns::{DbName, Namespace};
pub use session_id::SessionId;
pub use tenant::{TenantId, TenantScope};
pub use time::{Millis, OpTime, Term, Timestamp, is_credible_term};
pub use uuid::Uuid;
