//! Figures of what was applied.

pando_metrics::group! {
    /// What was applied from other members' logs, since the start (`metrics.repl.apply`).
    pub struct Applied {
        /// Groups of log entries that were applied in one unit of work
        pub units: Counter = "units", "units of work";
        /// Units of work that met a held key and were applied entry by entry
        pub split: Counter = "splitUnits", "units of work";
    }
}
