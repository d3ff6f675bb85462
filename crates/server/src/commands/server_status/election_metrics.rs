//! `electionMetrics`: elections that this member called and won, and what became of its terms in office.

use crate::Server;
use pando_metrics::Collector;
use pando_repl::topology::election::{ElectionCounts, Reason};
use std::collections::BTreeMap;

const REASONS: [(&str, &[Reason]); 7] = [
    ("stepUpCmd", &[Reason::StepUpRequest, Reason::StepUpRequestSkipDryRun]),
    ("priorityTakeover", &[Reason::PriorityTakeover]),
    ("catchUpTakeover", &[Reason::CatchUpTakeover]),
    ("electionTimeout", &[Reason::ElectionTimeout]),
    ("freezeTimeout", &[Reason::SingleNodePromptElection]),
    ("primaryLost", &[Reason::PrimaryLost]),
    ("wholeSetStarted", &[Reason::WholeSetStarted]),
];

pub(super) fn collect(server: &Server, to: &mut Collector<'_>) {
    let counts = server.replication.coordinator.get().map(|c| c.read(|core| core.election_counts().clone()));
    let counts = counts.unwrap_or_default();
    for (name, reasons) in REASONS {
        let sum = |by: &BTreeMap<Reason, u64>| reasons.iter().filter_map(|r| by.get(r)).sum::<u64>();
        to.labelled("reason", name, |to| {
            to.counter(
                "called",
                sum(&counts.called),
                "elections",
                "Elections that this member called, by reason",
            )
            .counter(
                "successful",
                sum(&counts.successful),
                "elections",
                "Elections that this member won, by reason",
            );
        });
    }
    collect_office(&counts, to);
    let ended = counts.catch_ups_succeeded + counts.catch_ups_timed_out;
    let average = if ended == 0 { 0.0 } else { server.replication.catch_ups.total() as f64 / ended as f64 };
    let help = "Log entries that this member fetched after an election, on average";
    to.gauge("averageCatchUpOps", average, "log entries", help);
}

fn collect_office(c: &ElectionCounts, to: &mut Collector<'_>) {
    const CATCH_UPS: &str = "catch-ups";
    to.counter(
        "numStepDownsCausedByHigherTerm",
        c.step_downs_higher_term,
        "step-downs",
        "Times this primary stepped down because it saw a higher term",
    )
    .counter("numCatchUps", c.catch_ups, CATCH_UPS, "Times this member had to catch up after an election")
    .counter(
        "numCatchUpsSucceeded",
        c.catch_ups_succeeded,
        CATCH_UPS,
        "Catch-ups that reached the newest entry",
    )
    .counter(
        "numCatchUpsAlreadyCaughtUp",
        c.catch_ups_already_caught_up,
        CATCH_UPS,
        "Elections after which there was nothing to catch up with",
    )
    .counter(
        "numCatchUpsSkipped",
        c.catch_ups_skipped,
        CATCH_UPS,
        "Elections after which catching up was left out",
    )
    .counter("numCatchUpsTimedOut", c.catch_ups_timed_out, CATCH_UPS, "Catch-ups that took too long")
    .counter("numCatchUpsFailedWithError", c.catch_ups_failed, CATCH_UPS, "Catch-ups that an error ended")
    .counter(
        "numPrimarySuspicions",
        c.suspicions,
        "suspicions",
        "Times this member suspected its primary to be gone",
    )
    .counter(
        "numPrimarySuspicionsRefuted",
        c.suspicions_refuted,
        "suspicions",
        "Suspicions that a quick probe refuted",
    );
}
