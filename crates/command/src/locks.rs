//! The locks of an operation as they are shown: in `currentOp`, in slow operations and in the profile.

use pando_bson::DocBuilder;
use pando_env::op_locks::{Class, Mode, OpLocks, Taken};

/// `{Collection: "w"}`: what it holds.
pub fn append_held(b: &mut DocBuilder, locks: &OpLocks) {
    for class in Class::ALL {
        if let Some(mode) = locks.held(class) {
            b.str(class.name(), mode.letter());
        }
    }
}

/// How often it took locks, and how long it waited for them.
pub fn append_taken(b: &mut DocBuilder, locks: &OpLocks) {
    for class in Class::ALL {
        append_class(b, class, Mode::ALL.map(|mode| locks.taken(class, mode)));
    }
}

/// One class, if anything happened: shared and exclusive.
fn append_class(b: &mut DocBuilder, class: Class, taken: [Taken; 2]) {
    if taken == [Taken::default(); 2] {
        return;
    }
    type Figure = (&'static str, fn(&Taken) -> u64);
    let figures: [Figure; 3] = [
        ("acquireCount", |t| t.acquired),
        ("acquireWaitCount", |t| t.waits),
        ("timeAcquiringMicros", |t| t.micros),
    ];
    b.doc(class.name(), |c| {
        for (name, of) in figures {
            if taken.iter().all(|t| of(t) == 0) {
                continue;
            }
            c.doc(name, |d| {
                for (mode, t) in Mode::ALL.iter().zip(&taken).filter(|(_, t)| of(t) > 0) {
                    d.i64(mode.letter(), of(t) as i64);
                }
            });
        }
    });
}
