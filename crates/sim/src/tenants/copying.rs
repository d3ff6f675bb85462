//! What breaks while another set's tables are taken in: while members copy its files, and when the primary has published the first of the collections
//! and perhaps nobody else knows.

use super::faults::Hit;
use super::field::Field;
use super::{EACH, Home, database};
use crate::cuts::Cut;
use crate::executor::lock;
use std::time::Duration;

/// No merge comes so far any more.
const WITHIN: Duration = Duration::from_secs(20);
/// From the first member's copy of the files on.
const LONGEST_MS: [u64; 3] = [10, 60, 400];

/// How far a merge's copy is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Copying {
    /// Some member takes the files in.
    Files,
    /// The primary has published something.
    Published,
}

impl Field {
    /// Something will break amid the copy of the merge that begins now.
    pub(super) fn plan_copy_hit(&mut self) {
        let how_far = if self.below(3) == 0 { Copying::Files } else { Copying::Published };
        self.hit = Some(Hit::Copying(how_far, self.now() + WITHIN));
    }
    /// Whether the copy is so far.
    pub(super) fn is_copying(&self, how_far: Copying) -> bool {
        let to = self.from.other();
        match how_far {
            Copying::Files => {
                let mut members = self.nodes[to.machines()].iter();
                members.any(|node| node.server().is_some_and(|s| s.is_taking_in()))
            }
            Copying::Published => {
                let leader = self.sides[to as usize].leader().and_then(|i| self.nodes[i].server());
                leader.is_some_and(|leader| {
                    let board = lock(&self.board);
                    let comes = |t: &usize| board.announced(*t).home == self.from;
                    let coming: Vec<String> = (0..board.tenants.len()).filter(comes).map(database).collect();
                    leader.databases().iter().any(|db| coming.contains(db))
                })
            }
        }
    }
    /// The copy is so far: now, or a little later, something breaks.
    pub(super) fn hit_copying(&mut self, how_far: Copying) {
        match how_far {
            Copying::Files => {
                let longest = LONGEST_MS[self.below(3) as usize];
                let after = Duration::from_millis(self.below(longest));
                self.hit = Some(Hit::CopyingAt(self.now() + after));
            }
            Copying::Published => {
                self.end_hit();
                self.fault_amid_copying("amid a publication");
            }
        }
    }
    /// Somebody of the set that takes the tables in is lost, as a rule.
    pub(super) fn fault_amid_copying(&mut self, when: &'static str) {
        self.broken.count(when);
        let to = self.from.other();
        let first = to.machines().start;
        let leader = self.sides[to as usize].leader().unwrap_or(first);
        let follower = first + (leader - first + 1 + self.below(EACH as u64 - 1) as usize) % EACH;
        match self.below(20) {
            // What it has published nobody else may have.
            0..=4 => self.cut("cut off from members", Cut::Member(leader)),
            5 | 6 => self.stop(follower, false),
            7 => self.stop(follower, true),
            8 => self.stop(leader, false),
            9 => self.stop(leader, true),
            10 | 11 => self.stall(follower),
            12 => self.pause(follower),
            13 => self.pause(leader),
            14 => self.cut("cut off", Cut::Machine(leader)),
            15 => self.cut("pair apart", Cut::Pair(leader, follower)),
            16 => self.loses_power(to),
            17 => self.step_down(),
            18 => {
                let gives = self.sides[self.from as usize].leader().unwrap_or(self.from.machines().start);
                self.stop(gives, false);
            }
            _ => self.cut("mute", Cut::Mute(leader)),
        }
    }
    fn loses_power(&mut self, side: Home) {
        self.broken.count("power loss of the set that takes tables in");
        let absent = self.below(5000);
        for i in side.machines() {
            self.take_down(i, true, absent);
        }
    }
}
