//! Something that is read once for all who want it at the same time.

use crate::lock;
use pando_base::Result;
use pando_env::sync::Notify;
use std::sync::Mutex;

#[derive(Default)]
struct State {
    is_read: bool,
    /// Readings that are over, and what came of the last one; nothing where it was given up.
    over: u64,
    came: Option<Result<()>>,
}

/// See the module text.
#[derive(Default)]
pub(crate) struct Single {
    state: Mutex<State>,
    ended: Notify,
}

/// What is to be done by whoever wants it.
pub(crate) enum Joined<'a> {
    Reads(Reading<'a>),
    /// Somebody reads it already.
    Waits(Waiting<'a>),
}

impl Single {
    pub(crate) fn join(&self) -> Joined<'_> {
        let mut state = lock(&self.state);
        if std::mem::replace(&mut state.is_read, true) {
            return Joined::Waits(Waiting { single: self, over: state.over, seen: self.ended.version() });
        }
        Joined::Reads(Reading(self))
    }
    fn end(&self, came: Option<Result<()>>) {
        let mut state = lock(&self.state);
        state.is_read = false;
        state.over += 1;
        state.came = came;
        drop(state);
        self.ended.bump();
    }
}

/// Held by whoever reads. Dropped before its end, somebody else does.
pub(crate) struct Reading<'a>(&'a Single);

impl Reading<'_> {
    /// Those who wait hear of a failure, too: one after the other trying for himself would take as many times as long.
    pub(crate) fn over<T>(self, done: Result<T>) -> Result<T> {
        self.0.end(Some(done.as_ref().map(drop).map_err(Clone::clone)));
        std::mem::forget(self);
        done
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.end(None);
    }
}

pub(crate) struct Waiting<'a> {
    single: &'a Single,
    over: u64,
    seen: u64,
}

impl Waiting<'_> {
    /// Returns when that reading has ended: whether it has brought something, which is where it belongs, or was given up.
    pub(crate) async fn over(mut self) -> Result<bool> {
        loop {
            self.single.ended.changed(self.seen).await;
            if let Some(came) = self.came() {
                return came;
            }
        }
    }
    /// Of that reading; nothing where somebody has only now been told of the end of the one before it.
    fn came(&mut self) -> Option<Result<bool>> {
        let state = lock(&self.single.state);
        if state.over == self.over {
            self.seen = self.single.ended.version();
            return None;
        }
        Some(match &state.came {
            Some(Err(e)) if state.over == self.over + 1 => Err(e.clone()),
            Some(_) => Ok(true),
            None => Ok(state.over > self.over + 1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::Error;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn reading(single: &Single) -> Reading<'_> {
        let Joined::Reads(reading) = single.join() else { panic!("somebody reads") };
        reading
    }
    fn waiting(single: &Single) -> Waiting<'_> {
        let Joined::Waits(waiting) = single.join() else { panic!("nobody reads") };
        waiting
    }
    fn now<T>(what: impl Future<Output = T>) -> Option<T> {
        match pin!(what).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(out) => Some(out),
            Poll::Pending => None,
        }
    }

    #[test]
    fn one_reads_and_the_others_hear_what_came_of_it() {
        let single = Single::default();
        let first = reading(&single);
        let waits: Vec<_> = (0..3).map(|_| waiting(&single)).collect();
        first.over(Ok(())).unwrap();
        assert!(
            waits.into_iter().all(|w| now(w.over()).is_some_and(|heard| heard.is_ok_and(|brought| brought)))
        );
        let second = reading(&single);
        let waits = waiting(&single);
        second.over::<()>(Err(Error::bad_value("no"))).unwrap_err();
        assert!(now(waits.over()).is_some_and(|heard| heard.is_err()));
    }

    #[test]
    fn where_reading_is_given_up_somebody_else_reads() {
        let single = Single::default();
        let first = reading(&single);
        let waits = waiting(&single);
        drop(first);
        assert_eq!(now(waits.over()).map(|heard| heard.unwrap()), Some(false));
        drop(reading(&single));
    }
}
