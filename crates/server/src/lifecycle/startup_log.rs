//! `local.startup_log`: a row for each start, with what was started and how. Capped, and every node's own.

use crate::Server;
use crate::commands::build_info;
use pando_access::{Capped, CollectionOptions};
use pando_base::calendar::civil_of_ms;
use pando_base::{Millis, Namespace, limits};
use pando_bson::{DocBuf, DocBuilder};
use pando_env::Component;

/// `Tue Nov 24 12:37:18.129`, without a zone.
fn spoken(ms: Millis) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let c = civil_of_ms(ms);
    let (day, month) = (DAYS[c.day_of_week() as usize - 1], MONTHS[usize::from(c.month) - 1]);
    format!("{day} {month} {:2} {:02}:{:02}:{:02}.{:03}", c.day, c.hour, c.minute, c.second, c.millisecond)
}

impl Server {
    fn startup_row(&self) -> DocBuf {
        let now = self.instance.env.clock.wall_ms();
        let facts = self.config.host.facts();
        let mut b = DocBuilder::with_capacity(1024);
        b.str("_id", &format!("{}-{now}", facts.hostname));
        b.str("hostname", &facts.hostname);
        b.date("startTime", now - now.rem_euclid(1000));
        b.str("startTimeLocal", &spoken(now));
        b.raw_doc("cmdLine", &self.config.parsed);
        b.i64("pid", i64::from(facts.pid));
        b.doc("buildinfo", |d| build_info::append(d, self.config.allocator));
        b.finish()
    }

    /// A start that cannot be noted is a start all the same.
    pub(super) async fn note_startup(&self) {
        let ns = Namespace::unchecked("local", "startup_log");
        let options = || {
            let capped = Some(Capped::new(limits::STARTUP_LOG_BYTES, None));
            CollectionOptions { capped, ..CollectionOptions::default() }
        };
        if let Err(e) = self.access.internal_collections().append(&ns, &self.startup_row(), options).await {
            self.instance.env.log.warn(
                Component::Control,
                9100072,
                "This start is not in local.startup_log",
                |a| {
                    a.data("error", &e);
                },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::spoken;

    #[test]
    fn a_day_of_one_digit_keeps_its_place() {
        assert_eq!(spoken(1_795_523_838_129), "Tue Nov 24 12:37:18.129");
        assert_eq!(spoken(5), "Thu Jan  1 00:00:00.005");
    }
}
