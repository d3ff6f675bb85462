//! Multi-document transactions: open ones ([`open`]), prepared ones ([`prepared`]), and what is kept of sessions.

pub(crate) mod history_iterator;
pub(crate) mod open;
pub(crate) mod prepared;
pub(crate) mod prepared_table;
pub(crate) mod session_records;
pub(crate) mod told;
