//! Time series: a view by which users know them, and the collection of buckets that commands are really about.

use crate::Access;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_catalog::Named;
use pando_command::OpCtx;
use pando_query::timeseries::TimeSeries;

/// A time series by its name.
pub struct Series {
    pub of: TimeSeries,
    pub buckets: Namespace,
}

impl Access {
    /// The time series of that name, if it is one.
    pub fn time_series(&self, ns: &Namespace) -> Option<Series> {
        let snapshot = self.catalog.snapshot();
        let Some(Named::View(view)) = snapshot.get(ns) else { return None };
        if !view.on.coll().starts_with("system.buckets.") {
            return None;
        }
        let coll = snapshot.collection(&view.on)?;
        Some(Series { of: coll.options.time_series.clone()?, buckets: view.on.clone() })
    }

    /// The time series whose indexes a command is about; one that is named by its buckets is not named as a view.
    pub fn series_of_definition(&self, ns: &Namespace, by_buckets: bool) -> Result<Option<Series>> {
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
    pub fn series_to_write(&self, ns: &Namespace, by_buckets: bool) -> Result<Option<Series>> {
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

    /// The same for an update or a delete. Which buckets there are changes outside of transactions, so none may write here (263).
    pub fn series_to_change(&self, ctx: &OpCtx, ns: &Namespace, by_buckets: bool) -> Result<Option<Series>> {
        match self.series_to_write(ns, by_buckets)? {
            Some(_) if ctx.in_txn() => {
                let text =
                    format!("Cannot perform a multi-document transaction on a time-series collection: {ns}");
                Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text))
            }
            series => Ok(series),
        }
    }
}
