//! Which API versions clients have asked for of late, by the names of their applications (`metrics.apiVersions`).

use pando_base::limits::{API_VERSION_APPS_MAX, API_VERSION_SHOWN_SECS, API_VERSION_TOLD_SECS};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Without one, and version 1.
const NAMES: [&str; 2] = ["default", "1"];

/// When each version was asked for last.
type Last = [Option<Duration>; 2];

/// Of a server. Applications beyond the bound are not told of.
#[derive(Default)]
pub struct ApiVersions(Mutex<BTreeMap<String, Last>>);

/// What one client has told already, so that it seldom has to: the second after which each version is to be told again.
#[derive(Default)]
pub(crate) struct Told([AtomicU64; 2]);

impl Told {
    pub(crate) fn is_due(&self, v1: bool, now: Duration) -> bool {
        let again = &self.0[usize::from(v1)];
        if now.as_secs() < again.load(Relaxed) {
            return false;
        }
        again.store(now.as_secs() + API_VERSION_TOLD_SECS, Relaxed);
        true
    }
}

fn is_shown(last: &Option<Duration>, now: Duration) -> bool {
    last.is_some_and(|at| now.saturating_sub(at) < Duration::from_secs(API_VERSION_SHOWN_SECS))
}

impl ApiVersions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Last>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn note(&self, app: &str, v1: bool, now: Duration) {
        let mut apps = self.lock();
        if !apps.contains_key(app) {
            if apps.len() >= API_VERSION_APPS_MAX {
                apps.retain(|_, last| last.iter().any(|at| is_shown(at, now)));
            }
            // A name with a NUL could not be shown.
            if apps.len() >= API_VERSION_APPS_MAX || app.contains('\0') {
                return;
            }
            apps.insert(app.to_owned(), Last::default());
        }
        if let Some(last) = apps.get_mut(app) {
            last[usize::from(v1)] = Some(now);
        }
    }
    /// Each application with the versions that it asked for.
    pub fn shown(&self, now: Duration) -> Vec<(String, Vec<&'static str>)> {
        let versions = |last: &Last| {
            NAMES.into_iter().zip(last).filter(|(_, at)| is_shown(at, now)).map(|(name, _)| name).collect()
        };
        let apps = self.lock();
        let shown = apps.iter().map(|(app, last)| (app.clone(), versions(last)));
        shown.filter(|(_, versions): &(_, Vec<_>)| !versions.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_is_shown_for_a_day_and_others_find_room_then() {
        let (all, at) = (ApiVersions::default(), Duration::from_secs);
        all.note("a", false, at(0));
        all.note("a", true, at(10));
        assert_eq!(all.shown(at(20)), [("a".to_owned(), vec!["default", "1"])]);
        assert_eq!(all.shown(at(API_VERSION_SHOWN_SECS + 5)), [("a".to_owned(), vec!["1"])]);
        (0..2 * API_VERSION_APPS_MAX).for_each(|n| all.note(&format!("app{n}"), true, at(20)));
        assert_eq!(all.shown(at(30)).len(), API_VERSION_APPS_MAX);
        all.note("late", true, at(API_VERSION_SHOWN_SECS + 100));
        assert_eq!(all.shown(at(API_VERSION_SHOWN_SECS + 101)), [("late".to_owned(), vec!["1"])]);
    }

    #[test]
    fn a_client_tells_of_a_version_once_in_a_while() {
        let (told, at) = (Told::default(), Duration::from_secs);
        assert!(told.is_due(true, at(1)) && !told.is_due(true, at(2)) && told.is_due(false, at(2)));
        assert!(told.is_due(true, at(2 + API_VERSION_TOLD_SECS)));
    }
}
