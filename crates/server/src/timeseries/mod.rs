//! Writes to a time series: measurements go into buckets, updates speak of sources, deletes of these or of measurements.
//!
//! ```text
//! insert ─► stage: a bucket per source and span, from memory, from the collection or new ─► one unit of work
//! update, delete by source ─► the same on the collection of buckets
//! delete by anything else ─► buckets that may hold such measurements, written without them
//! ```

mod by_source;
mod insert;
mod measured;
mod open_buckets;
mod stage;

pub(crate) use open_buckets::OpenBuckets;

use crate::Server;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_catalog::Named;
use pando_query::timeseries::TimeSeries;

/// A time series by its name.
pub(crate) struct Series {
    pub(crate) of: TimeSeries,
    pub(crate) buckets: Namespace,
}

impl Server {
    /// The time series of that name, if it is one.
    pub(crate) fn time_series(&self, ns: &Namespace) -> Option<Series> {
        let snapshot = self.catalog.snapshot();
        let Some(Named::View(view)) = snapshot.get(ns) else { return None };
        if !view.on.coll().starts_with("system.buckets.") {
            return None;
        }
        let coll = snapshot.collection(&view.on)?;
        Some(Series { of: coll.options.time_series.clone()?, buckets: view.on.clone() })
    }

    /// The time series whose indexes a command is about; one that is named by its buckets is not named as a view.
    pub(crate) fn series_of_definition(&self, ns: &Namespace, by_buckets: bool) -> Result<Option<Series>> {
        match (by_buckets, self.time_series(ns)) {
            (true, Some(_)) => Err(Error::new(
                ErrorCode::CommandNotSupportedOnView,
                format!("Namespace {ns} is a timeseries collection"),
            )),
            (true, None) if ns.coll().starts_with("system.buckets.") => self.series_to_write(ns, true),
            (_, series) => Ok(series),
        }
    }

    /// The time series that a write command is about. `by_buckets` (`isTimeseriesNamespace`): it is named by its
    /// collection of buckets.
    pub(crate) fn series_to_write(&self, ns: &Namespace, by_buckets: bool) -> Result<Option<Series>> {
        if !by_buckets {
            return Ok(self.time_series(ns));
        }
        if !ns.coll().starts_with("system.buckets.") {
            return Err(Error::location(
                5_916_400,
                "'isTimeseriesNamespace' parameter can only be set when the request is sent on system.buckets \
                 namespace",
            ));
        }
        let of = self.catalog.lookup(ns).and_then(|c| c.options.time_series.clone());
        Ok(of.map(|of| Series { of, buckets: ns.clone() }))
    }
}
