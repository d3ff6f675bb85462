//! Drives one workflow in one task: feeds it what happened, and has its orders carried out.
//!
//! ```text
//!   under way: [call a] [call b] [rest] ──first that is ready──► Running::answer ──► orders ──► under way, or at once
//! ```
//! Everything that is under way is polled by the task that drives, so locks belong to it, and dropping the driver drops
//! all of it. Time and randomness come from the environment; the rest is the work of [`Hands`].

use pando_base::{Error, ErrorCode, Millis, OpTime, Result, limits};
use pando_bson::DocBuf;
use pando_env::{BoxFuture, Env};
use pando_workflows::{Action, Id, Order, Outcome, Resource, Running, Section, Target};
use std::task::{Context, Poll};
use std::time::Duration;

/// Carries out what a workflow orders. What it holds for the workflow goes with it.
pub trait Hands: Send + Sync {
    /// Everything but [`Action::Rest`] and [`Action::Draw`]. Dropping the future gives up.
    fn carry_out(&self, action: Action) -> BoxFuture<'_, Result<Outcome>>;
    fn release(&self, resource: &Resource);
    fn leave(&self, section: &Section);
    /// The client's last write is at `at`.
    fn report(&self, at: OpTime);
    fn note(&self, text: &str);
    /// An action failed and is tried again.
    fn failed(&self, error: &Error);
}

/// How a drive ended.
#[derive(Debug)]
pub enum End {
    Result(Result<DocBuf>),
    /// This node is primary no more.
    Abandoned(Error),
}

struct Driver<'a> {
    env: &'a Env,
    hands: &'a dyn Hands,
    running: Running,
    under_way: Vec<(Id, BoxFuture<'a, Result<Outcome>>)>,
    interrupt: Option<BoxFuture<'a, Error>>,
    end: Option<End>,
}

/// Runs a workflow to its end. `interrupt` resolves when somebody wants it to end, with the reason; the workflow decides.
pub async fn drive<'a>(
    env: &'a Env,
    hands: &'a dyn Hands,
    running: Running,
    interrupt: BoxFuture<'a, Error>,
) -> End {
    let mut driver =
        Driver { env, hands, running, under_way: Vec::new(), interrupt: Some(interrupt), end: None };
    driver.feed(|running, now, out| running.begin(now, out));
    std::future::poll_fn(|cx| driver.poll(cx)).await
}

impl<'a> Driver<'a> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            if let Some(end) = self.end.take() {
                return Poll::Ready(end);
            }
            if !self.poll_under_way(cx) && !self.poll_interrupt(cx) {
                return Poll::Pending;
            }
        }
    }
    /// True when something was carried out.
    fn poll_under_way(&mut self, cx: &mut Context<'_>) -> bool {
        for i in 0..self.under_way.len() {
            let (id, fut) = &mut self.under_way[i];
            if let Poll::Ready(said) = fut.as_mut().poll(cx) {
                let id = *id;
                // What it held meanwhile goes before the workflow goes on.
                drop(self.under_way.remove(i));
                self.feed(|running, now, out| running.answer(now, id, said, out));
                return true;
            }
        }
        false
    }
    /// True when it has come. A wait for other members hears of it by itself, and says so in its answer.
    fn poll_interrupt(&mut self, cx: &mut Context<'_>) -> bool {
        if self.running.is_under_way(|a| matches!(a, Action::Await { .. })) {
            return false;
        }
        let Some(Poll::Ready(why)) = self.interrupt.as_mut().map(|i| i.as_mut().poll(cx)) else {
            return false;
        };
        self.interrupt = None;
        self.feed(|running, now, out| running.abort(now, why, out));
        true
    }

    /// One event, and the orders that come of it.
    fn feed(&mut self, event: impl FnOnce(&mut Running, Millis, &mut Vec<Order>)) {
        let mut orders = Vec::new();
        let now = self.env.clock.mono().as_millis() as Millis;
        event(&mut self.running, now, &mut orders);
        for order in orders {
            match order {
                Order::Carry { id, action, after_ms } => {
                    let fut = carry_out(self.env, self.hands, action, after_ms);
                    self.under_way.push((id, Box::pin(fut)));
                }
                Order::Cancel(id) => self.under_way.retain(|(of, _)| *of != id),
                Order::Release(resource) => self.hands.release(&resource),
                Order::Leave(section) => self.hands.leave(&section),
                Order::Report(at) => self.hands.report(at),
                Order::Note(text) => self.hands.note(&text),
                Order::Failed(e) => self.hands.failed(&e),
                Order::End(result) => self.end = Some(End::Result(result)),
                Order::Abandon(why) => {
                    self.under_way.clear();
                    self.end = Some(End::Abandoned(why));
                }
            }
        }
    }
}

async fn carry_out(env: &Env, hands: &dyn Hands, action: Action, after_ms: Millis) -> Result<Outcome> {
    sleep(env, after_ms).await;
    match action {
        Action::Rest(ms) => {
            sleep(env, ms).await;
            Ok(Outcome::Done)
        }
        Action::Draw => Ok(Outcome::Random(env.rng.next_u64())),
        Action::Call { ref to, .. } if *to != Target::Own => {
            let limit = Duration::from_millis(limits::WORKFLOW_CALL_MS_MAX);
            let late = || Error::new(ErrorCode::NetworkTimeout, "no answer to a workflow's call in time");
            env.timeout(limit, hands.carry_out(action)).await.unwrap_or_else(|| Err(late()))
        }
        action => hands.carry_out(action).await,
    }
}

async fn sleep(env: &Env, ms: Millis) {
    if ms > 0 {
        env.clock.sleep(Duration::from_millis(ms as u64)).await;
    }
}
