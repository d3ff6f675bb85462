//! The resumable executor that pulls a plan.
