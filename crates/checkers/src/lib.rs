//! What users of a set saw, judged without knowing how the set works (INV-20..40).
//!
//! The simulator and programs that drive real processes write down what they asked for and what they were told; here is
//! decided whether any correct history explains it.
//!
//! * [`history`] — transactions that append to lists and read them, what the lists held in the end, what change streams
//!   showed; and its text form, which any program can write;
//! * [`list_append`] — what was lost, doubled, read dirty, or makes a cycle of dependencies (Adya's G0 to G2);
//! * [`stream`] — whether change streams showed every change once and in order;
//! * [`register`] — whether reads and writes of one value are linearizable.

pub mod history;
pub mod list_append;
pub mod register;
pub mod stream;

use history::History;
use list_append::Level;

/// All that is wrong with a history.
pub fn judge(history: &History, level: Level) -> Vec<String> {
    let found = list_append::check(history, level);
    let mut problems: Vec<String> = found.iter().map(ToString::to_string).collect();
    problems.extend(stream::check(history));
    problems
}
