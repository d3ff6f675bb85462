//! Commands that members of sets and routers answer in the same way, from what every process has.

pub mod driver_oid_test;
pub mod log_message;
pub mod search_indexes;
pub mod sleep;
pub mod test_api;
pub mod wait_for_fail_point;
pub mod whatsmysni;
