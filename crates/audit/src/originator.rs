//! Who this thread works for, for events that are raised far below a request.

use crate::who::Who;
use std::cell::RefCell;
use std::sync::Arc;

/// Whoever can cause events: the client of a connection.
pub trait Originator: Send + Sync {
    fn who(&self) -> Who;
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Originator>>> = const { RefCell::new(None) };
}

/// Until dropped, this thread works for somebody.
#[must_use]
pub struct Works(Option<Arc<dyn Originator>>);

/// Called around each poll of a request.
pub fn enter(by: Arc<dyn Originator>) -> Works {
    Works(CURRENT.replace(Some(by)))
}

/// Whether somebody did; the server itself is nobody.
pub fn is_known() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Who caused what happens on this thread; `None` = the server itself.
pub fn current() -> Option<Who> {
    CURRENT.with_borrow(|by| by.as_ref().map(|by| by.who()))
}

impl Drop for Works {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::Uuid;

    struct Somebody(u8);
    impl Originator for Somebody {
        fn who(&self) -> Who {
            Who::system(Uuid([self.0; 16]))
        }
    }

    #[test]
    fn whoever_is_entered_last_asks_until_it_leaves() {
        let asks = || current().map(|who| who.connection.0[0]);
        assert_eq!(asks(), None);
        let one = enter(Arc::new(Somebody(1)));
        {
            let _two = enter(Arc::new(Somebody(2)));
            assert_eq!(asks(), Some(2));
        }
        assert_eq!(asks(), Some(1));
        drop(one);
        assert_eq!(asks(), None);
    }
}
