//! `trafficRecording`: this server was given no folder for recordings, so none runs.

use crate::Server;
use pando_metrics::Collector;

pub(super) fn collect(_: &Server, to: &mut Collector<'_>) {
    to.gauge("running", false, "boolean", "Whether traffic is recorded");
}
