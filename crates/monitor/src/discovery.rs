//! How a member's answer, or its silence, changes what is known of the set: the rules that all drivers follow.

use crate::hello::{Hello, MemberKind};
use crate::set::{Member, Set};
use pando_base::Millis;

impl Set {
    /// Takes in an answer. One from a host that is no member, or older than what is known, changes nothing.
    pub fn heard(&mut self, host: &str, hello: &Hello, now: Millis) {
        let Some(member) = self.members.get_mut(host) else { return };
        let is_old = match (hello.topology_version, member.topology_version) {
            (Some(new), Some(known)) => new.is_before(known),
            _ => false,
        };
        if is_old {
            return;
        }
        let had_primary = self.primary().is_some();
        let Some(member) = self.members.get_mut(host) else { return };
        match hello.kind {
            MemberKind::Unknown | MemberKind::Ghost => {
                member.forget();
                member.kind = hello.kind;
                member.topology_version = hello.topology_version;
            }
            // Not a member of any set.
            MemberKind::Standalone | MemberKind::Router => _ = self.members.remove(host),
            _ if hello.set_name.as_deref() != Some(&*self.name) => _ = self.members.remove(host),
            MemberKind::Primary => {
                member.take(hello, now);
                self.heard_primary(host, hello);
            }
            _ => {
                member.take(hello, now);
                self.heard_other(host, hello, had_primary);
            }
        }
    }

    /// No answer.
    pub fn lost(&mut self, host: &str) {
        if let Some(m) = self.members.get_mut(host) {
            m.forget();
        }
    }

    fn heard_primary(&mut self, host: &str, hello: &Hello) {
        if !self.is_newest_primary(hello) {
            // It does not know yet that another one was elected.
            return self.lost(host);
        }
        for (other, m) in &mut self.members {
            if other != host && m.kind == MemberKind::Primary {
                m.forget();
            }
        }
        for new in &hello.hosts {
            self.members.entry(new.clone()).or_insert_with(Member::unknown);
        }
        self.members.retain(|host, _| hello.hosts.contains(host));
    }

    /// Elections are ordered by their ids; since 6.0 configurations come second, before they came first.
    fn is_newest_primary(&mut self, hello: &Hello) -> bool {
        const ELECTION_IDS_LEAD_WIRE: i64 = 17;
        let (id, version) = (hello.election_id, hello.set_version);
        if hello.max_wire >= ELECTION_IDS_LEAD_WIRE {
            if (id, version) < (self.max_election_id, self.max_set_version) {
                return false;
            }
            (self.max_election_id, self.max_set_version) = (id, version);
            return true;
        }
        if let (Some(id), Some(version)) = (id, version) {
            let known = self.max_set_version.zip(self.max_election_id);
            if known.is_some_and(|known| known > (version, id)) {
                return false;
            }
            self.max_election_id = Some(id);
        }
        self.max_set_version = self.max_set_version.max(version);
        true
    }

    fn heard_other(&mut self, host: &str, hello: &Hello, had_primary: bool) {
        // A primary says who is in the set; until there is one, the others do.
        if !had_primary {
            for new in &hello.hosts {
                self.members.entry(new.clone()).or_insert_with(Member::unknown);
            }
        }
        if hello.me.as_deref().is_some_and(|me| me != host) {
            // It is known under another name, and found under that.
            self.members.remove(host);
        }
        if self.primary().is_none()
            && let Some(named) = hello.primary.as_ref().and_then(|p| self.members.get_mut(p))
            && named.kind == MemberKind::Unknown
        {
            named.may_be_primary = true;
        }
    }
}
