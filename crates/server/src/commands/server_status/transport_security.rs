//! `transportSecurity`: connections by version of TLS. The listener speaks none, so there are none.

use crate::Server;
use pando_metrics::Collector;

pub(super) fn collect(_: &Server, to: &mut Collector<'_>) {
    for version in ["1.0", "1.1", "1.2", "1.3", "unknown"] {
        to.labelled_counter("version", version, 0i64, "connections", "Connections with TLS, by its version");
    }
}
