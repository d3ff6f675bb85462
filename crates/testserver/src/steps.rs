//! Workflows that stand still before one of their steps.

use crate::{Set, pause};
use pando_bson::{Document, doc};
use tokio::task::JoinHandle;

/// The fail point before each action of a workflow.
pub const STEP: &str = "hangBeforeWorkflowAction";

impl Set {
    /// From now on a member stands still before its `n`-th next step.
    pub async fn hang_at(&self, member: usize, n: usize) {
        let hang = doc! { "configureFailPoint": STEP, "mode": doc! { "skip": n as i32 } };
        self.connect(member).await.admin(hang).await;
    }
    /// How many steps have met the fail point there.
    pub fn entered(&self, member: usize) -> i64 {
        self.server(member).instance.fail_points.get(STEP).expect("it is known").times_entered()
    }
    /// Whether it stands still, or the command has come to its end before that.
    pub async fn hangs(&self, member: usize, before: i64, task: &JoinHandle<Document>) -> bool {
        loop {
            if self.entered(member) > before {
                return true;
            }
            if task.is_finished() {
                return false;
            }
            pause(5).await;
        }
    }
}
